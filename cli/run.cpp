#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/session.h"
#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/base/text.h"
#include "experiments/checkpoint.h"
#include "experiments/trial.h"
#include "results/files.h"
#include "results/store.h"
#include "sweeps/folder.h"
#include "sweeps/lease.h"

namespace phasor::cli {

namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

/// The first Ctrl-C ends the trial after its step, the second the process. SIGTERM may come twice, from the runner and from
/// the machine that goes, and both times asks for the checkpoint.
void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

/// What the process may ask for, so that beyond it the trial ends as oom and its neighbours notice nothing.
void limit_memory(std::int64_t megabytes) {
  const rlim_t bytes = static_cast<rlim_t>(megabytes) << 20;
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_DATA, &limit) != 0)
    throw UserError(fmt::format("--memory-mb {}: {}", megabytes, std::strerror(errno)));
}

/// A trial of a sweep does not outlive its runner, however that ends: otherwise the next one would do it twice.
void follow_parent(std::int64_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::exit(exit_code::interrupted);
}

void print_scores(const results::TrialRecord& record) {
  std::int64_t last = 0;
  for (const results::EvalPoint& point : record.evals) last = std::max(last, point.step);
  std::string head, line;
  const auto flush = [&] {
    if (!head.empty()) fmt::print("{:<24}{}\n", head, line);
    line.clear();
  };
  // Stored slice by slice; shown metric by metric.
  for (const char* split : {"valid", "test"}) {
    for (const std::string& metric : results::metric_names()) {
      head.clear();
      for (const results::EvalPoint& point : record.evals) {
        if (point.step != last || point.split != split || point.metric != metric) continue;
        head = fmt::format("{} {}", split, metric);
        line += fmt::format(
            "   {}: {}", point.slice < 0 ? "all" : std::to_string(point.slice),
            metric == "loss" ? fmt::format("{:.4g}", point.value) : score_text(point.value));
      }
      flush();
    }
  }
}

double summary_of(const results::TrialRecord& record, const std::string& wanted) {
  for (const auto& [name, value] : record.summary)
    if (name == wanted) return value;
  return 0.0;
}

int print_record(const results::TrialRecord& record, const std::string& folder) {
  print_scores(record);
  for (const auto& [name, value] : record.summary) {
    if (name == "steps_to_solve" || name == "step_ms" || name.starts_with("seconds"))
      fmt::print("{:<24}   {:.4g}\n", name, value);
    if (name.starts_with("shared_rows.") && value > 0.0)
      fmt::print("{:<24}   {:.0f} of these evaluation rows, or parts of rows, are in training rows too ({:.4g} by chance): they do not measure generalisation\n",
                 name, value, summary_of(record, "shared_by_chance." + name.substr(12)));
  }
  if (!record.bits.empty()) fmt::print("{:<24}   {}\n", "bits", record.bits);
  fmt::print("{:<24}   {}/{}.h5\n", "record", folder, record.id);
  if (record.status == results::Status::done) return exit_code::done;
  fmt::print("{}: {}\n", to_text(record.status), record.message);
  return record.status == results::Status::diverged ? exit_code::diverged : exit_code::failed;
}

results::TrialRecord train(const ExperimentSpec& spec, const std::string& command, const std::string& folder, Device* device) {
  Progress progress("train", spec.train.steps);
  const auto watch = [&](const TrialProgress& now) {
    if (now.phase == "train") {
      progress.update(now.step,
                      fmt::format("loss {:.4g}   lr {:.3g}   grad norm {:.3g}", now.loss, now.lr, now.grad_norm));
    } else {
      progress.update(now.step, "evaluating " + now.phase);
    }
  };
  // A log on a full disk must not end the trial: print() would throw.
  const auto warn = [](const std::string& line) { std::fputs(fmt::format("phasor: {}\n", line).c_str(), stderr); };
  return run_trial(spec, {command, watch, [] { return interrupted.load(); }, warn, folder, device});
}

