#include "sweeps/runner.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <sched.h>
#include <set>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "results/files.h"
#include "results/store.h"
#include "sweeps/child.h"

namespace phasor::sweeps {

namespace {

using results::Status;

struct Running {
  std::size_t trial = 0;
  pid_t process = 0;
  std::string log;
};

/// The first 8 digits of the id, or all where two trials of the sweep would share a log.
std::vector<std::string> log_names(const Expansion& expansion) {
  std::map<std::string, int> uses;
  for (const Trial& trial : expansion.trials) ++uses[trial.id.substr(0, 8)];
  std::vector<std::string> names;
  for (const Trial& trial : expansion.trials) {
    const std::string head = trial.id.substr(0, 8);
    names.push_back((uses[head] > 1 ? trial.id : head) + ".log");
  }
  return names;
}

class Runner {
 public:
  Runner(const Sweep& sweep, const FolderState& state, const RunnerOptions& options, Progress::Output output)
      : expansion_(sweep.expansion),
        options_(options),
        queue_(to_run(expansion_, state, options)),
        logs_(log_names(expansion_)),
        ended_(state.ended),
        progress_(sweep.spec.name, static_cast<std::int64_t>(expansion_.trials.size()),
                  static_cast<std::int64_t>(expansion_.trials.size() - queue_.size()), std::move(output)) {
    std::reverse(queue_.begin(), queue_.end());  // the next one is at the back
    for (const std::size_t trial : queue_) ended_.erase(expansion_.trials[trial].id);
  }

  RunSummary run();

 private:
  void start_next();
  bool reap();
  void on_signal(int signal);
  void finish(const Running& child, const Exit& exit);
  void record_failure(const Running& child, const Exit& exit);
  void tell(const Running& child, Status status, const std::string& message);
  void show();
  std::vector<std::string> rerun_command(std::size_t trial) const;
  std::string file_of(std::size_t trial, const char* ending) const {
    return options_.folder + "/" + expansion_.trials[trial].id + ending;
  }
  std::int64_t count(Status status) const {
    return std::count_if(ended_.begin(), ended_.end(), [&](const auto& e) { return e.second == status; });
  }

