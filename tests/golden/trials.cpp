#include "tests/golden/trials.h"

#include <cstdlib>

namespace phasor::golden {

const UnitTable& units() {
  static const UnitTable table = [] {
    UnitTable all;
    add_ops(all);
    add_encodings(all);
    add_layers(all);
    add_models(all);
    add_optimisers(all);
    return all;
  }();
  return table;
}

std::string name_of_trial(const Trial& trial) {
  return trial.dtype ? trial.file + "_" + name_of(*trial.dtype) : trial.file;
}
void PrintTo(const Trial& trial, std::ostream* out) { *out << name_of_trial(trial); }

std::vector<Trial> trials() {
  std::vector<Trial> all;
  for (const std::string& name : golden_names(golden_folder())) {
    const auto unit = units().find(unit_of(name));
    if (unit == units().end()) {
      all.push_back({name, std::nullopt});
      continue;
    }
    all.push_back({name, Dtype::f64});
    if (unit->second.kernels) all.push_back({name, Dtype::f32});
  }
  return all;
}

GoldenFile load(const std::string& name) { return read_golden(golden_folder() + "/" + name + ".h5"); }

bool is_selection() { return std::getenv("PHASOR_GOLDEN") != nullptr; }

}  // namespace phasor::golden
