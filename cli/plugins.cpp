#include <filesystem>
#include <fmt/format.h>

#include "cli/commands.h"
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

void list(const Plugins& plugins) {
  fmt::print("{:<10} {:<20} {:<9} {:<22} {}\n", "kind", "name", "revision", "file", "what it is");
  for_each(plugins.registry, [](const char* kind, const auto& plugin) {
    const PluginInfo& info = plugin.info;
    const std::string file = std::filesystem::path(info.library).filename().string();
    fmt::print("{:<10} {:<20} {:<9} {:<22} {}\n", kind, info.name, info.revision, file, info.help);
  });
  fmt::print("\nfrom {}; phasor plugins NAME shows the options of one\n", default_plugin_folder());
}

void show(const Plugins& plugins, const std::string& name) {
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
                  (meant ? "did you mean \"" + *meant + "\"?" : "expected " + quoted_list(names)));
}

}  // namespace

int plugins(const Arguments& arguments) {
  std::string name;
  Options options(
      "phasor plugins [NAME]",
      "Lists tasks, backbones and encodings; with NAME, the options of one. Files that cannot be loaded are named\n"
      "on standard error and do not keep the others from working.\n"
      "exit codes: 0 done, 2 no such plugin");
  options.positional("plugin name", name, false);
  if (!options.parse(arguments)) return exit_code::done;
  const Plugins loaded;
  loaded.warn();
  if (name.empty()) {
    list(loaded);
  } else {
    show(loaded, name);
  }
  return exit_code::done;
}

}  // namespace phasor::cli
