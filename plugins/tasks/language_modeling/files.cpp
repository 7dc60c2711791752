#include "plugins/tasks/language_modeling/files.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/error.h"
#include "core/base/hash.h"

namespace phasor::language_modeling {

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const auto fail = [&](const std::string& reason) { throw UserError(path_ + ": " + reason); };
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(std::string("cannot be read: ") + std::strerror(errno));
  struct stat facts {};
  void* memory = nullptr;
  int error = 0;
  if (::fstat(file, &facts) != 0) error = errno;
  const bool regular = error == 0 && S_ISREG(facts.st_mode);
  if (regular && facts.st_size > 0) {
    memory = ::mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED) error = errno;
  }
  ::close(file);
  if (error != 0) fail(std::string("cannot be read: ") + std::strerror(error));
  if (!regular) fail("found something that is no file, expected one");
  if (memory != nullptr) bytes_ = {static_cast<const char*>(memory), static_cast<std::size_t>(facts.st_size)};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

std::vector<std::string> find_paths(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  std::sort(paths.begin(), paths.end());
  return paths;
}

Files open_files(const std::vector<std::string>& paths) {
  Files files;
  for (const std::string& path : paths) files.push_back(std::make_shared<const MappedFile>(path));
  return files;
}

std::string content_of(const Files& files) {
  constexpr std::size_t whole = std::size_t{64} << 20U, block = std::size_t{1} << 20U, blocks = 64;
  ContentHash hash;
  for (const auto& file : files) {
    const std::string_view bytes = file->bytes();
    hash.update_value(static_cast<std::uint64_t>(bytes.size()));
    if (bytes.size() <= whole) {
      hash.update(bytes);
      continue;
    }
    const std::size_t last = bytes.size() - block;
    for (std::size_t i = 0; i < blocks; ++i) hash.update(bytes.substr(last / (blocks - 1) * i + last % (blocks - 1) * i / (blocks - 1), block));
  }
  return hash.hex();
}

}  // namespace phasor::language_modeling
