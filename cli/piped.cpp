#include "cli/piped.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "results/files.h"

namespace phasor::cli {

namespace {

/// The open file that a path stands for, or -1.
int descriptor_of(const std::string& file) {
  if (file == "/dev/stdin") return STDIN_FILENO;
  int number = -1;
  for (const std::string folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (file.starts_with(folder)) std::from_chars(file.data() + folder.size(), file.data() + file.size(), number);
  }
  return number;
}

}  // namespace

void keep_piped(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  const int pipe = descriptor_of(file);
  if (pipe < 0) throw UserError(file + ": is a pipe, which can be read only once, expected a file; or give /dev/stdin and < " + file);
  const std::string bytes = results::read_file(file);
  const int memory = ::memfd_create("phasor", MFD_CLOEXEC);
  const bool kept = memory >= 0 && ::write(memory, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) && ::dup2(memory, pipe) >= 0;
  const int error = errno;
  if (memory >= 0) ::close(memory);
  if (!kept) throw UserError(file + ": cannot be kept in memory: " + std::strerror(error) + "; write it to a file first");
}

}  // namespace phasor::cli