  const Expansion& expansion_;
  const RunnerOptions& options_;
  std::vector<std::size_t> queue_;
  std::vector<std::string> logs_;
  std::map<std::string, Status> ended_;
  std::vector<Running> running_;
  Progress progress_;
  int interrupts_ = 0;
  std::int64_t started_ = 0;
};

std::vector<std::string> Runner::rerun_command(std::size_t trial) const {
  std::vector<std::string> words = {"phasor", "run", file_of(trial, ".json")};
  for (const std::string& plugin : options_.plugin_files) words.insert(words.end(), {"--plugin", plugin});
  return words;
}

void Runner::start_next() {
  const std::size_t trial = queue_.back();
  queue_.pop_back();
  const Trial& chosen = expansion_.trials[trial];
  Running child{trial, 0, options_.folder + "/logs/" + logs_[trial]};
  try {
    // A record that is there now is damaged or is to be replaced; it must not pass for what this run made.
    std::filesystem::remove(file_of(trial, ".h5"));
    results::write_whole(options_.folder, chosen.id + ".json", chosen.id, chosen.spec.pretty() + "\n");
    std::vector<std::string> command = rerun_command(trial);
    command.insert(command.end(), {"--out", options_.folder, "--child", std::to_string(::getpid())});
    child.process = start_self(command, child.log);
    ++started_;
    running_.push_back(std::move(child));
  } catch (const std::exception& error) {
    ended_[chosen.id] = Status::error;
    tell(child, Status::error, error.what());
  }
}

/// What the process of a trial could not say itself.
void Runner::record_failure(const Running& child, const Exit& exit) {
  const std::string line = last_line(child.log);
  results::TrialRecord record;
  record.id = expansion_.trials[child.trial].id;
  record.spec = expansion_.trials[child.trial].spec;
  record.status = Status::error;
  record.message =
      (exit.by_signal ? "" : "ended without a record, ") + to_text(exit) + (line.empty() ? "" : ": " + line);
  record.provenance = {{"command", shell_words(rerun_command(child.trial))}};
  std::string unsaved;
  ended_[record.id] = record.status;  // failed, not missing, even where a full disk takes no record of it
  try {
    results::save(record, options_.folder);
  } catch (const UserError& error) {
    unsaved = std::string("; not recorded: ") + error.what();
  }
  tell(child, record.status, record.message + unsaved);
}

void Runner::finish(const Running& child, const Exit& exit) {
  std::optional<results::TrialRecord> record;
  try {
    record = results::load(file_of(child.trial, ".h5"));
  } catch (const UserError&) {
    if (interrupts_ < 2) record_failure(child, exit);
    return;
  }
  ended_[record->id] = record->status;
  if (record->status != Status::done) tell(child, record->status, record->message);
}

void Runner::tell(const Running& child, Status status, const std::string& message) {
  const results::Manifest& manifest = expansion_.manifest;
  const std::string name = cell_name(manifest, manifest.trials[expansion_.first_cell[child.trial]]);
  const std::string word = status == Status::diverged ? "diverged" : "failed  ";
  std::vector<std::string> rerun = rerun_command(child.trial);
  rerun.insert(rerun.end(), {"--out", options_.folder, "--force"});
  progress_.note("  " + word + "  " + name + "   " + message + "\n            log    " + child.log +
                 "\n            rerun  " + shell_words(rerun));
}

bool Runner::reap() {
  bool any = false;
  for (std::size_t i = 0; i < running_.size();) {
    const std::optional<Exit> exit = ended(running_[i].process);
    if (!exit) {
      ++i;
      continue;
    }
    const Running child = running_[i];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    finish(child, *exit);
    any = true;
  }
  return any;
}

void Runner::on_signal(int signal) {
  if (signal == 0 || signal == SIGCHLD) return;
  interrupts_ = signal == SIGINT ? interrupts_ + 1 : 2;
  if (interrupts_ == 1) {
    progress_.note("stopping: " + std::to_string(running_.size()) +
                   " running trials finish, no new one starts; Ctrl-C again ends them at once");
  } else {
    for (const Running& child : running_) kill_group(child.process);
  }
}

void Runner::show() {
  const auto number = [](std::int64_t n, const char* word) { return std::to_string(n) + word; };
  progress_.update(static_cast<std::int64_t>(ended_.size()),
                   number(static_cast<std::int64_t>(running_.size()), " running   ") +
                       number(count(Status::diverged), " diverged   ") + number(count(Status::error), " failed"));
}

RunSummary Runner::run() {
  const auto begin = std::chrono::steady_clock::now();
  SignalQueue signals;
  while (!running_.empty() || (!queue_.empty() && interrupts_ == 0)) {
    while (interrupts_ == 0 && !queue_.empty() && static_cast<std::int64_t>(running_.size()) < options_.jobs)
      start_next();
    show();
    if (running_.empty()) continue;
    on_signal(signals.wait(0.2));
    reap();
  }
  RunSummary summary;
  summary.done = count(Status::done);
  summary.diverged = count(Status::diverged);
  summary.failed = count(Status::error);
  summary.missing =
      static_cast<std::int64_t>(expansion_.trials.size()) - summary.done - summary.diverged - summary.failed;
  summary.started = started_;
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  summary.interrupted = interrupts_ > 0;
  summary.killed = interrupts_ > 1;
  progress_.finish();
  return summary;
}

}  // namespace

std::int64_t default_jobs(const Expansion& expansion) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const std::int64_t count = ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  std::int64_t threads = 1;
  for (const Trial& trial : expansion.trials) {
    const Json* value = trial.spec.at_path("run.threads");
    if (value != nullptr && value->is_integer()) threads = std::max(threads, value->as_integer());
  }
  return std::max<std::int64_t>(1, count / threads);
}

std::vector<std::size_t> to_run(const Expansion& expansion, const FolderState& state, const RunnerOptions& options) {
  std::vector<std::size_t> wanted;
  std::set<std::string> again;
  if (options.retry_stale) {
    for (const Stale& stale : state.stale) again.insert(stale.id);
  }
  for (std::size_t i = 0; i < expansion.trials.size(); ++i) {
    const auto found = state.ended.find(expansion.trials[i].id);
    const bool failed = found != state.ended.end() && found->second == Status::error;
    if (found == state.ended.end() || (options.retry_failed && failed) || again.contains(found->first)) wanted.push_back(i);
  }
  return wanted;
}

RunSummary run_sweep(const Sweep& sweep, const FolderState& state, const RunnerOptions& options,
                     Progress::Output output) {
  std::filesystem::create_directories(options.folder + "/logs");
  results::write_manifest(sweep.expansion.manifest, options.folder);
  return Runner(sweep, state, options, std::move(output)).run();
}

}  // namespace phasor::sweeps
