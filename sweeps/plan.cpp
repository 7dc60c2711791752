#include "sweeps/plan.h"

#include <algorithm>
#include <map>
#include <sched.h>
#include <set>

namespace phasor::sweeps {

std::int64_t threads_of(const Expansion& expansion) {
  std::int64_t threads = 1;
  for (const Trial& trial : expansion.trials) {
    const Json* value = trial.spec.at_path("run.threads");
    if (value != nullptr && value->is_integer()) threads = std::max(threads, value->as_integer());
  }
  return threads;
}

std::int64_t default_jobs(const Expansion& expansion) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const std::int64_t count = ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return std::max<std::int64_t>(1, count / threads_of(expansion));
}

std::vector<std::size_t> to_run(const Expansion& expansion, const FolderState& state, const RunnerOptions& options) {
  std::vector<std::size_t> wanted;
  std::set<std::string> again;
  if (options.retry_stale) {
    for (const Stale& stale : state.stale) again.insert(stale.id);
  }
  for (std::size_t i = 0; i < expansion.trials.size(); ++i) {
    const auto found = state.ended.find(expansion.trials[i].id);
    const bool failed = found != state.ended.end() && results::is_failure(found->second);
    if (found == state.ended.end() || (options.retry_failed && failed) || again.contains(found->first) ||
        state.again.contains(found->first))
      wanted.push_back(i);
  }
  return wanted;
}

std::vector<std::string> log_names(const Expansion& expansion) {
  std::set<std::string> ids;
  for (const Trial& trial : expansion.trials) ids.insert(trial.id);
  for (const results::ManifestTrial& cell : expansion.manifest.trials) ids.insert(cell.id);
  std::map<std::string, int> uses;
  for (const std::string& id : ids) ++uses[id.substr(0, 8)];
  std::vector<std::string> names;
  for (const Trial& trial : expansion.trials) {
    const std::string head = trial.id.substr(0, 8);
    names.push_back(uses[head] > 1 ? trial.id : head);
  }
  return names;
}

}  // namespace phasor::sweeps
