#include "core/plugin/registry.h"

#include <algorithm>
#include <string_view>

#include "core/base/error.h"
#include "core/plugin/guard.h"

namespace phasor {

namespace {

std::string file_text(const std::string& library) { return library.empty() ? "this program" : library; }

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string duplicate_text(const char* kind, const PluginInfo& info) {
  std::string files = file_text(info.library);
  for (const std::string& rival : info.rivals) files += " and in " + rival;
  return std::string(kind) + " \"" + info.name + "\": found in " + files +
         ", expected one of each name; remove one of the files or rename what it registers";
}

/// Kept in order of name, so that help and messages do not depend on the order of files.
template <class Plugin>
void insert(std::vector<std::unique_ptr<Plugin>>& all, std::unique_ptr<Plugin> plugin, const char* kind) {
  const PluginInfo& info = plugin->info;
  const std::string place = std::string(kind) + " \"" + info.name + "\": ";
  if (!is_name(info.name)) {
    throw UserError(place +
                    "found an odd name, expected letters, digits, '_' and '-'; rename it in the plugin's source");
  }
  const auto at = std::lower_bound(all.begin(), all.end(), info.name,
                                   [](const auto& known, const std::string& name) { return known->info.name < name; });
  if (at != all.end() && (*at)->info.name == info.name) {
    PluginInfo& known = (*at)->info;
    if (known.library == info.library ||
        std::find(known.rivals.begin(), known.rivals.end(), info.library) != known.rivals.end()) {
      throw UserError(place + "found twice in " + file_text(info.library) +
                      ", expected one of each name; rename one of them");
    }
    known.rivals.push_back(info.library);
    return;
  }
  all.insert(at, std::move(plugin));
}

template <class Plugin>
const Plugin* find(const std::vector<std::unique_ptr<Plugin>>& all, const std::string& name, const char* kind) {
  for (const auto& plugin : all) {
    if (plugin->info.name != name) continue;
    if (!plugin->info.rivals.empty()) throw UserError(duplicate_text(kind, plugin->info));
    return plugin.get();
  }
  return nullptr;
}

template <class Plugin>
void add_duplicates(const std::vector<std::unique_ptr<Plugin>>& all, const char* kind, std::vector<std::string>& lines) {
  for (const auto& plugin : all) {
    if (!plugin->info.rivals.empty()) lines.push_back(duplicate_text(kind, plugin->info));
  }
}

template <class Plugin>
void erase(std::vector<std::unique_ptr<Plugin>>& all, const std::string& library) {
  std::erase_if(all, [&](const auto& plugin) { return plugin->info.library == library; });
  for (const auto& plugin : all) std::erase(plugin->info.rivals, library);
}

}  // namespace

const EncodingPlugin* Registry::find_encoding(const std::string& name) const { return find(encodings_, name, "encoding"); }
const BackbonePlugin* Registry::find_backbone(const std::string& name) const { return find(backbones_, name, "backbone"); }
const TaskPlugin* Registry::find_task(const std::string& name) const { return find(tasks_, name, "task"); }

std::vector<std::string> Registry::duplicates() const {
  std::vector<std::string> lines;
  add_duplicates(tasks_, "task", lines);
  add_duplicates(backbones_, "backbone", lines);
  add_duplicates(encodings_, "encoding", lines);
  return lines;
}

void Registry::from_library(std::string file) {
  library_ = std::move(file);
  if (!library_.empty()) libraries_.push_back(library_);
}

void Registry::forget(const std::string& library) {
  erase(encodings_, library);
  erase(backbones_, library);
  erase(tasks_, library);
  std::erase(libraries_, library);
}

void Registry::add(std::unique_ptr<EncodingPlugin> plugin, PluginInfo info) {
  info.library = library_;
  insert(encodings_, guarded(std::move(plugin), info), "encoding");
}

void Registry::add(std::unique_ptr<BackbonePlugin> plugin, PluginInfo info) {
  info.library = library_;
  insert(backbones_, guarded(std::move(plugin), info), "backbone");
}

void Registry::add(std::unique_ptr<TaskPlugin> plugin, PluginInfo info) {
  info.library = library_;
  insert(tasks_, guarded(std::move(plugin), info), "task");
}

}  // namespace phasor
