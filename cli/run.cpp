#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/session.h"
#include "core/base/progress.h"
#include "core/base/text.h"
#include "experiments/checkpoint.h"
#include "experiments/trial.h"
#include "results/store.h"
#include "sweeps/folder.h"

namespace phasor::cli {

namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

/// The first Ctrl-C ends the trial after its step, the second the process.
void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
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

results::TrialRecord train(const ExperimentSpec& spec, const std::string& command, const std::string& folder) {
  Progress progress("train", spec.train.steps);
  const auto watch = [&](const TrialProgress& now) {
    if (now.phase == "train") {
      progress.update(now.step,
                      fmt::format("loss {:.4g}   lr {:.3g}   grad norm {:.3g}", now.loss, now.lr, now.grad_norm));
    } else {
      progress.update(now.step, "evaluating " + now.phase);
    }
  };
  const auto warn = [](const std::string& line) { fmt::print(stderr, "phasor: {}\n", line); };
  return run_trial(spec, {command, watch, [] { return interrupted.load(); }, warn, folder});
}

std::string command_line(const std::string& file, const std::vector<std::string>& settings,
                         const std::vector<std::string>& plugin_files) {
  std::vector<std::string> words = {"phasor", "run", file};
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  for (const std::string& plugin : plugin_files) words.insert(words.end(), {"--plugin", plugin});
  return shell_words(words);
}

}  // namespace

int run(const Arguments& arguments) {
  std::string file, folder = sweeps::default_folder("runs");
  std::vector<std::string> settings, plugin_files;
  bool force = false;
  std::optional<std::int64_t> parent;
  Options options(
      "phasor run FILE.json [--set PATH=VALUE]... [--plugin FILE]... [--out DIR] [--force]",
      "Trains one experiment and stores its record as DIR/<id>.h5; the id follows from the experiment alone.\n"
      "A trial that has a record is not run again: its numbers are shown.\n"
      "exit codes: 0 done, 4 diverged (loss or gradient not finite), 1 failed, 2 a mistake in a file or\n"
      "option (nothing was started), 130 interrupted (a checkpoint is kept where run.checkpoint_every asks for them)");
  options.positional("experiment file", file, true);
  options.list("set", settings, "PATH=VALUE", "change one value, such as optimizer.lr=1e-3");
  options.list("plugin", plugin_files, "FILE", plugin_help);
  options.text("out", folder, "folder of records; default results/data/runs");
  options.flag("force", force, "run again although there is a record, and replace it");
  options.hidden("child", parent);
  if (!options.parse(arguments)) return exit_code::done;
  if (parent) follow_parent(*parent);

  const Plugins plugins(plugin_files);
  plugins.require();
  ExperimentSpec spec(plugins.registry);
  read_experiment(file, settings, spec);
  require_data(spec);
  const Trial trial = make_trial(spec);
  sweeps::prepare_folder(folder);
  fmt::print("trial {}   {}\n", trial.id, title_of(spec));
  if (!force && results::has(folder, trial.id)) {
    fmt::print("there is a record of it already; --force runs it again\n");
    return print_record(results::load(folder + "/" + trial.id + ".h5"), folder);
  }
  if (force) remove_checkpoint(folder, trial.id);
  std::fflush(stdout);
  watch_interrupts();
  const results::TrialRecord record = train(spec, command_line(file, settings, plugin_files), folder);
  if (interrupted && record.status == results::Status::error) {
    if (spec.run.checkpoint_every > 0)
      fmt::print("{}; the same command goes on from {}\n", record.message, checkpoint_file(folder, record.id));
    else
      fmt::print("{}; nothing was stored (run.checkpoint_every would keep what is done)\n", record.message);
    return exit_code::interrupted;
  }
  results::save(record, folder);
  return print_record(record, folder);
}

}  // namespace phasor::cli
