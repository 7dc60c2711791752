#include "cli/trial_run.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fmt/format.h>
#include <new>
#include <string_view>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/base/text.h"
#include "experiments/checkpoint.h"
#include "experiments/trainer.h"
#include "experiments/trial.h"
#include "results/files.h"
#include "results/other_format.h"
#include "results/replace.h"
#include "results/store.h"
#include "sweeps/folder.h"
#include "sweeps/lease.h"

namespace phasor::cli {

namespace {

std::atomic<bool> asked_to_end = false;
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

void print_scores(std::FILE* out, const results::TrialRecord& record) {
  std::int64_t last = 0;
  for (const results::EvalPoint& point : record.evals) last = std::max(last, point.step);
  std::string head, line;
  const auto flush = [&] {
    if (!head.empty()) fmt::print(out, "{:<24}{}\n", head, line);
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

int print_record(std::FILE* out, const results::TrialRecord& record, const std::string& folder) {
  print_scores(out, record);
  for (const auto& [name, value] : record.summary) {
    if (name == "steps_to_solve" || name == "step_ms" || name.starts_with("seconds"))
      fmt::print(out, "{:<24}   {:.4g}\n", name, value);
    if (name.starts_with("shared_rows.") && value > 0.0)
      fmt::print(out, "{:<24}   {:.0f} of these evaluation rows, or parts of rows, are in training rows too ({:.4g} by chance): they do not measure generalisation\n",
                 name, value, summary_of(record, "shared_by_chance." + name.substr(12)));
  }
  if (!record.bits.empty()) fmt::print(out, "{:<24}   {}\n", "bits", record.bits);
  fmt::print(out, "{:<24}   {}/{}.h5\n", "record", folder, record.id);
  if (record.status == results::Status::done) return exit_code::done;
  fmt::print(out, "{}: {}\n", to_text(record.status), record.message);
  return record.status == results::Status::diverged ? exit_code::diverged : exit_code::failed;
}

Progress::Output lines_on(std::FILE* notes) {
  Progress::Output output = Progress::Output::standard_error();
  if (notes == stderr) return output;
  output.terminal = false;
  output.write = [notes](std::string_view text) { std::fwrite(text.data(), 1, text.size(), notes); };
  return output;
}

results::TrialRecord train(const TrialRun& run, const std::string& command, const ExperimentSpec& spec, Device* device) {
  Progress progress("train", spec.train.steps, 0, lines_on(run.notes));
  const auto watch = [&](const TrialProgress& now) {
    if (now.phase == "train") {
      progress.update(now.step,
                      fmt::format("loss {:.4g}   lr {:.3g}   grad norm {:.3g}", now.loss, now.lr, now.grad_norm));
    } else {
      progress.update(now.step, "evaluating " + now.phase);
    }
  };
  // A log on a full disk must not end the trial: print() would throw.
  const auto warn = [&](const std::string& line) { std::fputs(fmt::format("phasor: {}\n", line).c_str(), run.notes); };
  return run_trial(spec, {command, watch, run.stop, warn, run.folder, device});
}

/// Stores the record. A trial of a sweep is stored once: by the runner that holds its lease, and only if nobody has done it since the
/// record was `seen` that it is to replace.
int store(const TrialRun& run, const results::TrialRecord& record, const ExperimentSpec& spec, const std::optional<results::Stamp>& seen) {
  if (run.lease && !sweeps::holds_lease(run.folder, record.id, *run.lease))
    throw UserError("the result of " + record.id + " is not stored: another runner has taken the trial over meanwhile");
  if ((!run.lease || run.replaces) && results::is_failure(record.status) && results::has_result(run.folder, record.id)) {
    fmt::print(run.out, "{}: {}; the result that {}/{}.h5 holds stays\n", to_text(record.status), record.message, run.folder, record.id);
    return exit_code::failed;
  }
  if (!run.lease) {
    results::save(record, run.folder);
  } else if (!results::save_instead(record, run.folder, seen)) {
    fmt::print(run.out, "there is a record of it already; this result is not stored\n");
  }
  drop_checkpoint(run.folder, record, spec.run.keep_checkpoint);
  return print_record(run.out, record, run.folder);
}

std::string command_line(const TrialRun& run) {
  std::vector<std::string> words = {"phasor", "run", run.file};
  for (const std::string& setting : run.settings) words.insert(words.end(), {"--set", setting});
  for (const std::string& plugin : run.plugin_files) words.insert(words.end(), {"--plugin", plugin});
  if (run.memory_mb) words.insert(words.end(), {"--memory-mb", std::to_string(*run.memory_mb)});
  return shell_words(words);
}

/// A fault of one kernel ends every queue of the process on that device.
bool answers(Device& device) {
  try {
    device.synchronize();
    return true;
  } catch (...) {
    return false;
  }
}

/// A report of many mistakes has a line for each; every line says who speaks.
void print_error(std::FILE* to, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::fputs(fmt::format("phasor: {}\n", text.substr(0, end)).c_str(), to);  // print() throws where a log has no room
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked_to_end = true; };
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return asked_to_end.load(); }

void follow_parent(std::int64_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::exit(exit_code::interrupted);
}

int carry_out(const TrialRun& run, const Registry& registry) {
  ExperimentSpec spec(registry);
  read_experiment(run.file, run.settings, spec);
  require_data(spec);
  const Place place = settle_device(spec.run.device, run.slot);
  attention_library_of(spec, place.device.get());
  const Trial trial = make_trial(spec);
  if (place.device == nullptr && (run.force || run.replaces || !results::has(run.folder, trial.id))) require_memory(spec);
  sweeps::prepare_folder(run.folder);
  fmt::print(run.out, "trial {}   {}\n", trial.id, title_of(spec));
  const std::optional<results::Stamp> seen = run.replaces ? results::stamp_of(run.folder + "/" + trial.id + ".h5") : std::nullopt;
  if (!run.force && !run.replaces && results::has(run.folder, trial.id)) {
    const results::TrialRecord record = results::load(run.folder + "/" + trial.id + ".h5");
    const std::string revisions = sweeps::other_revisions(record, registry);
    if (revisions.empty())
      fmt::print(run.out, "there is a record of it already; --force runs it again\n");
    else
      fmt::print(run.out, "there is a record of it that was made by other code ({}): these are the numbers of that; --force runs it again with "
                          "what is here\n", revisions);
    return print_record(run.out, record, run.folder);
  }
  results::refuse_other_format(run.folder, trial.id);
  if (spec.run.device != "cpu") fmt::print(run.out, "device {}\n", place.text);
  if (run.force) remove_checkpoint(run.folder, trial.id);
  std::fflush(run.out);
  const results::TrialRecord record = train(run, command_line(run), spec, place.device.get());
  if (run.beside_others && results::is_failure(record.status) && place.device != nullptr && !answers(*place.device)) {
    print_error(run.notes, record.message + "; the device does not answer any more");
    return lost_device;
  }
  if (run.stop && run.stop() && record.status == results::Status::error) {
    if (spec.run.checkpoint_every > 0)
      fmt::print(run.out, "{}; the same command goes on from {}\n", record.message, results::checkpoint_file(run.folder, record.id));
    else
      fmt::print(run.out, "{}; nothing was stored (run.checkpoint_every would keep what is done)\n", record.message);
    return exit_code::interrupted;
  }
  return store(run, record, spec, seen);
}

int told(std::FILE* to, const std::function<int()>& work) {
  try {
    return work();
  } catch (const UserError& error) {
    print_error(to, error.what());
    return exit_code::user;
  } catch (const InternalError& error) {
    print_error(to, std::string("internal error: ") + error.what());
  } catch (const std::bad_alloc& error) {
    const std::string_view text = error.what();  // with how much, where it is known
    print_error(to, text.starts_with("out of memory") ? text : "out of memory");
  } catch (const std::exception& error) {
    print_error(to, error.what());
  }
  return exit_code::failed;
}

}  // namespace phasor::cli
