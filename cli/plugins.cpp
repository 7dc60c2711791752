#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/default_pair.h"
#include "cli/options.h"
#include "cli/session.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/spec/problems.h"

namespace phasor::cli {

namespace {

/// Calls f(kind, plugin) for everything that is registered.
template <class F>
void for_each(const Registry& registry, const F& f) {
  for (const auto& plugin : registry.tasks()) f("task", *plugin);
  for (const auto& plugin : registry.backbones()) f("backbone", *plugin);
  for (const auto& plugin : registry.encodings()) f("encoding", *plugin);
}

/// What an experiment with the two is told, "" when they go together.
std::string refusal(const BackbonePlugin& backbone, const EncodingPlugin& encoding) {
  try {
    const DefaultPair pair(backbone, encoding);
    return pair.misfit ? pair.misfit->reason : "";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return fmt::format("{} with the backbone {}: it threw something that is not an exception", encoding.info.name,
                       backbone.info.name);
  }
}

/// Pairs that do not fit, one line each; a backbone that fits nothing says so once.
void list_misfits(const Registry& registry) {
  std::vector<std::string> told;
  for (const auto& backbone : registry.backbones()) {
    for (const auto& encoding : registry.encodings()) {
      if (!backbone->info.rivals.empty() || !encoding->info.rivals.empty()) continue;
      const std::string line = refusal(*backbone, *encoding);
      if (line.empty() || std::find(told.begin(), told.end(), line) != told.end()) continue;
      fmt::print("{}{}\n", told.empty() ? "\nbackbones and encodings that an experiment refuses together, at their default options\n" : "", line);
      told.push_back(line);
    }
  }
}

void list(const Plugins& plugins) {
  fmt::print("{:<10} {:<20} {:<9} {:<22} {}\n", "kind", "name", "revision", "file", "what it is");
  for_each(plugins.registry, [](const char* kind, const auto& plugin) {
    const PluginInfo& info = plugin.info;
    if (!info.rivals.empty()) return;  // told as a problem
    const std::string file = std::filesystem::path(info.library).filename().string();
    fmt::print("{:<10} {:<20} {:<9} {:<22} {}\n", kind, info.name, info.revision, file, info.help);
  });
  std::fflush(stdout);  // what follows runs code of plugins
  list_misfits(plugins.registry);
  std::string folders;
  for (const std::string& folder : plugins.folders) folders += (folders.empty() ? "" : ", ") + folder;
  fmt::print("\nfrom {}; phasor plugins NAME shows the options of one\n", folders);
}

void show(const Plugins& plugins, const std::string& name) {
  // A name that several files bring is a mistake here too.
  plugins.registry.find_task(name);
  plugins.registry.find_backbone(name);
  plugins.registry.find_encoding(name);
  bool found = false;
  std::vector<std::string> names;
  for_each(plugins.registry, [&](const char* kind, const auto& plugin) {
    names.push_back(plugin.info.name);
    if (plugin.info.name != name) return;
    found = true;
    const std::unique_ptr<phasor::Options> made = plugin.options();
    FieldList fields;
    made->fields(fields);
    const char* section = std::string_view(kind) == "task" ? "task" : nullptr;
    fmt::print("{} {}: {}\nrevision {}, {}\n\n", kind, name, plugin.info.help, plugin.info.revision,
               plugin.info.library);
    fmt::print("\"{}\": {{\"name\": \"{}\", ...}}\n{}", section ? section : std::string("model.") + kind, name,
               help_text(fields, 2));
    if (fields.all().empty()) fmt::print("  no options\n");
  });
  if (found) return;
  const std::optional<std::string> meant = nearest(name, names);
  throw UserError("no plugin is called \"" + name + "\", " +
                  (names.empty() ? "there is none"
                   : meant       ? "did you mean \"" + *meant + "\"?"
                                 : "expected " + quoted_list(names)));
}

}  // namespace

int plugins(const Arguments& arguments) {
  std::string name;
  std::vector<std::string> plugin_files;
  Options options(
      "phasor plugins [NAME] [--plugin FILE]...",
      "Lists tasks, backbones and encodings, and which pairs of a backbone and an encoding do not fit, at their default\n"
      "options; with NAME, the options of one. Files that cannot be loaded are named on standard error and do not keep\n"
      "the others from working.\n"
      "exit codes: 0 done, 2 no such plugin, or a file of --plugin that cannot be loaded");
  options.positional("plugin name", name, false);
  options.list("plugin", plugin_files, "FILE", plugin_help);
  if (!options.parse(arguments)) return exit_code::done;
  const Plugins loaded(plugin_files);
  loaded.warn();
  if (name.empty()) {
    list(loaded);
  } else {
    show(loaded, name);
  }
  return loaded.refused.empty() ? exit_code::done : exit_code::user;
}

}  // namespace phasor::cli
