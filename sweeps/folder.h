#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/store.h"
#include "sweeps/expand.h"

namespace phasor::sweeps {

/// Makes the folder where results go, and sees that files can be made in it: a trial should not find out after an hour.
/// UserError naming the folder and the cause.
void prepare_folder(const std::string& folder);

/// Tells one file of a name from the next: records are only ever replaced.
struct Stamp {
  std::uint64_t file = 0;
  std::int64_t time = 0, bytes = 0;
  bool operator==(const Stamp&) const = default;
};
/// Nothing when there is no such file.
std::optional<Stamp> stamp_of(const std::string& file);

/// A record whose numbers were made by another revision of the core or of a plugin than the one that is here.
struct Stale {
  std::string id;
  std::string revisions;  // "numerics.encoding.rope 1, now 2"
};

/// What a folder holds of a sweep.
struct FolderState {
  std::map<std::string, results::Status> ended;  // of the sweep's trials, by id
  std::map<std::string, Stamp> stamps;           // of the sweep's trials that have a file, whole or not
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
