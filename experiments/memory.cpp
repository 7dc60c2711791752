#include "experiments/memory.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include "core/base/blame.h"
#include "core/nn/model.h"
#include "experiments/cost.h"

namespace phasor {

namespace {

/// Of a file that holds one number; infinity when there is none, or the word "max".
double limit_in(const char* file) {
  double limit = 0.0;
  std::ifstream(file) >> limit;
  return limit > 0.0 ? limit : std::numeric_limits<double>::infinity();
}

/// By the user (--memory-mb): a trial that wants more meets that limit and says so itself, and its neighbours notice nothing.
bool is_limited() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

const char* const advice = "make model.dim, model.layers or train.micro_batch smaller, or train it on a machine with more memory";

}  // namespace

MemoryNeed least_memory(const ExperimentSpec& spec) {
  const auto task = spec.make_task();
  ParameterStore parameters;
  const Model model(spec.model, DataShape(*task), spec.mixer(), parameters);
  const double number = spec.train.precision == "f64" ? 8.0 : 4.0;
  const std::int64_t lanes = spec.train.lanes.value(), workers = std::min(lanes, spec.run.threads);
  const bool adamw = spec.optimizer.name != "sgd";
  const double flat = static_cast<double>(parameters.flat_size()) * number;
  MemoryNeed need;
  need.parameter_bytes = flat;
  need.gradient_bytes = flat * static_cast<double>(lanes);
  need.optimizer_bytes = flat * (adamw ? 2.0 : spec.optimizer.sgd.momentum > 0.0 ? 1.0 : 0.0);
  const std::int64_t rows = std::min(spec.train.micro_batch.value(), (spec.train.batch + lanes - 1) / lanes);
  std::int64_t tokens = 0;
  for (const Slice& slice : task->slices(Split::train)) tokens = std::max(tokens, task->tokens(slice));
  need.activation_bytes = static_cast<double>(workers) * static_cast<double>(rows) * static_cast<double>(tokens) *
                          static_cast<double>(spec.model.dim) * static_cast<double>(spec.model.layers) * number;
  if (task->missing()) return need;
  const double per_token = static_cast<double>(task->streams() + 1 + (task->packs() ? 1 : 0)) * sizeof(std::int32_t);
  for (const Split split : {Split::valid, Split::test})
    for (const Slice& slice : task->slices(split))
      need.data_bytes += static_cast<double>(slice.rows) * static_cast<double>(task->tokens(slice)) * per_token;
  return need;
}

double machine_memory() {
  const double physical = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return std::min({physical, limit_in("/sys/fs/cgroup/memory.max"), limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
}

std::string bytes_text(double bytes) {
  if (bytes < 1e6) return fmt::format("{:.0f} kB", bytes / 1e3);
  if (bytes < 1e9) return fmt::format("{:.1f} MB", bytes / 1e6);
  return bytes < 1e12 ? fmt::format("{:.1f} GB", bytes / 1e9) : fmt::format("{:.1f} TB", bytes / 1e12);
}

std::string memory_text(const ExperimentSpec& spec, const MemoryNeed& need) {
  return fmt::format("at least {}: parameters {}, gradients of {} lanes {}, optimiser {}, activations {}, evaluation rows {}",
                     bytes_text(need.bytes()), bytes_text(need.parameter_bytes), *spec.train.lanes, bytes_text(need.gradient_bytes),
                     bytes_text(need.optimizer_bytes), bytes_text(need.activation_bytes), bytes_text(need.data_bytes));
}

namespace {

std::string found_problem(const ExperimentSpec& spec) {
  constexpr double most_hidden = 64.0;  // times as much as the least may be needed, where activations are most of it
  const double machine = machine_memory();
  const MemoryNeed least = least_memory(spec);
  if (least.bytes() > machine)
    return fmt::format("it needs {}; this machine has {}: {}", memory_text(spec, least), bytes_text(machine), advice);
  if (least.bytes() * most_hidden < machine) return "";
  try {
    const auto need = static_cast<double>(count_cost(spec).bytes());
    if (need <= machine) return "";
    return fmt::format("it needs {}, most of it activations; this machine has {}: {}", bytes_text(need), bytes_text(machine), advice);
  } catch (const std::bad_alloc&) {  // one tensor of a step is more than the system would ever give
    return fmt::format("one tensor of a step has more bytes than this machine ({}): {}", bytes_text(machine), advice);
  }
}

}  // namespace

std::string memory_problem(const ExperimentSpec& spec) {
  if (is_limited()) return "";
  try {
    return found_problem(spec);
  } catch (const PluginFailure&) {  // costs the trial that it happens in
    return "";
  }
}

}  // namespace phasor
