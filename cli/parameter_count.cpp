#include "cli/parameter_count.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <unordered_map>

#include "core/nn/model.h"

namespace phasor::cli {

namespace {

/// The first `count` dotted parts of a name.
std::string head_of(std::string_view name, int count) {
  std::size_t end = 0;
  for (int i = 0; i < count && end != std::string_view::npos; ++i) end = name.find('.', end == 0 ? 0 : end + 1);
  return std::string(name.substr(0, end));
}

bool in_layer(std::string_view name) { return name.starts_with("layers."); }

/// Modules or parts in the order in which they are first asked for.
class Entries {
 public:
  ModuleCount& of(std::vector<ModuleCount>& all, const std::string& name) {
    const auto [at, is_new] = places_.try_emplace(name, all.size());
    if (is_new) all.push_back({name, 0, 0, {}});
    return all[at->second];
  }

 private:
  std::unordered_map<std::string, std::size_t> places_;  // by name
};

void add(ModuleCount& module, const ParameterEntry& entry) {
  module.count += entry.count();
  if (entry.frozen) module.frozen += entry.count();
}

}  // namespace

ParameterCount count_parameters(const ExperimentSpec& spec) {
  const DataShape data = spec.data_shape();
  ParameterStore store;
  const Model model(spec.model, data, spec.mixer(), store);
  ParameterCount count;
  count.total = store.total();
  count.frozen = store.total() - store.total(false);
  Entries modules;
  std::unordered_map<std::string, Entries> parts;  // by module
  for (const ParameterEntry& entry : store.entries()) {
    const bool decays = !entry.frozen && (spec.optimizer.decay().decay == "all" || entry.decays);
    count.list.push_back({entry.name, entry.count(), entry.frozen, decays});
    const std::string name = head_of(entry.name, in_layer(entry.name) ? 3 : 1);
    ModuleCount& module = modules.of(count.modules, name);
    add(module, entry);
    if (!name.ends_with(".encoding")) continue;
    const std::string part = head_of(std::string_view(entry.name).substr(name.size() + 1), 1);
    add(parts[name].of(module.parts, part), entry);
  }
  const auto& encodings = spec.registry().encodings();
  const auto nope = std::find_if(encodings.begin(), encodings.end(), [](const auto& encoding) {
    return encoding->info.name == "nope" && encoding->info.rivals.empty();
  });
  if (nope != encodings.end()) {
    const std::unique_ptr<phasor::Options> options = (*nope)->options();
    MixerChoice choice = spec.mixer();
    choice.encoding = nope->get();
    choice.encoding_options = options.get();
    ParameterStore without;
    const Model plain(spec.model, data, choice, without);
    count.nope_total = without.total();
  }
  return count;
}

bool layers_alike(const ParameterCount& count, std::int64_t layers) {
  std::unordered_map<std::string_view, const ModuleCount*> by_name;
  for (const ModuleCount& module : count.modules) by_name[module.name] = &module;
  for (const ModuleCount& module : count.modules) {
    if (!module.name.starts_with("layers.0.")) continue;
    for (std::int64_t i = 1; i < layers; ++i) {
      const auto other = by_name.find(fmt::format("layers.{}.{}", i, module.name.substr(9)));
      if (other == by_name.end() || other->second->count != module.count || other->second->frozen != module.frozen) return false;
    }
  }
  return true;
}

}  // namespace phasor::cli
