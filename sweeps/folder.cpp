#include "sweeps/folder.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include "core/base/error.h"
#include "experiments/spec.h"

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

FolderLock::FolderLock(const std::string& folder) {
  const std::string file = folder + "/.lock";
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse(folder, std::string(std::strerror(errno)) + " (.lock)");
  // `phasor status` holds it too, for a moment.
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    if (errno != EWOULDBLOCK) break;
    ::usleep(20'000);
    errno = EWOULDBLOCK;
  }
  if (errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw UserError(folder +
                    ": another phasor sweep is running there; wait for it, or choose another folder with --out");
  }
  warning_ = folder + ": no file locks there (" + std::strerror(errno) + "); do not start a second sweep in it";
}

FolderLock::~FolderLock() { ::close(descriptor_); }

void FolderLock::sign(std::int64_t jobs) const {
  const std::string text = "process " + std::to_string(::getpid()) + " jobs " + std::to_string(jobs) + "\n";
  // Only a courtesy: a disk without room for it must not stop a sweep.
  if (::ftruncate(descriptor_, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(descriptor_, text.data(), text.size(), 0);
}

FolderState read_folder(const std::string& folder, const Expansion& expansion) {
  FolderState state;
  if (!std::filesystem::exists(folder)) return state;
  std::set<std::string> expected, perhaps;
  for (const Trial& trial : expansion.trials) expected.insert(trial.id);
  for (const Expansion::Fresh& fresh : expansion.fresh) perhaps.insert(fresh.trial.id);  // while the selection is not complete
  const results::Folder found = results::load_folder(folder);
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

void find_stale(FolderState& state, const std::string& folder, const Registry& registry) {
  for (const auto& [id, status] : state.ended) {
    std::string revisions;
    for (const auto& [fact, value] : results::load(folder + "/" + id + ".h5").provenance) {
      const int here = fact.starts_with("numerics.") ? revision_here(fact, registry) : 0;
      if (here == 0 || value == std::to_string(here)) continue;
      revisions += (revisions.empty() ? "" : ", ") + fact + " " + value + ", now " + std::to_string(here);
    }
    if (!revisions.empty()) state.stale.push_back({id, revisions});
  }
}

std::string default_folder(const std::string& name) { return "results/data/" + name; }

}  // namespace phasor::sweeps
