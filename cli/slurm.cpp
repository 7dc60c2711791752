#include "cli/slurm.h"

#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <vector>

#include "cli/commands.h"
#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/base/text.h"
#include "sweeps/launchers/slurm.h"

namespace phasor::cli {

namespace slurm = sweeps::slurm;

namespace {

void print_queue(const slurm::Queue& queue) {
  for (const std::string& line : slurm::lines_of(queue)) fmt::print("{:<16} {}\n", "in Slurm", line);
}

/// Trials that a submission now cannot name yet.
void print_awaiting(const Phases& phases) {
  if (const std::int64_t awaiting = phases.sweep().expansion.manifest.awaiting; awaiting > 0)
    fmt::print("{:<16} {} trials await the selection: the same command submits them when it is complete\n", "confirm", awaiting);
}

int nothing_to_submit(const Phases& phases, const sweeps::RunnerOptions& options) {
  const std::size_t missing = sweeps::to_run(phases.sweep().expansion, phases.state(), options).size();
  std::int64_t failed = 0;
  for (const auto& [id, status] : phases.state().ended) failed += results::is_failure(status) ? 1 : 0;
  fmt::print("{:<16} {}\n", "submitted", missing > 0 ? fmt::format("nothing: the {} missing trials are in Slurm already", missing)
                                                    : "nothing: no trial that is known is missing");
  if (failed > 0) fmt::print("{:<16} {}; --retry-failed submits them again\n", "failed", failed);
  print_awaiting(phases);
  return missing > 0 || failed == 0 ? exit_code::done : exit_code::incomplete;
}

}  // namespace

int submit(const Phases& phases, const sweeps::RunnerOptions& options, const slurm::Wishes& wishes, bool dry_run) {
  const sweeps::Sweep& sweep = phases.sweep();
  const slurm::Queue queue = slurm::read_queue(options.folder);
  if (!queue.problem.empty()) {
    const std::string text = "--launcher slurm: earlier trials may be in Slurm, and it cannot be asked: " + queue.problem;
    if (!dry_run) throw UserError(text + "; give the command where Slurm answers, or leave --launcher out");
    fmt::print("{:<16} {}\n", "not asked", text);
  }
  print_queue(queue);
  const std::vector<std::size_t> trials = slurm::to_submit(sweep.expansion, phases.state(), options, queue);
  if (trials.empty()) {
    const int code = nothing_to_submit(phases, options);
    return dry_run ? exit_code::done : code;
  }
  const slurm::Plan plan =
      slurm::make_plan(trials, sweeps::threads_of(sweep.expansion), sweep.spec.limits, options.grace_seconds, wishes);
  if (dry_run) {
    fmt::print("{:<16} {}, by this script:\n\n{}\nnothing was submitted\n", "would submit", slurm::to_text(plan),
               slurm::next_script(sweep, options.folder, plan));
    print_awaiting(phases);
    return exit_code::done;
  }
  const slurm::Job job = slurm::submit(sweep, phases.state(), options, plan);
  fmt::print("{:<16} job {}: {}\n", "submitted", job.number, slurm::to_text(plan));
  print_awaiting(phases);
  fmt::print("{:<16} {}/job.sh; what its tasks say goes beside it\n", "script", job.place);
  fmt::print("{:<16} {}\n", "next", shell_words({"phasor", "status", options.folder}));
  return exit_code::done;
}

int run_submitted(const std::string& file, std::int64_t task) {
  const std::string place = std::filesystem::absolute(file).parent_path().string();
  const slurm::TaskEnd end = slurm::run_task(place, task);
  const sweeps::RunSummary& all = end.summary;
  fmt::print("{} {}   ok {}   diverged {}   failed {}   missing {}   {}\n", all.interrupted ? "stopped after" : "finished", all.started,
             all.done, all.diverged, all.failed, all.missing, duration_text(all.seconds));
  if (!end.requeue.empty()) fmt::print("{:<16} {}\n", "task", end.requeue);
  if (all.killed) return exit_code::interrupted;
  return all.complete() ? exit_code::done : exit_code::incomplete;
}

}  // namespace phasor::cli
