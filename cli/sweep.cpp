#include <cstdio>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "analysis/table_spec.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/phases.h"
#include "cli/session.h"
#include "cli/slurm.h"
#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/base/text.h"
#include "sweeps/base_change.h"
#include "sweeps/expand.h"
#include "sweeps/folder.h"
#include "sweeps/runner.h"

namespace phasor::cli {

namespace {

std::set<std::string> requested_devices(const sweeps::Expansion& expansion) {
  std::set<std::string> requests;
  for (const Trial& trial : expansion.trials) requests.insert(trial.spec.at_path("run.device")->as_string());
  return requests;
}

/// The sweep with `auto` settled by this machine, for all its trials, wherever they run: their ids depend on it.
sweeps::Sweep load(const std::string& file, std::vector<std::string> settings, const Registry& registry) {
  sweeps::Sweep loaded = sweeps::load_sweep(file, settings, registry);
  if (!requested_devices(loaded.expansion).contains("auto")) return loaded;
  const Place place = settle_device("auto");
  fmt::print("device           {}\n", place.text);
  settings.emplace_back(place.device != nullptr ? "run.device=cuda" : "run.device=cpu");
  loaded = sweeps::load_sweep(file, settings, registry);
  if (requested_devices(loaded.expansion).contains("auto"))
    throw UserError("run.device: found auto among the values of an axis, expected cpu or cuda there");
  return loaded;
}

/// Before the first trial starts. Whether Slurm's machines have what is asked for shows there.
void require_devices(const sweeps::Expansion& expansion) {
  for (const std::string& request : requested_devices(expansion)) settle_device(request);
}

/// Only from times that were measured in this folder.
std::string estimate(const sweeps::FolderState& state, std::int64_t trials, std::int64_t jobs) {
  if (state.seconds.empty() || trials == 0) return "";
  const double sum = std::accumulate(state.seconds.begin(), state.seconds.end(), 0.0);
  const double mean = sum / static_cast<double>(state.seconds.size());
  return fmt::format("   about {} with {} jobs, by the {} trials measured here",
                     duration_text(mean * static_cast<double>(trials) / static_cast<double>(jobs)), jobs,
                     state.seconds.size());
}

void print_folder(const sweeps::FolderState& state, const std::string& folder) {
  for (const results::Damaged& damaged : state.damaged) {
    fmt::print("damaged          {}: {}; that trial runs again\n", damaged.file, damaged.reason);
  }
  if (state.others > 0) {
    fmt::print("not counted      {} records in {} belong to no cell of this sweep\n", state.others, folder);
  }
  if (!state.stale.empty()) {
    fmt::print("other revision   {} records were made by other code ({}); --retry-stale runs them again\n",
               state.stale.size(), state.stale.front().revisions);
  }
}

/// How long it takes is for one machine to say, not for a queue.
void show_plan(const Phases& phases, const sweeps::RunnerOptions& options, bool on_slurm) {
  const std::int64_t wanted = phases.to_run();
  print_product(phases);
  print_folder(phases.state(), options.folder);
  fmt::print("done {}   to run {}{}\n", phases.trials() - wanted, wanted,
             on_slurm ? "" : estimate(phases.state(), wanted, options.jobs));
  fmt::print("fits             every cell that is not left out\n{}", on_slurm ? "" : "nothing was started\n");
}

int finish(const sweeps::RunSummary& summary, const std::string& folder) {
  fmt::print("{} {}   ok {}   diverged {}   failed {}   missing {}   {}\n",
             summary.interrupted ? "stopped after" : "finished", summary.started, summary.done, summary.diverged,
             summary.failed, summary.missing, duration_text(summary.seconds));
  if (summary.failed > 0)
    fmt::print("failed trials    their logs are in {}/logs; --retry-failed runs them again\n", folder);
  if (summary.missing > 0) fmt::print("missing trials   the same command runs them\n");
  fmt::print("next             {}\n", shell_words({"phasor", "table", folder}));
  if (summary.killed) return exit_code::interrupted;
  return summary.complete() ? exit_code::done : exit_code::incomplete;
}

}  // namespace

int sweep(const Arguments& arguments) {
  std::string file, folder;
  std::vector<std::string> settings, plugin_files;
  std::vector<std::string> slurm_settings;
  std::string launcher;
  std::optional<std::int64_t> jobs, chunk, max_tasks, task;
  std::optional<std::int64_t> lease, attempts, grace;
  bool dry_run = false, retry_failed = false, retry_stale = false, fail_fast = false, only_missing = false;
  Options options(
      "phasor sweep FILE.json [--set PATH=VALUE]... [--plugin FILE]... [--out DIR] [--jobs N] [--dry-run]"
      " [--launcher slurm [--slurm KEY=VALUE...]]",
      "Trains every trial of a sweep that has no record yet, each in a process of its own. The same command\n"
      "after an interruption runs what is missing; given twice at once, here or on another machine that sees the\n"
      "folder, both share the work. Ctrl-C lets running trials finish, or stop at a checkpoint where they keep\n"
      "them (run.checkpoint_every); twice ends them. SIGTERM stops all after their step. With \"confirm\" in the\n"
      "file, what the selection chooses is then run on the fresh seeds. With --launcher slurm the missing trials\n"
      "are submitted as a job array (exit code 0: submitted, or in Slurm already); given again, those that are\n"
      "neither done nor in Slurm.\n"
      "exit codes: 0 every trial has ended by itself (a diverged one too), 3 some failed or are missing,\n"
      "2 a mistake in a file or option (nothing was started), 130 running trials were ended");
  options.positional("sweep file", file, true);
  options.list("set", settings, "PATH=VALUE", "change one value of the base experiment, such as train.steps=100");
  options.list("plugin", plugin_files, "FILE", plugin_help);
  options.text("out", folder, "folder of records; default results/data/NAME");
  options.integer("jobs", jobs, 1, "trials side by side; default: cores / threads of a trial");
  options.flag("dry-run", dry_run, "show what would run, start nothing");
  options.flag("only-missing", only_missing, "run trials without a record; this is the default");
  options.flag("retry-failed", retry_failed, "run trials again that ended as error, oom, crashed, timeout or lost");
  options.flag("retry-stale", retry_stale, "run trials again whose record is of another revision of core or plugins");
  options.flag("fail-fast", fail_fast, "the first failure starts no new trial");
  options.integer("lease", lease, 1, "seconds without a sign of life after which others take a trial over; default 60");
  options.integer("attempts", attempts, 1, "lost attempts in a row after which a trial is recorded as lost; default 3");
  options.integer("grace", grace, 0, "seconds from SIGTERM until running trials are ended; default 20");
  options.text("launcher", launcher, "local (default): runs trials here; slurm: submits them to Slurm");
  options.pairs("slurm", slurm_settings, "what sbatch is asked for, such as partition=short time=2:00:00");
  options.integer("chunk", chunk, 1, "with slurm: trials of a task; default: as many as make at most 100 tasks");
  options.integer("max-tasks", max_tasks, 1, "with slurm: tasks that may run at the same time; default: any number");
  options.hidden("task", task);
  if (!options.parse(arguments)) return exit_code::done;
  if (task) return run_submitted(file, *task);
  const bool on_slurm = launcher == "slurm";
  if (!launcher.empty() && launcher != "local" && !on_slurm)
    throw UserError("--launcher: found \"" + launcher + "\", expected \"local\" or \"slurm\"");
  if (!on_slurm && (!slurm_settings.empty() || chunk || max_tasks))
    throw UserError("--slurm, --chunk and --max-tasks are for Slurm: expected --launcher slurm beside them, or none of them");
  const sweeps::slurm::Wishes wishes{sweeps::slurm::read_settings(slurm_settings), chunk, max_tasks, jobs};
  if (only_missing && (retry_failed || retry_stale))
    throw UserError("--only-missing: found with --retry-failed or --retry-stale, expected without; leave one of them out");

  const Plugins plugins(plugin_files);
  plugins.require();
  sweeps::Sweep loaded = load(file, settings, plugins.registry);
  analysis::read_table_spec(loaded.spec.table);  // what the table cannot read is said before hours of training
  for (const std::string& missing : loaded.expansion.missing) {
    if (!dry_run) throw UserError("task: " + missing);
    fmt::print("missing          {}\n", missing);
  }
  if (!dry_run && !on_slurm) require_devices(loaded.expansion);
  if (folder.empty()) folder = sweeps::default_folder(loaded.spec.name);
  sweeps::require_same_base(folder, loaded, plugins.registry);
  const std::int64_t parallel = jobs.value_or(sweeps::default_jobs(loaded.expansion));

  sweeps::RunnerOptions chosen{folder, parallel, retry_failed, retry_stale, fail_fast, plugin_files};
  chosen.lease_seconds = static_cast<double>(lease.value_or(60));
  chosen.attempts = attempts.value_or(chosen.attempts);
  chosen.grace_seconds = static_cast<double>(grace.value_or(20));
  if (dry_run) {
    const Phases phases(std::move(loaded), chosen, plugins.registry);
    show_plan(phases, chosen, on_slurm);
    return on_slurm ? submit(phases, chosen, wishes, true) : exit_code::done;
  }
  sweeps::prepare_folder(folder);
  Phases phases(std::move(loaded), chosen, plugins.registry);
  fmt::print("{} -> {}   {} trials, {} done{}\n", phases.sweep().spec.name, folder, phases.trials(),
             phases.trials() - phases.to_run(), on_slurm ? "" : fmt::format(", {} jobs", parallel));
  print_folder(phases.state(), folder);
  std::fflush(stdout);
  if (on_slurm) return submit(phases, chosen, wishes, false);
  return finish(phases.run(), folder);
}

}  // namespace phasor::cli
