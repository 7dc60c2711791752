#include "sweeps/runner.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unistd.h>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "results/files.h"
#include "results/replace.h"
#include "results/store.h"
#include "sweeps/child.h"
#include "sweeps/lease.h"
#include "sweeps/verdict.h"
#include "sweeps/worker.h"

namespace phasor::sweeps {

namespace {

using results::Status;
using Clock = std::chrono::steady_clock;

constexpr double look_seconds = 0.5;  // between two looks at trials that others work on

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Running {
  std::size_t trial = 0;
  std::string log;
  Lease lease;
  std::optional<Stamp> before = {};  // of the record that it is to replace, or of a damaged one
  std::int64_t slot = 0;     // of the processes side by side
  Worker* worker = nullptr;  // whose trial it is; null: a process of its own
  pid_t process = 0;
  Clock::time_point begin = Clock::now(), asked = begin;  // to end, because it is over time
  std::int64_t oom_kills = kernel_oom_kills();  // before it
  Ended ended = Ended::not_by_us;
};

class Runner {
 public:
  Runner(const Sweep& sweep, const FolderState& state, const RunnerOptions& options, Progress::Output output)
      : expansion_(sweep.expansion),
        limits_(sweep.spec.limits),
        options_(options),
        seen_(state.stamps),
        before_(state.ended),
        logs_(log_names(expansion_)),
        ended_(state.ended),
        leases_(options.folder, options.lease_seconds, options.places(), options.task),
        progress_(sweep.spec.name, static_cast<std::int64_t>(expansion_.trials.size()),
                  static_cast<std::int64_t>(expansion_.trials.size() - to_run(expansion_, state, options).size()),
                  std::move(output)) {
    for (const std::size_t trial : to_run(expansion_, state, options)) {
      queue_.push_back(trial);
      ended_.erase(expansion_.trials[trial].id);
    }
  }

  RunSummary run();

 private:
  void fill_slots();
  void take(std::size_t trial);
  void start(Running child);
  std::int64_t emptiest_slot() const;
  Worker& worker_of(std::int64_t slot);
  bool has_ended(std::size_t trial);
  std::string strange_leases() const;
  void keep_leases();
  void end_overdue();
  void on_signal(int signal);
  void ask(const Running& child);
  void end_all(Ended reason);
  void reap();
  void take_reports(Worker& worker);
  void reap(Worker& worker, const Exit& exit);
  std::vector<int> descriptors() const;
  void finish(const Running& child, const Exit& exit);
  void run_again(const Running& child, const std::string& why, bool apart);
  void record(const Running& child, const Verdict& verdict);
  void ended(const Running& child, Status status, const std::string& message);
  void show();
  RunSummary summary();

  std::vector<std::string> rerun_command(std::size_t trial) const;
  std::string name_of(std::size_t trial) const {
    return cell_name(expansion_.manifest, expansion_.manifest.trials[expansion_.first_cell[trial]]);
  }
  std::string file_of(std::size_t trial, const char* ending) const {
    return options_.folder + "/" + expansion_.trials[trial].id + ending;
  }
  template <class Which>
  std::int64_t count(Which which) const {
    return std::count_if(ended_.begin(), ended_.end(), [&](const auto& e) { return which(e.second); });
  }
  bool keeps_checkpoints(std::size_t trial) const {
    const Json* every = expansion_.trials[trial].spec.at_path("run.checkpoint_every");
    return every != nullptr && every->is_integer() && every->as_integer() > 0;
  }

