#include "sweeps/folder.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <system_error>
#include <unistd.h>

#include "core/base/error.h"
#include "experiments/spec.h"
#include "results/other_format.h"

namespace phasor::sweeps {

namespace {

[[noreturn]] void refuse(const std::string& folder, const std::string& reason) {
  throw UserError(folder + ": results cannot be written there: " + reason + "; choose another folder with --out");
}

}  // namespace

void prepare_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) refuse(folder, error.message());
  const std::string probe = folder + "/.write_test." + std::to_string(::getpid());
  const int descriptor = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) refuse(folder, std::strerror(errno));
  const bool wrote = ::write(descriptor, "phasor\n", 7) == 7;
  const int cause = errno;
  ::close(descriptor);
  ::unlink(probe.c_str());
  if (!wrote) refuse(folder, std::strerror(cause));
}

FolderState read_folder(const std::string& folder, const Expansion& expansion) {
  FolderState state;
  if (!std::filesystem::exists(folder)) return state;
  std::set<std::string> expected, perhaps;
  for (const Trial& trial : expansion.trials) {
    expected.insert(trial.id);
    // Before the file is read: what somebody else puts there later is not what we have seen.
    const std::string file = folder + "/" + trial.id + ".h5";
    if (const auto stamp = stamp_of(file)) state.stamps[trial.id] = *stamp;
    if (std::error_code ignored; std::filesystem::is_directory(file, ignored)) results::refuse_other_format(folder, trial.id);
  }
  for (const Expansion::Fresh& fresh : expansion.fresh) perhaps.insert(fresh.trial.id);  // while the selection is not complete
  const results::Folder found = results::load_folder(folder, results::Steps::dropped);
  for (const results::TrialRecord& record : found.records) {
    if (!expected.contains(record.id)) {
      state.others += perhaps.contains(record.id) ? 0 : 1;
      continue;
    }
    state.ended[record.id] = record.status;
    for (const auto& [name, value] : record.summary) {
      if (name == "seconds" && record.status == results::Status::done) state.seconds.push_back(value);
    }
  }
  for (const results::Damaged& damaged : found.damaged) {
    if (expected.contains(std::filesystem::path(damaged.file).stem().string())) {
      state.damaged.push_back(damaged);
    } else {
      ++state.others;
    }
  }
  return state;
}

std::string other_revisions(const results::TrialRecord& record, const Registry& registry) {
  std::string revisions;
  for (const auto& [fact, value] : record.provenance) {
    const int here = fact.starts_with("numerics.") ? revision_here(fact, registry) : 0;
    if (here == 0 || value == std::to_string(here)) continue;
    revisions += (revisions.empty() ? "" : ", ") + fact + " " + value + ", now " + std::to_string(here);
  }
  return revisions;
}

void find_stale(FolderState& state, const std::string& folder, const Registry& registry) {
  for (const auto& [id, status] : state.ended) {
    const std::string revisions = other_revisions(results::load(folder + "/" + id + ".h5"), registry);
    if (!revisions.empty()) state.stale.push_back({id, revisions});
  }
}

std::string default_folder(const std::string& name) { return "results/data/" + name; }

}  // namespace phasor::sweeps
