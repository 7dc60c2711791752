#include "core/plugin/elf_file.h"

#include <cerrno>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace phasor {

namespace {

#if defined(__x86_64__)
constexpr unsigned machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned machine = EM_AARCH64;
#else
#error "say which ELF machine this processor is"
#endif

[[noreturn]] void truncated(std::size_t size) {
  throw UserError("found " + std::to_string(size) +
                  " bytes of a longer shared library, expected all of it; copy or build it again");
}

std::string read_all(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!error && !std::filesystem::is_regular_file(status)) {
    throw UserError("found something that is not a file, expected a shared library; remove it or name another path");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw UserError("cannot be opened (" + std::generic_category().message(errno) +
                    "), expected a shared library; check the path and its permissions");
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string printable_head(const std::string& bytes) {
  std::string head;
  for (const char c : bytes.substr(0, 16)) head += c >= ' ' && c <= '~' && c != '"' ? c : '.';
  return head;
}

}  // namespace

template <class T>
T ElfFile::read(std::uint64_t offset) const {
  if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) truncated(bytes_.size());
  T value;
  std::memcpy(&value, bytes_.data() + offset, sizeof(T));
  return value;
}

std::string_view ElfFile::text(std::uint64_t offset, std::uint64_t end) const {
  const std::string_view all(bytes_);
  if (end > all.size()) truncated(all.size());
  if (offset >= end) return {};
  const std::string_view rest = all.substr(offset, end - offset);
  return rest.substr(0, rest.find('\0'));
}

ElfFile ElfFile::open(const std::string& path) { return ElfFile(read_all(path)); }

ElfFile::ElfFile(std::string bytes) : bytes_(std::move(bytes)) {
  const std::string advice = ", expected a shared library; remove it or build it again";
  if (bytes_.empty()) throw UserError("found an empty file" + advice);
  const std::string_view magic(ELFMAG, SELFMAG);
  if (std::string_view(bytes_).substr(0, magic.size()) != magic) {
    throw UserError("found a file that begins with \"" + printable_head(bytes_) + "\"" + advice + " (ELF)");
  }
  const auto header = read<Elf64_Ehdr>(0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != machine) {
    throw UserError("found a library for another processor (ELF machine " + std::to_string(header.e_machine) +
                    ", class " + std::to_string(header.e_ident[EI_CLASS]) + "), expected machine " +
                    std::to_string(machine) + ", class 2; build it on this machine");
  }
  if (header.e_type != ET_DYN) {
    throw UserError("found an ELF file of type " + std::to_string(header.e_type) + advice + " (type 3)");
  }
  read_segments();
  read_symbols();
}

void ElfFile::read_segments() {
  const auto header = read<Elf64_Ehdr>(0);
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = read<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_offset > bytes_.size() || bytes_.size() - segment.p_offset < segment.p_filesz)
      truncated(bytes_.size());
    segments_.push_back({segment.p_vaddr, segment.p_offset, segment.p_filesz});
  }
}

void ElfFile::read_symbols() {
  const auto header = read<Elf64_Ehdr>(0);
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_DYNSYM) continue;
    const auto names = read<Elf64_Shdr>(header.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
    if (names.sh_offset > bytes_.size() || bytes_.size() - names.sh_offset < names.sh_size) truncated(bytes_.size());
    for (std::uint64_t at = 0; section.sh_size - at >= sizeof(Elf64_Sym) && at < section.sh_size;
         at += sizeof(Elf64_Sym)) {
      const auto symbol = read<Elf64_Sym>(section.sh_offset + at);
      const auto binding = ELF64_ST_BIND(symbol.st_info);
      const auto visibility = ELF64_ST_VISIBILITY(symbol.st_other);
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS || binding == STB_LOCAL) continue;
      if (visibility == STV_HIDDEN || visibility == STV_INTERNAL || symbol.st_name >= names.sh_size) continue;
      symbols_.push_back({text(names.sh_offset + symbol.st_name, names.sh_offset + names.sh_size), symbol.st_value});
    }
  }
}

std::vector<std::string> ElfFile::exported() const {
  std::vector<std::string> names;
  for (const Symbol& symbol : symbols_) names.emplace_back(symbol.name);
  return names;
}

std::string ElfFile::object(std::string_view name, std::size_t count) const {
  for (const Symbol& symbol : symbols_) {
    if (symbol.name != name) continue;
    for (const Segment& segment : segments_) {
      if (symbol.address < segment.address || symbol.address - segment.address >= segment.size) continue;
      const std::uint64_t into = symbol.address - segment.address;
      if (segment.size - into >= count) return bytes_.substr(segment.offset + into, count);
    }
  }
  return {};
}

}  // namespace phasor
