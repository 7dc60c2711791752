#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace phasor::language_modeling {

/// A file in the address space, read from disk as it is needed: it may be larger than memory. It must not be made shorter
/// meanwhile.
class MappedFile {
 public:
  /// UserError when it cannot be read.
  explicit MappedFile(std::string path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string path_;
  std::string_view bytes_;
};
using Files = std::vector<std::shared_ptr<const MappedFile>>;

/// Paths that a path or a shell pattern (`*`, `?`, `[a-z]`) stands for, in the order of their bytes; none when there are none.
std::vector<std::string> find_paths(const std::string& pattern);
Files open_files(const std::vector<std::string>& paths);

/// Hash of sizes and contents in this order, 32 hexadecimal digits; paths do not enter. Of a file above 64 MiB the content is 64
/// blocks of 1 MiB, evenly spread from the first byte to the last: enough to tell data sets apart, not to notice one
/// changed byte.
std::string content_of(const Files& files);

}  // namespace phasor::language_modeling
