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

 private:
  int descriptor_ = -1;
  std::string warning_;
};

/// What a folder holds of a sweep.
struct FolderState {
  std::map<std::string, results::Status> ended;  // of the sweep's trials, by id
  std::vector<results::Damaged> damaged;         // of the sweep's trials: run again
  std::vector<double> seconds;                   // what finished trials took
  std::int64_t others = 0;                       // records that belong to no cell
};
FolderState read_folder(const std::string& folder, const Expansion& expansion);

/// "results/data/<name>", under the current folder.
std::string default_folder(const std::string& name);

}  // namespace phasor::sweeps
