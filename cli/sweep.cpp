#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "analysis/table/table_spec.h"
#include "cli/commands.h"
#include "cli/fit_memory.h"
#include "cli/last_words.h"
#include "cli/options.h"
#include "cli/phases.h"
#include "cli/session.h"
#include "cli/slurm.h"
#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/base/text.h"
#include "core/cuda/devices.h"
#include "results/other_format.h"
#include "sweeps/expand.h"
#include "sweeps/folder.h"
#include "sweeps/runner.h"
#include "sweeps/same_sweep.h"

namespace phasor::cli {

namespace {

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

constexpr std::int64_t most_trials_per_device = 64;

/// Several trials in a process: what that cannot be asked for with.
void require_sharing(std::int64_t trials, const sweeps::Limits& limits) {
  if (trials > most_trials_per_device)
    throw UserError(fmt::format("--trials-per-device: found {}, expected at most {}: each has a thread and a queue of the device", trials,
                                most_trials_per_device));
  if (trials > 1 && limits.memory_mb > 0)
    throw UserError(fmt::format("--trials-per-device {}: found limits.memory_mb in the sweep file, which is kept for a process and not for one "
                                "of its trials; expected no such limit, or --jobs in place of --trials-per-device",
                                trials));
}

/// With several trials on a device: a process for each device, or for the processor's cores.
std::int64_t default_processes(const sweeps::Expansion& expansion, std::int64_t trials) {
  if (trials == 1) return sweeps::default_jobs(expansion);
  const std::int64_t devices = requested_devices(expansion).contains("cuda") ? count_cuda() : sweeps::default_jobs(expansion) / trials;
  return std::max<std::int64_t>(1, devices);
}

/// "2 jobs", "2 jobs of 16 trials"
std::string side_by_side(const sweeps::RunnerOptions& options) {
  const std::string jobs = fmt::format("{} jobs", options.jobs);
  return options.trials_per_device == 1 ? jobs : fmt::format("{} of {} trials", jobs, options.trials_per_device);
}

/// Before the first trial starts. Whether Slurm's machines have what is asked for shows there.
void require_devices(const sweeps::Expansion& expansion) {
  for (const std::string& request : requested_devices(expansion)) settle_device(request);
}

/// Only from times that were measured in this folder.
std::string estimate(const sweeps::FolderState& state, std::int64_t trials, const sweeps::RunnerOptions& options) {
  if (state.seconds.empty() || trials == 0) return "";
  const double sum = std::accumulate(state.seconds.begin(), state.seconds.end(), 0.0);
  const double mean = sum / static_cast<double>(state.seconds.size());
  return fmt::format("   about {} with {}, by the {} trials measured here",
                     duration_text(mean * static_cast<double>(trials) / static_cast<double>(options.places())),
                     side_by_side(options), state.seconds.size());
}

/// What another version wrote is no damage.
void refuse_other_formats(const sweeps::FolderState& state, const std::string& folder) {
  for (const results::Damaged& damaged : state.damaged)
    results::refuse_other_format(folder, std::filesystem::path(damaged.file).stem().string());
}

void print_folder(const sweeps::FolderState& state, const std::string& folder) {
  for (const results::Damaged& damaged : state.damaged) {
    fmt::print("damaged          {}: {}; that trial runs again\n", damaged.file, damaged.reason);
  }
  if (state.others > 0) {
    fmt::print("not counted      {} records in {} belong to no cell of this sweep\n", state.others, folder);
  }
  print_stale(state);
}

/// How long it takes is for one machine to say, not for a queue.
int show_plan(const Phases& phases, const sweeps::RunnerOptions& options, bool on_slurm, const Registry& registry) {
  const std::int64_t wanted = phases.to_run();
  print_product(phases);
  refuse_other_formats(phases.state(), options.folder);
  print_folder(phases.state(), options.folder);
  if (!on_slurm) {
    for (const std::string& line : devices_text(requested_devices(phases.sweep().expansion)))
      if (line.starts_with("!")) fmt::print("device           {}\n", line);
  }
  fmt::print("done {}   to run {}{}\n", phases.trials() - wanted, wanted,
             on_slurm ? "" : estimate(phases.state(), wanted, options));
  const std::string problem = on_slurm ? "" : memory_problem(phases, options, registry);
  const bool contained = phases.sweep().spec.limits.memory_mb > 0;
  if (!problem.empty())
    fmt::print("memory           ! {}{}\n", problem, contained ? "; under limits.memory_mb such a trial ends as oom, and the others run" : "");
  else
    fmt::print("fits             every cell that is not left out\n");
  if (!on_slurm) fmt::print("nothing was started\n");
  return problem.empty() || contained ? exit_code::done : exit_code::user;
}

int finish(const sweeps::RunSummary& summary, const std::string& folder) {
  fmt::print("{} {}   ok {}   diverged {}   failed {}   missing {}   {}\n",
             summary.interrupted ? "stopped after" : "finished", summary.started, summary.done, summary.diverged,
             summary.failed, summary.missing, duration_text(summary.seconds));
  if (summary.failed > 0)
    fmt::print("failed trials    their logs are in {}/logs; --retry-failed runs them again\n", folder);
  if (summary.missing > 0) fmt::print("missing trials   the same command runs them\n");
  if (summary.kept > 0)
    fmt::print("not replaced     {} trials that were to run again have the record of before; the same command runs them\n", summary.kept);
  fmt::print("next             {}\n", shell_words({"phasor", "table", folder}));
  if (summary.killed) return exit_code::interrupted;
  return summary.complete() ? exit_code::done : exit_code::incomplete;
}

}  // namespace

int sweep(const Arguments& arguments) {
  std::string file, folder, device;
  std::vector<std::string> settings, plugin_files;
  std::vector<std::string> slurm_settings;
  std::string launcher;
  std::optional<std::int64_t> jobs, sharing, chunk, max_tasks, task;
  std::optional<std::int64_t> lease, attempts, grace;
  bool dry_run = false, retry_failed = false, retry_stale = false, fail_fast = false, only_missing = false;
  Options options(
      "phasor sweep FILE.json [--set PATH=VALUE]... [--plugin FILE]... [--device WHERE] [--out DIR] [--jobs N]"
      " [--trials-per-device N] [--dry-run] [--launcher slurm [--slurm KEY=VALUE...]]",
      "Trains every trial of a sweep that has no record yet, each in a process of its own, or several in one that\n"
      "share a device. The same command\n"
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
  options.text("device", device, "cpu, cuda, or auto: what there is; short for --set run.device=WHERE");
  options.text("out", folder, "folder of records; default results/data/NAME");
  options.integer("jobs", jobs, 1, "processes side by side, which take turns at the GPUs; default: cores / threads of a trial");
  options.integer("trials-per-device", sharing, 1,
                  "trials side by side in each process, for models that leave most of a GPU idle; default 1. With more, --jobs is a process "
                  "for each GPU unless it is given");
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
  if (!dry_run) outlive_readers();
  if (task) return run_submitted(file, *task);
  const bool on_slurm = launcher == "slurm";
  if (!launcher.empty() && launcher != "local" && !on_slurm)
    throw UserError("--launcher: found \"" + launcher + "\", expected \"local\" or \"slurm\"");
  if (!on_slurm && (!slurm_settings.empty() || chunk || max_tasks))
    throw UserError("--slurm, --chunk and --max-tasks are for Slurm: expected --launcher slurm beside them, or none of them");
  const sweeps::slurm::Wishes wishes{sweeps::slurm::read_settings(slurm_settings), chunk, max_tasks, jobs, sharing.value_or(1)};
  if (!device.empty()) settings.push_back("run.device=" + device);
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
  const std::int64_t trials_per_device = sharing.value_or(1);
  require_sharing(trials_per_device, loaded.spec.limits);
  if (!dry_run && !on_slurm) require_devices(loaded.expansion);
  if (folder.empty()) folder = sweeps::default_folder(loaded.spec.name);
  if (const std::string damage = sweeps::require_same_sweep(folder, loaded, plugins.registry); !damage.empty())
    fmt::print("damaged          {}; it is written anew\n", damage);
  const std::int64_t parallel = jobs.value_or(default_processes(loaded.expansion, trials_per_device));

  sweeps::RunnerOptions chosen{folder, parallel, trials_per_device, retry_failed, retry_stale, fail_fast, plugin_files};
  chosen.lease_seconds = static_cast<double>(lease.value_or(60));
  chosen.attempts = attempts.value_or(chosen.attempts);
  chosen.grace_seconds = static_cast<double>(grace.value_or(20));
  if (dry_run) {
    const Phases phases(std::move(loaded), chosen, plugins.registry);
    const int code = show_plan(phases, chosen, on_slurm, plugins.registry);
    return on_slurm ? submit(phases, chosen, wishes, true) : code;
  }
  Phases phases(std::move(loaded), chosen, plugins.registry);
  if (!on_slurm && phases.sweep().spec.limits.memory_mb == 0) {
    if (const std::string problem = memory_problem(phases, chosen, plugins.registry); !problem.empty()) throw UserError("memory: " + problem);
  }
  sweeps::prepare_folder(folder);
  fmt::print("{} -> {}   {} trials, {} done{}\n", phases.sweep().spec.name, folder, phases.trials(),
             phases.trials() - phases.to_run(), on_slurm ? "" : ", " + side_by_side(chosen));
  refuse_other_formats(phases.state(), folder);
  print_folder(phases.state(), folder);
  std::fflush(stdout);
  if (on_slurm) return submit(phases, chosen, wishes, false);
  return finish(phases.run(), folder);
}

}  // namespace phasor::cli
