#include "cli/fit_memory.h"

#include <fmt/format.h>
#include <map>

#include "experiments/memory.h"

namespace phasor::cli {

std::string memory_problem(const Phases& phases, const sweeps::RunnerOptions& options, const Registry& registry) {
  const sweeps::Expansion& expansion = phases.sweep().expansion;
  std::map<std::string, std::string> problems;  // by shape
  std::size_t count = 0, first = 0;
  for (const std::size_t i : sweeps::to_run(expansion, phases.state(), options)) {
    const Trial& trial = expansion.trials[i];
    const auto [problem, is_new] = problems.try_emplace(shape_of(trial));
    if (is_new && *trial.spec.at_path("run.device") == Json("cpu")) {
      ExperimentSpec spec(registry);
      Document document = Document::parse(trial.spec.canonical(), trial.id);
      spec.read(document);
      problem->second = phasor::memory_problem(spec);
    }
    if (!problem->second.empty() && ++count == 1) first = i;
  }
  if (count == 0) return "";
  const Trial& trial = expansion.trials[first];
  return fmt::format("{} of the trials to run cannot run here; {}: {}", count,
                     sweeps::cell_name(expansion.manifest, expansion.manifest.trials[expansion.first_cell[first]]),
                     problems.at(shape_of(trial)));
}

std::string shape_of(const Trial& trial) {
  std::string key;
  for (const char* path : {"model", "task", "train", "optimizer.name", "run.threads", "run.device"}) {
    const Json* value = trial.spec.at_path(path);
    key += value == nullptr ? "" : value->canonical();
  }
  return key;
}

}  // namespace phasor::cli