/// Stores the record. A trial of a sweep is stored once: by the runner that holds its lease, and only if nobody has done it.
int store(const results::TrialRecord& record, const ExperimentSpec& spec, const std::string& folder,
          const std::optional<std::int64_t>& lease) {
  if (!lease) {
    results::save(record, folder);
  } else if (!sweeps::holds_lease(folder, record.id, *lease)) {
    throw UserError("the result of " + record.id + " is not stored: another runner has taken the trial over meanwhile");
  } else if (!results::save_new(record, folder)) {
    fmt::print("there is a record of it already; this result is not stored\n");
  }
  drop_checkpoint(folder, record, spec.run.keep_checkpoint);
  return print_record(record, folder);
}

std::string command_line(const std::string& file, const std::vector<std::string>& settings,
                         const std::vector<std::string>& plugin_files, const std::optional<std::int64_t>& memory) {
  std::vector<std::string> words = {"phasor", "run", file};
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  for (const std::string& plugin : plugin_files) words.insert(words.end(), {"--plugin", plugin});
  if (memory) words.insert(words.end(), {"--memory-mb", std::to_string(*memory)});
  return shell_words(words);
}

}  // namespace

int run(const Arguments& arguments) {
  std::string file, device, folder = sweeps::default_folder("runs");
  std::vector<std::string> settings, plugin_files;
  bool force = false;
  std::optional<std::int64_t> memory, parent, lease;
  Options options(
      "phasor run FILE.json [--set PATH=VALUE]... [--device WHERE] [--plugin FILE]... [--out DIR] [--force]",
      "Trains one experiment and stores its record as DIR/<id>.h5; the id follows from the experiment alone.\n"
      "A trial that has a record is not run again: its numbers are shown.\n"
      "exit codes: 0 done, 4 diverged (loss or gradient not finite), 1 failed, 2 a mistake in a file or\n"
      "option (nothing was started), 130 interrupted (a checkpoint is kept where run.checkpoint_every asks for them)");
  options.positional("experiment file", file, true);
  options.list("set", settings, "PATH=VALUE", "change one value, such as optimizer.lr=1e-3");
  options.list("plugin", plugin_files, "FILE", plugin_help);
  options.text("device", device, "cpu, cuda, or auto: what there is; short for --set run.device=WHERE");
  options.text("out", folder, "folder of records; default results/data/runs");
  options.flag("force", force, "run again although there is a record, and replace it");
  options.integer("memory-mb", memory, 1, "memory the process may ask for; default: no limit");
  options.hidden("child", parent);
  options.hidden("lease", lease);
  if (!options.parse(arguments)) return exit_code::done;
  if (!device.empty()) settings.push_back("run.device=" + device);
  if (parent) follow_parent(*parent);
  if (memory) limit_memory(*memory);

  const Plugins plugins(plugin_files);
  plugins.require();
  ExperimentSpec spec(plugins.registry);
  read_experiment(file, settings, spec);
  require_data(spec);
  const Place place = settle_device(spec.run.device);
  const Trial trial = make_trial(spec);
  sweeps::prepare_folder(folder);
  fmt::print("trial {}   {}\n", trial.id, title_of(spec));
  if (!force && results::has(folder, trial.id)) {
    fmt::print("there is a record of it already; --force runs it again\n");
    return print_record(results::load(folder + "/" + trial.id + ".h5"), folder);
  }
  if (spec.run.device != "cpu") fmt::print("device {}\n", place.text);
  if (force) remove_checkpoint(folder, trial.id);
  std::fflush(stdout);
  watch_interrupts();
  const results::TrialRecord record = train(spec, command_line(file, settings, plugin_files, memory), folder, place.device.get());
  if (interrupted && record.status == results::Status::error) {
    if (spec.run.checkpoint_every > 0)
      fmt::print("{}; the same command goes on from {}\n", record.message, results::checkpoint_file(folder, record.id));
    else
      fmt::print("{}; nothing was stored (run.checkpoint_every would keep what is done)\n", record.message);
    return exit_code::interrupted;
  }
  return store(record, spec, folder, lease);
}

}  // namespace phasor::cli
