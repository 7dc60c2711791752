#include "sweeps/lease.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "core/base/error.h"
#include "core/spec/json.h"
#include "results/files.h"

namespace phasor::sweeps {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t beat_digits = 12;  // of the count of signs of life, on the first line

std::string lease_file(const std::string& folder, const std::string& id, std::int64_t number) {
  return folder + "/leases/" + id + "." + std::to_string(number);
}
std::string lost_file(const std::string& lease) { return lease + ".lost"; }

bool exists(const std::string& file) { return ::access(file.c_str(), F_OK) == 0; }

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

double awake_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Start of this machine and namespace of its processes; empty when it cannot be known.
const std::string& kernel_here() {
  static const std::string found = [] {
    char space[64];
    const ssize_t size = ::readlink("/proc/self/ns/pid", space, sizeof space);
    std::string boot;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
    return size <= 0 || boot.empty() ? "" : boot + " " + std::string(space, static_cast<std::size_t>(size));
  }();
  return found;
}

std::string host_here() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

/// When a process started, in ticks since the machine did; 0 when it has ended, though nobody may have asked for it yet.
std::int64_t start_of(std::int64_t process) {
  const std::string stat = text_of("/proc/" + std::to_string(process) + "/stat");
  const std::size_t name_end = stat.rfind(')');  // a name may hold anything
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22 && fields >> field; ++number)
    if (number == 3 && (field == "Z" || field == "X")) return 0;
  return fields ? std::stoll(field) : 0;
}

std::int64_t random_token() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) throw InternalError("no random numbers from the system");
  return static_cast<std::int64_t>(bits >> 1);
}

/// Changes with every checkpoint that is written.
std::int64_t checkpoint_stamp(const std::string& folder, const std::string& id) {
  struct stat status {};
  if (::stat(results::checkpoint_file(folder, id).c_str(), &status) != 0) return 0;
  return static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
}

std::string beat_text(std::int64_t beats) {
  std::string digits = std::to_string(beats);
  return std::string(beat_digits - std::min(beat_digits, digits.size()), '0') + digits;
}

std::string owner_text(const Owner& owner) {
  Json json = Json::object();
  json["token"] = owner.token;
  json["host"] = owner.host;
  json["kernel"] = owner.kernel;
  json["process"] = owner.process;
  json["started"] = owner.started;
  json["jobs"] = owner.jobs;
  json["seconds"] = owner.seconds;
  json["checkpoint"] = owner.checkpoint;
  json["replaces"] = owner.replaces;
  if (!owner.task.empty()) json["task"] = owner.task;
  return json.canonical() + "\n";
}

