#include "results/files.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/base/error.h"
#include "results/replace.h"

namespace phasor::results {
namespace {

std::string reason(int error) {
  std::string text = std::generic_category().message(error);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space and run again, what is already saved is kept";
    case EFBIG:
      return "raise the limit on the size of files (ulimit -f) and run again, what is already saved is kept";
    case EISDIR:
    case ENOTEMPTY:
    case EEXIST:
      return "move what has that name away, and run again";
    case ENOENT:
    case ENOTDIR:
      return "make the folder first, or name another";
    case EACCES:
    case EPERM:
    case EROFS:
      return "give this user the right to write there, or name another folder";
    default:
      return "look at the disk, then run again";
  }
}

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw UserError(path + ": cannot be written, " + reason(error) + "; " + remedy(error));
}

/// A file descriptor that is closed on every way out.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  int close() {
    const int result = ::close(number_);
    number_ = -1;
    return result;
  }

 private:
  int number_;
};

/// 0, or the error number of the call that failed.
int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

int write_to(const std::string& path, std::string_view bytes, Durable durable) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.number() < 0) return errno;
  if (const int error = write_all(file.number(), bytes)) return error;
  if (durable == Durable::yes && ::fsync(file.number()) != 0) return errno;
  return file.close() == 0 ? 0 : errno;  // network disks may report a full disk only here
}

/// Numbers of processes are not enough: another machine, or another container, has the same ones.
std::string aside_of(const std::string& folder, const std::string& stem) {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) random = static_cast<std::uint32_t>(::time(nullptr));
  char ending[40];
  std::snprintf(ending, sizeof ending, ".%d.%08x.tmp", static_cast<int>(::getpid()), random);
  return folder + "/." + stem + ending;
}

void sync_folder(const std::string& folder, const std::string& target) {
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some network file systems do not sync folders (EINVAL); the rename is as durable there as it can be.
  if (directory.number() >= 0 && ::fsync(directory.number()) != 0 && errno != EINVAL) cannot_write(target, errno);
}

/// Gives a file its name if nobody has it: 0, EEXIST or another error.
int name_new(const std::string& aside, const std::string& target) {
  if (::link(aside.c_str(), target.c_str()) == 0) return 0;
  const int error = errno;
  struct stat status {};
  // A network disk may have done it and lost its answer, then found it done when asked again.
  if (error == EEXIST && ::stat(aside.c_str(), &status) == 0 && status.st_nlink == 2) return 0;
  if (error != EPERM && error != EOPNOTSUPP && error != ENOSYS) return error;
  // A file system without hard links.
  return ::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
}

/// Records, checkpoints, manifests and experiments are not to be lost to a slip in `--out`: a table or a page replaces no
/// HDF5 and no JSON file.
void refuse_other_kind(const std::string& path, std::string_view bytes) {
  constexpr std::string_view hdf5 = "\x89HDF";
  const auto first = [](std::string_view text) {
    const std::size_t at = text.find_first_not_of(" \t\r\n");
    return at == std::string_view::npos ? '\0' : text[at];
  };
  const auto is_json = [&](std::string_view text) { return path.ends_with(".json") && (first(text) == '{' || first(text) == '['); };
  const std::string before = read_file(path);
  const char* kind = before.starts_with(hdf5) && !bytes.starts_with(hdf5) ? "an HDF5 file, as records and checkpoints are"
                     : is_json(before) && !is_json(bytes)                 ? "a JSON file, as experiments and sweeps are"
                                                                          : nullptr;
  if (kind != nullptr) throw UserError(path + ": is " + kind + ", and is not replaced by something else; name another file");
}

}  // namespace

std::string read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) throw UserError(path + ": cannot be read, " + reason(errno));
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(file.number(), buffer, sizeof buffer);
    if (count == 0) return bytes;
    if (count > 0) {
      bytes.append(buffer, static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      throw UserError(path + ": cannot be read, " + reason(errno));
    }
  }
}

void write_named(const std::string& path, std::string_view bytes) {
  struct stat status {};
  const bool there = ::stat(path.c_str(), &status) == 0;
  if (there && S_ISREG(status.st_mode)) refuse_other_kind(path, bytes);
  if (!there || S_ISREG(status.st_mode)) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
    const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
    write_whole(folder, name, name, bytes);
    return;
  }
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.number() < 0) cannot_write(path, errno);
  if (const int error = write_all(file.number(), bytes)) cannot_write(path, error);
  if (file.close() != 0) cannot_write(path, errno);
}

void write_whole(const std::string& folder, const std::string& name, const std::string& stem, std::string_view bytes) {
  const std::string target = folder + "/" + name;
  const std::string aside = aside_of(folder, stem);
  int error = write_to(aside, bytes, Durable::yes);
  if (error == 0 && ::rename(aside.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(aside.c_str());
    cannot_write(target, error);
  }
  sync_folder(folder, target);
}

bool write_new(const std::string& folder, const std::string& name, const std::string& stem, std::string_view bytes,
               Durable durable) {
  const std::string target = folder + "/" + name;
  const std::string aside = aside_of(folder, stem);
  int error = write_to(aside, bytes, durable);
  if (error == 0) error = name_new(aside, target);
  ::unlink(aside.c_str());
  if (error == EEXIST) return false;
  if (error != 0) cannot_write(target, error);
  if (durable == Durable::yes) sync_folder(folder, target);
  return true;
}

std::optional<Stamp> stamp_of(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;
  return Stamp{status.st_ino, static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec,
               status.st_size};
}

bool write_instead(const std::string& folder, const std::string& name, const std::string& stem, std::string_view bytes,
                   const std::optional<Stamp>& seen) {
  const std::string target = folder + "/" + name;
  if (!seen) return write_new(folder, name, stem, bytes, Durable::yes);
  const std::string aside = aside_of(folder, stem);
  int error = write_to(aside, bytes, Durable::yes);
  const std::optional<Stamp> now = stamp_of(target);
  const bool another = error == 0 && now && now != seen;
  if (error == 0 && !another) error = now ? (::rename(aside.c_str(), target.c_str()) == 0 ? 0 : errno) : name_new(aside, target);
  ::unlink(aside.c_str());
  if (another || error == EEXIST) return false;
  if (error != 0) cannot_write(target, error);
  sync_folder(folder, target);
  return true;
}

std::string checkpoint_file(const std::string& folder, const std::string& id) { return folder + "/checkpoints/" + id + ".h5"; }

void remove_asides(const std::string& folder, const std::string& stem) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("." + stem + ".") && name.ends_with(".tmp")) ::unlink(entry.path().c_str());
  }
}

}  // namespace phasor::results
