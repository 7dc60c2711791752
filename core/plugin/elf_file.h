#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phasor {

/// The bytes of a shared library, read without loading it: opening one runs its static initialisers, and a cut-off one
/// kills the process.
class ElfFile {
 public:
  /// Throws UserError when the system could not map the bytes as a library of this machine: found, expected, what to
  /// do.
  explicit ElfFile(std::string bytes);
  /// Reads a file. Its name is not in the text of a UserError.
  static ElfFile open(const std::string& path);
  ElfFile(const ElfFile&) = delete;  // symbols point into the bytes
  ElfFile& operator=(const ElfFile&) = delete;

  /// Symbols that others can see, in the order of the file.
  std::vector<std::string> exported() const;
  /// The first `count` bytes of the object an exported symbol names, as they are in the file (pointers in it are not
  /// yet set); empty when there is no such symbol or the file holds fewer bytes.
  std::string object(std::string_view symbol, std::size_t count) const;

 private:
  struct Symbol {
    std::string_view name;
    std::uint64_t address;
  };
  struct Segment {
    std::uint64_t address, offset, size;
  };
  std::string bytes_;
  std::vector<Segment> segments_;
  std::vector<Symbol> symbols_;

  template <class T>
  T read(std::uint64_t offset) const;
  std::string_view text(std::uint64_t offset, std::uint64_t end) const;
  void read_segments();
  void read_symbols();
};

}  // namespace phasor
