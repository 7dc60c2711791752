#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "core/plugin/loader.h"
#include "core/spec/json.h"
#include "core/spec/problems.h"

namespace phasor::test {

/// A registry with the given files, all of which must be good.
inline std::unique_ptr<Registry> load(const std::vector<std::string>& files) {
  auto registry = std::make_unique<Registry>();
  for (const std::string& file : files) EXPECT_EQ(load_plugin(*registry, file).problem, "") << file;
  return registry;
}

inline std::string shipped(const std::string& name) { return default_plugin_folder() + "/" + name + ".so"; }

/// The options of a plugin as an experiment file gives them. UserError with every mistake.
template <class Plugin>
std::unique_ptr<Options> read_options(const Plugin& plugin, const std::string& json) {
  std::unique_ptr<Options> options = plugin.options();
  FieldList fields;
  options->fields(fields);
  Document document = Document::parse(json, "options");
  document.require_none();
  read_fields(fields, document.value(), "", document, fields);
  document.require_none();
  return options;
}

}  // namespace phasor::test
