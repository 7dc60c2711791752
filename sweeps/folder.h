#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "results/store.h"
#include "sweeps/expand.h"

namespace phasor::sweeps {

/// Makes the folder where results go, and sees that files can be made in it: a trial should not find out after an hour.
/// UserError naming the folder and the cause.
void prepare_folder(const std::string& folder);

/// Held while a sweep runs: two runners in one folder would do everything twice. Released when the process ends,
/// however it ends.
class FolderLock {
 public:
  /// UserError when another runner holds it. Where the file system has no locks, `warning` says so and nothing is held.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  const std::string& warning() const { return warning_; }
  /// Says in the lock file who holds it and how many trials run side by side; for `phasor status`.
  void sign(std::int64_t jobs) const;

 private:
  int descriptor_ = -1;
  std::string warning_;
};

/// A record whose numbers were made by another revision of the core or of a plugin than the one that is here.
struct Stale {
  std::string id;
  std::string revisions;  // "numerics.encoding.rope 1, now 2"
};

/// What a folder holds of a sweep.
struct FolderState {
  std::map<std::string, results::Status> ended;  // of the sweep's trials, by id
  std::vector<results::Damaged> damaged;         // of the sweep's trials: run again
  std::vector<double> seconds;                   // what finished trials took
  std::int64_t others = 0;                       // records that belong to no cell
  std::vector<Stale> stale;                      // of the sweep's trials; `ended` has them too
};
FolderState read_folder(const std::string& folder, const Expansion& expansion);

/// Fills `stale`: compares the `numerics.*` of the records with the plugins of the registry.
void find_stale(FolderState& state, const std::string& folder, const Registry& registry);

/// "results/data/<name>", under the current folder.
std::string default_folder(const std::string& name);

}  // namespace phasor::sweeps
