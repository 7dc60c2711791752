#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/h5.h"
#include "results/record.h"

namespace phasor::results {

/// Writes `<folder>/<id>.h5`: built in memory, written aside, fsync'ed, renamed. UserError naming the path when the
/// folder cannot be written.
void save(const TrialRecord& record, const std::string& folder);
/// The same when there is no file of that name yet; false, and nothing is changed, when there is one.
bool save_new(const TrialRecord& record, const std::string& folder);

/// The same into and from a file that holds more than a record (a checkpoint). `read` throws h5::Failure.
void write_record(h5::Writer& file, const TrialRecord& record);
TrialRecord read_record(const h5::Reader& file);

/// Reads one file; UserError naming the file and what is wrong with it.
TrialRecord load(const std::string& file);

/// True when the trial's file opens, is complete, and its status is terminal.
bool has(const std::string& folder, const std::string& id);

/// What a folder holds: readable records in order of id, and the files that are not whole, with the reason.
struct Damaged {
  std::string file, reason;
};
struct Folder {
  std::vector<TrialRecord> records;
  std::vector<Damaged> damaged;
};
/// Files are read on all processors. `dropped`: logged steps are checked as everything is, and not kept; they are most of
/// a record's memory.
enum class Steps { kept, dropped };
Folder load_folder(const std::string& folder, Steps steps = Steps::kept);

}  // namespace phasor::results