  const Expansion& expansion_;
  const Limits limits_;
  const RunnerOptions& options_;
  const std::map<std::string, Stamp> seen_;  // files that were there before: damaged, or to be replaced
  const std::map<std::string, Status> before_;  // the records among them
  const std::vector<std::string> logs_;
  std::map<std::string, Status> ended_;      // by id, whoever ran it
  std::deque<std::size_t> queue_;            // trials to try
  std::vector<std::size_t> elsewhere_;       // that others hold
  std::vector<Running> running_;
  std::map<std::int64_t, std::unique_ptr<Worker>> workers_;  // by slot; of several trials each
  std::set<std::string> kept_;               // ids: failed now, and a result of before stays
  std::set<std::string> apart_;              // ids: in a process of their own, since one that they shared went down
  Leases leases_;
  Progress progress_;
  Clock::time_point looked_ = Clock::now(), beaten_ = Clock::now();
  std::optional<Clock::time_point> asked_to_end_;
  std::int64_t started_ = 0;
  int interrupts_ = 0;
  bool stopping_ = false, killed_ = false, told_waiting_ = false;
};

std::vector<std::string> Runner::rerun_command(std::size_t trial) const {
  std::vector<std::string> words = {"phasor", "run", file_of(trial, ".json")};
  for (const std::string& plugin : options_.plugin_files) words.insert(words.end(), {"--plugin", plugin});
  if (limits_.memory_mb > 0) words.insert(words.end(), {"--memory-mb", std::to_string(limits_.memory_mb)});
  return words;
}

/// Whether the trial has a record that this runner is not to replace.
bool Runner::has_ended(std::size_t trial) {
  const std::string& id = expansion_.trials[trial].id;
  const std::optional<Stamp> stamp = stamp_of(file_of(trial, ".h5"));
  const auto before = seen_.find(id);
  if (!stamp || (before != seen_.end() && *stamp == before->second)) return false;
  try {
    ended_[id] = results::load(file_of(trial, ".h5")).status;
  } catch (const UserError&) {
    return false;  // damaged meanwhile
  }
  return true;
}

void Runner::take(std::size_t trial) {
  Running attempt{trial, options_.folder + "/logs/" + logs_[trial] + ".log", {}};
  try {
    attempt.before = stamp_of(file_of(trial, ".h5"));
    const auto ended = [&] { return has_ended(trial); };
    const std::optional<Lease> lease =
        leases_.acquire_unless(ended, expansion_.trials[trial].id, attempt.before ? attempt.before->time : 0);
    if (!lease) {
      if (!ended_.contains(expansion_.trials[trial].id)) elsewhere_.push_back(trial);
      return;
    }
    attempt.lease = *lease;
    if (lease->lost >= options_.attempts) {
      record(attempt, {Status::lost, std::to_string(lease->lost) + " attempts in a row did not come back, the last by " +
                                         lease->last + "; their logs are " + logs_[trial] + ".lost*.log"});
      leases_.release(*lease);
    } else {
      start(attempt);
    }
  } catch (const std::exception& error) {
    if (attempt.lease.token != 0) leases_.release(attempt.lease);
    ended(attempt, Status::error, std::string(error.what()) + "; not recorded");
  }
}

void Runner::start(Running child) {
  const std::size_t trial = child.trial;
  const Trial& chosen = expansion_.trials[trial];
  const Lease& lease = child.lease;
  if (lease.number > 1) {  // what the attempt that was lost left behind
    results::remove_asides(options_.folder, chosen.id);
    results::remove_asides(options_.folder + "/checkpoints", chosen.id);
    std::error_code ignored;
    std::filesystem::rename(child.log, options_.folder + "/logs/" + logs_[trial] + ".lost" + std::to_string(lease.number - 1) + ".log",
                            ignored);
  }
  results::write_whole(options_.folder, chosen.id + ".json", chosen.id, chosen.spec.pretty() + "\n");
  std::vector<std::string> command = rerun_command(trial);
  command.insert(command.end(), {"--out", options_.folder, "--child", std::to_string(::getpid()), "--lease",
                                 std::to_string(lease.token)});
  if (child.before) command.insert(command.end(), {"--replace", "1"});
  child.slot = emptiest_slot();
  if (options_.trials_per_device > 1 && !apart_.contains(chosen.id)) {
    child.worker = &worker_of(child.slot);
    child.process = child.worker->process();
    child.worker->start({false, child.before.has_value(), lease.token, chosen.id, child.log});
  } else {
    command.insert(command.end(), {"--slot", std::to_string(child.slot)});
    child.process = start_self(command, child.log);
  }
  ++started_;
  running_.push_back(std::move(child));
}

/// Where the fewest trials run.
std::int64_t Runner::emptiest_slot() const {
  std::vector<std::int64_t> trials(static_cast<std::size_t>(options_.jobs));
  for (const Running& child : running_) ++trials[static_cast<std::size_t>(child.slot)];
  return std::min_element(trials.begin(), trials.end()) - trials.begin();
}

Worker& Runner::worker_of(std::int64_t slot) {
  if (const auto there = workers_.find(slot); there != workers_.end()) return *there->second;
  std::vector<std::string> command = {"phasor", "trials", "--out", options_.folder, "--child", std::to_string(::getpid()),
                                      "--slot", std::to_string(slot)};
  for (const std::string& plugin : options_.plugin_files) command.insert(command.end(), {"--plugin", plugin});
  auto worker = std::make_unique<Worker>(command, options_.folder + "/logs/process" + std::to_string(slot) + ".log");
  return *workers_.emplace(slot, std::move(worker)).first->second;
}

/// Starts what is free until every slot is taken. Trials of others are looked at again now and then: they may have ended,
/// or their runner may.
void Runner::fill_slots() {
  if (stopping_ || static_cast<std::int64_t>(running_.size()) >= options_.places()) return;
  if (seconds_since(looked_) > look_seconds) {
    looked_ = Clock::now();
    queue_.insert(queue_.end(), elsewhere_.begin(), elsewhere_.end());
    elsewhere_.clear();
  }
  while (!stopping_ && !queue_.empty() && static_cast<std::int64_t>(running_.size()) < options_.places()) {
    const std::size_t trial = queue_.front();
    queue_.pop_front();
    take(trial);
  }
  if (running_.empty() && !elsewhere_.empty() && !std::exchange(told_waiting_, true)) {
    progress_.note("waiting for " + std::to_string(elsewhere_.size()) + " trials that other runners work on" + strange_leases());
  }
}

/// Files in the place of leases that no runner wrote, or none wrote whole.
std::string Runner::strange_leases() const {
  std::string files;
  for (const std::size_t trial : elsewhere_)
    if (const std::string file = strange_lease(options_.folder, expansion_.trials[trial].id); !file.empty()) files += (files.empty() ? "" : ", ") + file;
  if (files.empty()) return "";
  return "; nobody can be read from " + files + ": if nobody writes there for " + std::to_string(static_cast<std::int64_t>(options_.lease_seconds)) +
         " s it is taken over; remove it where no other runner works";
}

void Runner::keep_leases() {
  if (seconds_since(beaten_) < options_.lease_seconds / 4) return;
  beaten_ = Clock::now();
  for (Running& child : running_) {
    if (child.ended != Ended::not_by_us || leases_.beat(child.lease)) continue;
    child.ended = Ended::lease_lost;
    child.worker != nullptr ? child.worker->stop(child.lease.token) : kill_group(child.process);
  }
}

/// To end after its step, with a checkpoint where it keeps them.
void Runner::ask(const Running& child) {
  child.worker != nullptr ? child.worker->stop(child.lease.token) : ask_to_end(child.process);
}

void Runner::end_all(Ended reason) {
  for (Running& child : running_) {
    if (child.ended == Ended::not_by_us) child.ended = reason;
    kill_group(child.process);
  }
}

/// One of several in a process is asked to end, and takes the others with it only when it does not.
void Runner::end_overdue() {
  for (Running& child : running_) {
    const bool late = limits_.seconds > 0 && seconds_since(child.begin) > static_cast<double>(limits_.seconds);
    if (late && child.ended == Ended::not_by_us) {
      child.ended = Ended::over_time;
      child.asked = Clock::now();
      child.worker != nullptr ? ask(child) : kill_group(child.process);
    } else if (child.worker != nullptr && child.ended == Ended::over_time && seconds_since(child.asked) > options_.grace_seconds) {
      child.worker->killed = true;
      kill_group(child.process);
    }
  }
  if (asked_to_end_ && seconds_since(*asked_to_end_) > options_.grace_seconds) end_all(Ended::stopped);
}

void Runner::on_signal(int signal) {
  if (signal == 0 || signal == SIGCHLD) return;
  stopping_ = true;
  if (signal == SIGINT && ++interrupts_ > 1) {
    killed_ = true;
    end_all(Ended::stopped);
    return;
  }
  const bool all = signal != SIGINT;  // SIGTERM, SIGHUP: the machine goes, or the place on it
  for (const Running& child : running_)
    if (all || keeps_checkpoints(child.trial)) ask(child);
  const std::string count = std::to_string(running_.size());
  if (all && !asked_to_end_) {
    killed_ = true;
    asked_to_end_ = Clock::now();
    progress_.note("stopping: " + count + " running trials stop after their step");
  } else if (!all) {
    progress_.note("stopping: " + count + " running trials finish, or stop at a checkpoint where they keep them, no new one " +
                   "starts; Ctrl-C again ends them at once");
  }
}

void Runner::take_reports(Worker& worker) {
  while (const std::optional<Report> report = worker.report()) {
    const auto place = std::find_if(running_.begin(), running_.end(), [&](const Running& child) { return child.lease.token == report->token; });
    if (place == running_.end()) continue;
    const Running child = *place;
    running_.erase(place);
    finish(child, {false, report->code});
  }
}

/// A process of several trials has ended. Which of them brought it down is not known, nor whether one did: those that had not ended run
/// again, each in a process of its own, and one that goes down there has nobody to blame but itself.
void Runner::reap(Worker& worker, const Exit& exit) {
  take_reports(worker);  // that it gave before
  worker.ended = true;
  std::vector<Running> left;
  for (const Running& child : running_)
    if (child.worker == &worker) left.push_back(child);
  std::erase_if(running_, [&](const Running& child) { return child.worker == &worker; });
  for (const Running& child : left) finish(child, exit);
}

std::vector<int> Runner::descriptors() const {
  std::vector<int> all;
  for (const auto& [slot, worker] : workers_)
    if (worker->descriptor() >= 0) all.push_back(worker->descriptor());
  return all;
}

void Runner::reap() {
  for (auto next = workers_.begin(); next != workers_.end();) {
    Worker& worker = *next->second;
    take_reports(worker);
    const std::optional<Exit> exit = sweeps::ended(worker.process());
    if (exit) reap(worker, *exit);
    next = exit ? workers_.erase(next) : std::next(next);
  }
  for (std::size_t i = 0; i < running_.size();) {
    if (running_[i].worker != nullptr) {
      ++i;
      continue;
    }
    const std::optional<Exit> exit = sweeps::ended(running_[i].process);
    if (!exit) {
      ++i;
      continue;
    }
    const Running child = running_[i];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    finish(child, *exit);
  }
}

void Runner::finish(const Running& child, const Exit& exit) {
  const std::string& id = expansion_.trials[child.trial].id;
  const bool ours = child.ended != Ended::lease_lost && leases_.beat(child.lease);
  const bool went_down = child.worker != nullptr && child.worker->ended;  // and this trial with it
  if ((exit.by_signal || went_down) && ours) {
    results::remove_asides(options_.folder, id);
    results::remove_asides(options_.folder + "/checkpoints", id);
  }
  std::optional<results::TrialRecord> stored;
  try {
    if (stamp_of(file_of(child.trial, ".h5")) != child.before) stored = results::load(file_of(child.trial, ".h5"));
  } catch (const UserError&) {
  }
  if (stored) {
    ended(child, stored->status, stored->message);
  } else if (!ours) {
    progress_.note("  taken over  " + name_of(child.trial) + "   another runner works on it: this one gave no sign of life for " +
                   std::to_string(static_cast<std::int64_t>(options_.lease_seconds)) + " s");
    elsewhere_.push_back(child.trial);
  } else if (went_down && child.ended == Ended::not_by_us && !was_interrupted(exit)) {
    return run_again(child, to_text(exit), !child.worker->killed);
  } else if (child.ended == Ended::over_time || (child.ended != Ended::stopped && !was_interrupted(exit))) {
    record(child, verdict_of(exit, child.ended, limits_, last_line(child.log), kernel_oom_kills() > child.oom_kills));
  }
  leases_.release(child.lease);
}

/// `apart`: in a process of its own.
void Runner::run_again(const Running& child, const std::string& why, bool apart) {
  const std::string& id = expansion_.trials[child.trial].id;
  leases_.release(child.lease);
  queue_.push_front(child.trial);
  --started_;
  if (!apart || !apart_.insert(id).second) return;
  progress_.note("  again     " + name_of(child.trial) + "   the process that it shared with other trials ended (" + why +
                 "); it runs in one of its own");
}

/// What the process of a trial could not say itself.
void Runner::record(const Running& child, const Verdict& verdict) {
  results::TrialRecord record;
  record.id = expansion_.trials[child.trial].id;
  record.spec = expansion_.trials[child.trial].spec;
  record.status = verdict.status;
  record.message = verdict.message;
  record.provenance = {{"command", shell_words(rerun_command(child.trial))}};
  std::string more;
  try {
    if (child.before && results::has_result(options_.folder, record.id)) {
      kept_.insert(record.id);
      more = "; the result that " + file_of(child.trial, ".h5") + " holds stays";
    } else {
      results::save_instead(record, options_.folder, child.before);
    }
  } catch (const UserError& error) {
    more = std::string("; not recorded: ") + error.what();
  }
  ended(child, record.status, record.message + more);
}

/// Counts a trial, and tells what did not end well.
void Runner::ended(const Running& child, Status status, const std::string& message) {
  const std::string& id = expansion_.trials[child.trial].id;
  ended_[id] = kept_.contains(id) && before_.contains(id) ? before_.at(id) : status;
  if (status == Status::done) return;
  if (options_.fail_fast && results::is_failure(status)) stopping_ = true;
  std::string word = to_text(status);
  word.resize(std::max<std::size_t>(word.size(), 8), ' ');
  std::vector<std::string> rerun = rerun_command(child.trial);
  rerun.insert(rerun.end(), {"--out", options_.folder, "--force"});
  progress_.note("  " + word + "  " + name_of(child.trial) + "   " + message + "\n            log    " + child.log +
                 "\n            rerun  " + shell_words(rerun));
}

void Runner::show() {
  const auto number = [](std::int64_t n, const char* word) { return std::to_string(n) + word; };
  progress_.update(static_cast<std::int64_t>(ended_.size()),
                   number(static_cast<std::int64_t>(running_.size()), " running   ") +
                       number(count([](Status s) { return s == Status::diverged; }), " diverged   ") +
                       number(count(results::is_failure), " failed"));
}

/// By what is on the disk, as others will count: a failure of which a full disk took no record is missing, and a trial that was to run
/// again and did not come to its end has the record of before.
RunSummary Runner::summary() {
  RunSummary summary;
  std::erase_if(ended_, [&](const auto& one) { return results::is_failure(one.second) && !results::has(options_.folder, one.first); });
  summary.kept = static_cast<std::int64_t>(kept_.size());
  for (const Trial& trial : expansion_.trials)
    if (const auto old = before_.find(trial.id); old != before_.end()) summary.kept += ended_.insert(*old).second ? 1 : 0;
  summary.done = count([](Status s) { return s == Status::done; });
  summary.diverged = count([](Status s) { return s == Status::diverged; });
  summary.failed = count(results::is_failure);
  summary.missing = static_cast<std::int64_t>(expansion_.trials.size() - ended_.size());
  summary.started = started_;
  summary.interrupted = stopping_;
  summary.killed = killed_;
  return summary;
}

RunSummary Runner::run() {
  const auto begin = Clock::now();
  SignalQueue signals;
  while (!running_.empty() || (!stopping_ && !(queue_.empty() && elsewhere_.empty()))) {
    fill_slots();
    show();
    if (running_.empty() && elsewhere_.empty()) continue;
    on_signal(signals.wait(0.2, descriptors()));
    reap();
    keep_leases();
    end_overdue();
  }
  workers_.clear();
  RunSummary result = summary();
  result.seconds = seconds_since(begin);
  progress_.finish();
  return result;
}

}  // namespace

RunSummary run_sweep(const Sweep& sweep, const FolderState& state, const RunnerOptions& options,
                     Progress::Output output) {
  results::write_manifest(sweep.expansion.manifest, options.folder);
  return run_trials(sweep, state, options, std::move(output));
}

RunSummary run_trials(const Sweep& part, const FolderState& state, const RunnerOptions& options, Progress::Output output) {
  std::filesystem::create_directories(options.folder + "/logs");
  return Runner(part, state, options, std::move(output)).run();
}

}  // namespace phasor::sweeps
