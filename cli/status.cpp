#include "sweeps/status.h"

#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <thread>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/base/text.h"

namespace phasor::cli {

namespace {

constexpr std::size_t most_troubles = 10;

void print(const sweeps::SweepStatus& status) {
  const char* idle = status.queue.tasks.empty() ? "no sweep runs here" : "in Slurm";
  fmt::print("{:<16} {}   {}\n", status.name, status.folder, status.running ? "running" : idle);
  for (const sweeps::SweepStatus::Runner& runner : status.runners)
    fmt::print("{:<16} process {} on {}, {} jobs, works on {}{}\n", "runner", runner.process, runner.host, runner.jobs,
               runner.trials, runner.task.empty() ? "" : ", task " + runner.task + " in Slurm");
  for (const std::string& line : sweeps::slurm::lines_of(status.queue)) fmt::print("{:<16} {}\n", "in Slurm", line);
  if (!status.queue.problem.empty())
    fmt::print("{:<16} {}: trials that wait there count as missing\n", "not asked", status.queue.problem);
  fmt::print("{:<16} {}   queued {}   running {}   done {}   diverged {}   failed {}   missing {}\n", "trials",
             status.trials, status.queued, status.active, status.done, status.diverged, status.failed, status.missing);
  if (status.again > 0)
    fmt::print("{:<16} {} of these; until they end, their records of before count\n", "run again", status.again);
  if (status.damaged > 0) fmt::print("{:<16} {} files are no whole records; those trials run again\n", "damaged", status.damaged);
  if (status.lost_attempts > 0)
    fmt::print("{:<16} {} attempts: their machine or runner went away; their logs are kept\n", "lost", status.lost_attempts);
  if (status.others > 0) fmt::print("{:<16} {} records belong to no cell of this sweep\n", "not counted", status.others);
  if (status.eta_seconds)
    fmt::print("{:<16} {}, by the {} trials measured here, {} each\n", "ETA", duration_text(*status.eta_seconds),
               status.measured, duration_text(status.mean_seconds));
  const std::size_t all = status.troubles.size();
  for (std::size_t i = all > most_troubles ? all - most_troubles : 0; i < all; ++i) {
    const sweeps::Trouble& trouble = status.troubles[i];
    fmt::print("  {:<9} {}   {}\n            log    {}\n            rerun  {}\n",
               to_text(trouble.status), trouble.name, trouble.message,
               trouble.log, trouble.rerun);
  }
  if (all > most_troubles) fmt::print("            and {} before these; --json has all\n", all - most_troubles);
  fmt::print("{:<16} {}\n", "next", shell_words({"phasor", "table", status.folder}));
}

}  // namespace

namespace {

/// Again and again, as long as a sweep runs there; on a terminal in one place.
sweeps::SweepStatus watch(const std::string& folder) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  for (;;) {
    const sweeps::SweepStatus found = sweeps::read_status(folder);
    if (terminal) fmt::print("\033[H\033[J");
    print(found);
    std::fflush(stdout);
    if (!found.running && found.queue.tasks.empty()) return found;
    std::this_thread::sleep_for(std::chrono::seconds(terminal ? 2 : 10));
  }
}

}  // namespace

int status(const Arguments& arguments) {
  std::string folder;
  bool as_json = false, watches = false;
  Options options(
      "phasor status DIR [--watch] [--json]",
      "Shows where the trials of a sweep's folder stand, and when a running sweep will be done. Writes nothing.\n"
      "exit codes: 0 every trial has ended by itself (a diverged one too), 3 some failed, are missing or not done\n"
      "yet, 2 no folder of a sweep");
  options.positional("folder of a sweep", folder, true);
  options.flag("json", as_json, "for programs; with every trial that did not end well");
  options.flag("watch", watches, "again every 2 s (10 s when not on a terminal) until no sweep runs there");
  if (!options.parse(arguments)) return exit_code::done;
  if (watches && as_json) throw UserError("--watch --json: expected one of them; a program asks again by itself");
  if (watches) return watch(folder).complete() ? exit_code::done : exit_code::incomplete;
  const sweeps::SweepStatus found = sweeps::read_status(folder);
  if (as_json) {
    fmt::print("{}\n", sweeps::to_json(found).pretty());
  } else {
    print(found);
  }
  return found.complete() ? exit_code::done : exit_code::incomplete;
}

}  // namespace phasor::cli