/// Nothing when it is not whole: such a lease is held by somebody, we do not know whom.
std::optional<Owner> owner_of(const std::string& text) {
  if (text.size() <= beat_digits) return std::nullopt;
  try {
    const Json json = parse_json(text.substr(beat_digits + 1), "lease");
    const auto integer = [&](const char* key) { return json.find(key)->as_integer(); };
    Owner owner;
    for (const char* key : {"token", "host", "kernel", "process", "started", "jobs", "seconds", "checkpoint"})
      if (json.find(key) == nullptr) return std::nullopt;
    owner.token = integer("token");
    owner.host = json.find("host")->as_string();
    owner.kernel = json.find("kernel")->as_string();
    owner.process = integer("process");
    owner.started = integer("started");
    owner.jobs = integer("jobs");
    owner.seconds = json.find("seconds")->as_number();
    owner.checkpoint = integer("checkpoint");
    if (const Json* replaces = json.find("replaces")) owner.replaces = replaces->as_integer();
    if (const Json* task = json.find("task")) owner.task = task->as_string();
    return owner;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// The first attempt that is not lost.
std::int64_t valid_number(const std::string& folder, const std::string& id) {
  std::int64_t number = 1;
  while (exists(lost_file(lease_file(folder, id, number)))) ++number;
  return number;
}

}  // namespace

std::string to_text(const Owner& owner) { return "process " + std::to_string(owner.process) + " on " + owner.host; }

bool is_gone(const Owner& owner) {
  if (kernel_here().empty() || owner.kernel != kernel_here()) return false;
  const std::int64_t started = start_of(owner.process);
  if (started > 0) return started != owner.started;
  // Some systems hide the processes of other users; one that has ended unasked for still answers.
  return ::kill(static_cast<pid_t>(owner.process), 0) == 0 ? exists("/proc/self/stat") : errno == ESRCH;
}

bool Leases::expired(const std::string& file, const std::string& text) {
  const std::optional<Owner> owner = owner_of(text);
  if (owner && is_gone(*owner)) return true;
  const double now = awake_clock();
  Seen& seen = seen_[file];
  if (seen.text != text) {
    seen = {text, now, 0.0};
    return false;
  }
  // A machine that slept, or a runner that was stopped, has not waited for anybody meanwhile.
  seen.still += std::min(now - seen.last, 1.0);
  seen.last = now;
  return seen.still > (owner ? owner->seconds : seconds_);
}

std::optional<Lease> Leases::acquire(const std::string& id, std::int64_t replaces) {
  for (;;) {
    const std::int64_t number = valid_number(folder_, id);
    const std::string file = lease_file(folder_, id, number);
    if (!exists(file)) return claim(id, number, replaces);
    if (!expired(file, text_of(file))) return std::nullopt;
    seen_.erase(file);
    // Of all who saw it expire, one can rename it.
    if (::rename(file.c_str(), lost_file(file).c_str()) != 0) return std::nullopt;
  }
}

std::optional<Lease> Leases::acquire_unless(const std::function<bool()>& has_ended, const std::string& id,
                                            std::int64_t replaces) {
  if (has_ended()) return std::nullopt;
  std::optional<Lease> lease = acquire(id, replaces);
  if (lease && has_ended()) {
    release(*lease);
    return std::nullopt;
  }
  return lease;
}

std::optional<Lease> Leases::claim(const std::string& id, std::int64_t number, std::int64_t replaces) {
  Lease lease{id, number, random_token(), 0, ""};
  const std::int64_t checkpoint = checkpoint_stamp(folder_, id);
  const Owner owner{lease.token, host_here(), kernel_here(), ::getpid(), start_of(::getpid()),
                    jobs_,       seconds_,    checkpoint,    replaces,  task_};
  const std::string name = id + "." + std::to_string(number);
  std::error_code ignored;
  fs::create_directories(folder_ + "/leases", ignored);  // what is wrong with it, write_new says
  if (!results::write_new(folder_ + "/leases", name, name, beat_text(0) + "\n" + owner_text(owner), results::Durable::no))
    return std::nullopt;
  const std::string file = lease_file(folder_, id, number);
  if (exists(lost_file(file))) {  // a whole attempt of somebody else passed between our looking and our making it
    ::unlink(file.c_str());
    return std::nullopt;
  }
  for (std::int64_t before = number - 1; before > 0; --before) {
    const std::optional<Owner> earlier = owner_of(text_of(lost_file(lease_file(folder_, id, before))));
    if (!earlier || earlier->checkpoint != checkpoint || earlier->replaces != replaces) break;  // somebody got somewhere since
    if (lease.lost++ == 0) lease.last = to_text(*earlier);
  }
  return lease;
}

bool Leases::beat(const Lease& lease) {
  const std::string file = lease_file(folder_, lease.id, lease.number);
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return errno != ENOENT;  // a disk that stutters takes nothing away
  const std::optional<Owner> owner = owner_of(text_of(file));
  const bool ours = owner && owner->token == lease.token;
  if (ours) {
    // Into the file that was opened: if it is renamed meanwhile, the sign goes to the lost attempt.
    const std::string sign = beat_text(++beats_);
    [[maybe_unused]] const ssize_t written = ::pwrite(descriptor, sign.data(), sign.size(), 0);
  }
  ::close(descriptor);
  return ours && exists(file);
}

void Leases::release(const Lease& lease) {
  if (holds_lease(folder_, lease.id, lease.token)) ::unlink(lease_file(folder_, lease.id, lease.number).c_str());
}

bool holds_lease(const std::string& folder, const std::string& id, std::int64_t token) {
  const std::optional<Owner> owner = owner_of(text_of(lease_file(folder, id, valid_number(folder, id))));
  return owner && owner->token == token;
}

std::string strange_lease(const std::string& folder, const std::string& id) {
  const std::string file = lease_file(folder, id, valid_number(folder, id));
  return exists(file) && !owner_of(text_of(file)) ? file : "";
}

Standing read_leases(const std::string& folder) {
  Standing standing;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder + "/leases", error)) {
    const std::string name = entry.path().filename().string();
    if (name.front() == '.') continue;
    if (name.ends_with(".lost")) {
      ++standing.lost;
      continue;
    }
    const std::optional<Owner> owner = owner_of(text_of(entry.path().string()));
    if (owner && !is_gone(*owner)) standing.owners[entry.path().stem().string()] = *owner;
  }
  return standing;
}

}  // namespace phasor::sweeps
