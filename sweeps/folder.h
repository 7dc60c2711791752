#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "results/replace.h"
#include "results/store.h"
#include "sweeps/expand.h"

namespace phasor::sweeps {

/// Makes the folder where results go, and sees that files can be made in it: a trial should not find out after an hour.
/// UserError naming the folder and the cause.
void prepare_folder(const std::string& folder);

using results::Stamp;
using results::stamp_of;

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
  std::set<std::string> again;                   // of `ended`: run again, whatever the options say
};
FolderState read_folder(const std::string& folder, const Expansion& expansion);

/// "numerics.encoding.rope 1, now 2": what of the code that made the record is of another revision here; empty when nothing is.
std::string other_revisions(const results::TrialRecord& record, const Registry& registry);
/// Fills `stale`: compares the `numerics.*` of the records with the plugins of the registry.
void find_stale(FolderState& state, const std::string& folder, const Registry& registry);

/// "results/data/<name>", under the current folder.
std::string default_folder(const std::string& name);

}  // namespace phasor::sweeps
