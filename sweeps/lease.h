#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace phasor::sweeps {

/// Who works on a trial, as its lease says.
struct Owner {
  std::int64_t token = 0;  // of this attempt, random
  std::string host;
  std::string kernel;      // start of the machine and namespace of processes: where numbers of processes can be compared
  std::int64_t process = 0, started = 0;  // of the runner; `started` in ticks of that machine
  std::int64_t jobs = 0;        // of the runner
  double seconds = 0.0;         // after so long without a sign of life others may take over
  std::int64_t checkpoint = 0;  // time stamp of the one it began with; 0: none
  std::int64_t replaces = 0;    // time stamp of the record in whose place it works; 0: none. Attempts before that one do not count
  std::string task = {};        // of Slurm, "123_4", when the runner is one
};

/// "process 123 on node7"
std::string to_text(const Owner& owner);

/// The process is known to have ended. False where that cannot be known from here.
bool is_gone(const Owner& owner);

/// The right to work on a trial, held.
struct Lease {
  std::string id;            // of the trial
  std::int64_t number = 1;   // of the attempt
  std::int64_t token = 0;
  std::int64_t lost = 0;     // attempts before this one that were lost in a row and left no newer checkpoint, nor a record
  std::string last;          // who lost the latest of them
};

/// Leases of the trials of a folder. Several processes, on several machines that see the folder, agree through files alone:
/// no locks, no clocks that must be equal.
///
/// `leases/<id>.<n>` is the n-th attempt at a trial. It is made with link(2), so that one of many succeeds; its owner
/// changes it now and then as a sign of life. When its process is gone, or when it has stood still for `seconds` as the
/// observer itself has lived through, somebody renames it to `<id>.<n>.lost`, where again one of many succeeds, and attempt
/// n + 1 can be made. The valid attempt is the first one that is not lost: an owner that was stopped and wakes up finds
/// that it has none.
class Leases {
 public:
  /// `jobs` and `task` are told to others. Makes the folder of leases when the first is taken.
  Leases(std::string folder, double seconds, std::int64_t jobs, std::string task = "")
      : folder_(std::move(folder)), seconds_(seconds), jobs_(jobs), task_(std::move(task)) {}

  /// One try. `replaces`: time stamp of the record that there is, 0 without one. Nothing when somebody else has it, or was faster.
  /// UserError when the folder cannot be written.
  std::optional<Lease> acquire(const std::string& id, std::int64_t replaces);

  /// The same for a trial that may end meanwhile: `has_ended` looks for its record before the try and again under the lease,
  /// since in between another owner may have stored one and given its lease back. Nothing when it has ended, too.
  std::optional<Lease> acquire_unless(const std::function<bool()>& has_ended, const std::string& id, std::int64_t replaces);

  /// Gives a sign of life; false when the lease was lost to somebody else.
  bool beat(const Lease& lease);

  void release(const Lease& lease);

 private:
  struct Seen {
    std::string text;
    double last = 0.0, still = 0.0;  // seconds of our clock: when looked at, and how long unchanged
  };
  bool expired(const std::string& file, const std::string& text);
  std::optional<Lease> claim(const std::string& id, std::int64_t number, std::int64_t replaces);

  std::string folder_;
  double seconds_;
  std::int64_t jobs_;
  std::string task_;
  std::int64_t beats_ = 0;
  std::map<std::string, Seen> seen_;  // leases of others, by file
};

/// Whether this attempt is the valid one. For the process of a trial, before it stores a result.
bool holds_lease(const std::string& folder, const std::string& id, std::int64_t token);

/// The file of the valid attempt when it says of nobody that he works; empty when there is none, or a whole one.
std::string strange_lease(const std::string& folder, const std::string& id);

/// The leases of a folder as they stand: for `phasor status`.
struct Standing {
  std::map<std::string, Owner> owners;  // by id; of processes that are not known to be gone
  std::int64_t lost = 0;                // attempts, of all trials
};
Standing read_leases(const std::string& folder);

}  // namespace phasor::sweeps
