#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/launchers/slurm_submission.h"

namespace phasor::sweeps::slurm {

/// A task that waits or runs.
struct QueuedTask {
  std::string job;  // "123"
  std::int64_t task = 0;
  std::string state, reason;        // "PENDING", "Priority"; the reason is "None" where there is none
  std::vector<std::string> trials;  // ids that it holds, whether they have a record or not
};

struct Queue {
  std::vector<QueuedTask> tasks;
  std::string problem;  // why Slurm could not be asked; then `tasks` is empty
  std::vector<std::string> held() const;  // ids, sorted
};

/// What Slurm has left of the submissions of a folder. Asks nobody where there was none.
Queue read_queue(const std::string& folder);

/// What `squeue -o` is to print, and the tasks of these jobs in it. One that Slurm knows by another script is not ours: another
/// cluster may use the same numbers.
inline constexpr const char* queue_format = "%F|%K|%T|%r|%o";
std::vector<QueuedTask> tasks_in(const std::string& printed, const std::vector<Job>& jobs);

/// "job 123: 2 tasks wait (Priority), 1 runs", one for each job.
std::vector<std::string> lines_of(const Queue& queue);

/// Seconds of "4:58", "1-02:03:04" and the like, as `squeue -o %L` prints them; nothing for "UNLIMITED" and other words.
std::optional<std::int64_t> seconds_in(const std::string& text);

/// Whether a task that was asked to end is to be queued again. Not when Slurm itself ends or requeues it (it is no longer
/// "RUNNING"): a cancelled one would come back. Not when its time is over without anything gained: the next one would gain
/// nothing either.
bool should_requeue(const std::string& state, std::optional<std::int64_t> seconds_left, std::int64_t lead, bool gained);

}  // namespace phasor::sweeps::slurm
