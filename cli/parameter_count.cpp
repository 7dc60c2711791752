#include "cli/parameter_count.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

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

ModuleCount& entry_of(std::vector<ModuleCount>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const ModuleCount& m) { return m.name == name; });
  if (found != all.end()) return *found;
  all.push_back({name, 0, 0, {}});
  return all.back();
}

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
  for (const ParameterEntry& entry : store.entries()) {
    const bool decays = !entry.frozen && (spec.optimizer.decay().decay == "all" || entry.decays);
    count.list.push_back({entry.name, entry.count(), entry.frozen, decays});
    const std::string name = head_of(entry.name, in_layer(entry.name) ? 3 : 1);
    ModuleCount& module = entry_of(count.modules, name);
    add(module, entry);
    if (!name.ends_with(".encoding")) continue;
    const std::string part = head_of(std::string_view(entry.name).substr(name.size() + 1), 1);
    add(entry_of(module.parts, part), entry);
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
  for (const ModuleCount& module : count.modules) {
    if (!module.name.starts_with("layers.0.")) continue;
    for (std::int64_t i = 1; i < layers; ++i) {
      const std::string name = fmt::format("layers.{}.{}", i, module.name.substr(9));
      const auto other = std::find_if(count.modules.begin(), count.modules.end(),
                                      [&](const ModuleCount& m) { return m.name == name; });
      if (other == count.modules.end() || other->count != module.count || other->frozen != module.frozen) return false;
    }
  }
  return true;
}

}  // namespace phasor::cli
