#include "sweeps/launchers/slurm_queue.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <sstream>

#include "core/base/error.h"
#include "sweeps/launchers/program.h"

namespace phasor::sweeps::slurm {

namespace {

constexpr double squeue_seconds = 60.0;   // Slurm itself gives up after less
constexpr std::int64_t early_seconds = 60;  // Slurm may signal so much earlier than it was asked to

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::vector<std::string> Queue::held() const {
  std::vector<std::string> ids;
  for (const QueuedTask& task : tasks) ids.insert(ids.end(), task.trials.begin(), task.trials.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<QueuedTask> tasks_in(const std::string& printed, const std::vector<Job>& jobs) {
  std::vector<QueuedTask> tasks;
  std::map<std::string, Submission> read;  // by place: only of those that Slurm still has
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::array<std::string, 4> found;  // job, task, state, reason
    for (std::string& field : found) std::getline(fields, field, '|');
    std::string script;
    std::getline(fields, script);  // the rest: a path may hold anything
    const auto job = std::find_if(jobs.begin(), jobs.end(), [&](const Job& j) { return j.number == found[0] && j.script == script; });
    const std::optional<std::int64_t> task = whole_number(found[1]);
    if (job == jobs.end() || !task || *task < 0) continue;
    if (!read.contains(job->place)) read[job->place] = read_submission(job->place);
    const auto& submitted = read[job->place].tasks;
    if (*task >= static_cast<std::int64_t>(submitted.size())) continue;
    QueuedTask queued{found[0], *task, found[2], found[3], {}};
    for (const Submitted& trial : submitted[static_cast<std::size_t>(*task)]) queued.trials.push_back(trial.trial.id);
    tasks.push_back(std::move(queued));
  }
  return tasks;
}

Queue read_queue(const std::string& folder) {
  Queue queue;
  const std::vector<Job> jobs = read_jobs(folder);
  if (jobs.empty()) return queue;
  std::string numbers;
  for (const Job& job : jobs) numbers += (numbers.empty() ? "" : ",") + job.number;
  const Said said = run_program({"squeue", "--noheader", "--array", "--jobs=" + numbers, std::string("--format=") + queue_format},
                                squeue_seconds);
  // Slurm forgets a job some minutes after its end.
  const bool forgotten = said.found && said.error.find("Invalid job id") != std::string::npos;
  if (!said.well() && !forgotten) {
    queue.problem = complaint("squeue", said);
    return queue;
  }
  queue.tasks = tasks_in(said.out, jobs);
  return queue;
}

std::vector<std::string> lines_of(const Queue& queue) {
  struct Counts {
    std::string job, reason;
    std::int64_t waiting = 0, running = 0;
  };
  std::vector<Counts> jobs;
  for (const QueuedTask& task : queue.tasks) {
    auto job = std::find_if(jobs.begin(), jobs.end(), [&](const Counts& c) { return c.job == task.job; });
    if (job == jobs.end()) job = jobs.insert(jobs.end(), {task.job, "", 0, 0});
    const bool waits = task.state == "PENDING";
    ++(waits ? job->waiting : job->running);
    if (waits && task.reason != "None" && job->reason.find(task.reason) == std::string::npos)
      job->reason += (job->reason.empty() ? "" : ", ") + task.reason;
  }
  const auto part = [](std::int64_t count, const char* one, const char* many) {
    return std::to_string(count) + " " + (count == 1 ? one : many);
  };
  std::vector<std::string> lines;
  for (const Counts& job : jobs) {
    std::string line = "job " + job.job + ":";
    if (job.waiting > 0) line += " " + part(job.waiting, "task waits", "tasks wait") + (job.reason.empty() ? "" : " (" + job.reason + ")");
    if (job.running > 0) line += (job.waiting > 0 ? ", " : " ") + part(job.running, "task runs", "tasks run");
    lines.push_back(std::move(line));
  }
  return lines;
}

std::optional<std::int64_t> seconds_in(const std::string& text) {
  const std::size_t dash = text.find('-');
  const std::optional<std::int64_t> days = dash == std::string::npos ? 0 : whole_number(text.substr(0, dash));
  std::int64_t seconds = 0;
  std::istringstream parts(text.substr(dash == std::string::npos ? 0 : dash + 1));
  int count = 0;
  for (std::string part; std::getline(parts, part, ':'); ++count) {
    const std::optional<std::int64_t> number = whole_number(part);
    if (!number || *number < 0) return std::nullopt;
    seconds = seconds * 60 + *number;
  }
  if (!days || count < 2 || count > 3) return std::nullopt;
  return *days * 86400 + seconds;
}

bool should_requeue(const std::string& state, std::optional<std::int64_t> seconds_left, std::int64_t lead, bool gained) {
  if (state != "RUNNING") return false;
  return gained || !seconds_left || *seconds_left > lead + early_seconds;
}

}  // namespace phasor::sweeps::slurm
