#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/error.h"
#include "results/files.h"
#include "results/h5.h"
#include "results/manifest.h"
#include "results/store.h"
#include "sweeps/expand.h"
#include "sweeps/status.h"

namespace phasor::cli {

namespace {

namespace fs = std::filesystem;

struct Findings {
  std::int64_t whole = 0, others = 0, checkpoints = 0, awaiting = 0, unguarded = 0;
  std::vector<std::string> damaged, lost, missing, left;
  bool good() const { return damaged.empty() && lost.empty() && missing.empty() && awaiting == 0; }
};

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Every dataset is read and compared with its digest, those too that no command here reads.
void check_all(const std::string& file, Findings& all) {
  const std::string image = results::read_file(file);
  const results::h5::Reader reader(image);
  results::read_record(reader);
  all.unguarded += static_cast<std::int64_t>(reader.compare_digests().size());
}

void check_files(const std::string& folder, const results::Folder& found, Findings& all) {
  for (const results::Damaged& damaged : found.damaged) all.damaged.push_back(damaged.file + ": " + damaged.reason);
  for (const results::TrialRecord& record : found.records) {
    const std::string file = folder + "/" + record.id + ".h5";
    try {
      check_all(file, all);
    } catch (const std::exception& error) {
      all.damaged.push_back(file + ": " + error.what() + "; what phasor reads of it is whole");
    }
  }
  for (const std::string& name : files_of(folder + "/checkpoints")) {
    const std::string file = folder + "/checkpoints/" + name;
    if (name.front() == '.') {
      all.left.push_back(file);
      continue;
    }
    try {
      check_all(file, all);
      ++all.checkpoints;
    } catch (const std::exception& error) {
      all.damaged.push_back(file + ": " + error.what() + "; the trial would start anew");
    }
  }
  for (const std::string& name : files_of(folder)) {
    if (name.starts_with(".") && name.ends_with(".tmp")) all.left.push_back(folder + "/" + name);
  }
}

/// A trial that was started and has no whole record is lost; one that never was is missing.
void check_trials(const std::string& folder, const results::Manifest& manifest, const results::Folder& found, Findings& all) {
  std::map<std::string, std::string> expected;  // id to its first name
  for (const results::ManifestTrial& cell : manifest.trials) {
    if (cell.excluded.empty()) expected.emplace(cell.id, sweeps::cell_name(manifest, cell));
  }
  std::set<std::string> recorded;
  for (const results::TrialRecord& record : found.records) {
    ++(expected.contains(record.id) ? all.whole : all.others);
    recorded.insert(record.id);
  }
  for (const auto& [id, name] : expected) {
    if (recorded.contains(id)) continue;
    const std::string log = sweeps::log_of(folder, id), line = name + "   " + id;
    if (fs::exists(folder + "/" + id + ".json")) {
      all.lost.push_back(line + (fs::exists(log) ? "\n            log    " + log : ""));
    } else {
      all.missing.push_back(line);
    }
  }
  all.awaiting = manifest.awaiting;
}

void print_list(const char* head, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("{:<16} {}\n", head, line);
}

}  // namespace

int verify(const Arguments& arguments) {
  std::string folder;
  Options options(
      "phasor verify DIR",
      "Reads every file of a sweep's folder to the end and says which are whole, which are damaged, and which trials\n"
      "were started and left no record (lost) or never started (missing). Writes nothing.\n"
      "exit codes: 0 every trial of the sweep has a whole record and no file is damaged, 3 otherwise,\n"
      "2 no folder of a sweep");
  options.positional("folder of a sweep", folder, true);
  if (!options.parse(arguments)) return exit_code::done;
  if (!fs::exists(folder + "/sweep.json")) throw UserError(folder + ": no sweep.json, expected the folder of a sweep");
  Findings all;
  const results::Folder found = results::load_folder(folder, results::Steps::dropped);
  check_files(folder, found, all);
  std::optional<results::Manifest> manifest;
  try {
    manifest = results::read_manifest(folder);
  } catch (const UserError& error) {
    all.damaged.push_back(std::string(error.what()) + "; what is missing is not known until the sweep is run again");
    all.others = static_cast<std::int64_t>(found.records.size());
  }
  if (manifest) check_trials(folder, *manifest, found, all);
  fmt::print("{:<16} {} whole, {} checkpoints whole{}\n", "records", all.whole, all.checkpoints,
             all.others > 0 ? fmt::format("; {} more whole ones belong to no cell of this sweep", all.others) : "");
  if (all.unguarded > 0)
    fmt::print("{:<16} {} datasets that carry no digest: that they are read is all that is known of them\n", "not checksummed", all.unguarded);
  print_list("damaged", all.damaged);
  print_list("lost", all.lost);
  print_list("missing", all.missing);
  if (all.awaiting > 0) fmt::print("{:<16} {} trials of the confirmation await the selection\n", "missing", all.awaiting);
  print_list("left behind", all.left);
  if (manifest && !all.lost.empty() && sweeps::read_status(folder).running) fmt::print("a sweep is running here: a lost trial may be one that works\n");
  fmt::print("{}\n", all.good() ? "all is whole" : "the same `phasor sweep` command runs what is lost, missing or damaged");
  return all.good() ? exit_code::done : exit_code::incomplete;
}

}  // namespace phasor::cli
