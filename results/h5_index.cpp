#include "results/h5_index.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace phasor::results::h5 {
namespace {

/// Something that the index does not know, or that is damaged. Never leaves this file.
struct Unknown {};

void expect(bool known) {
  if (!known) throw Unknown{};
}

constexpr std::uint64_t nowhere = ~std::uint64_t{0};  // an address that is not defined
constexpr std::size_t checksum_bytes = 4, most_depth = 8, most_objects = 1 << 12;

/// Numbers (little-endian) and texts, one after the other.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  std::string_view text(std::uint64_t size) {
    expect(size <= rest_.size());
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::uint64_t number(std::size_t size) {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t value = 0;
    std::memcpy(&value, text(size).data(), size);
    return value;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// Class, bits and properties of the types that Writer stores, as datatype messages without the size.
struct Encoding {
  Index::Type type;
  std::size_t width;
  std::string_view head, properties;
};
using namespace std::string_view_literals;
constexpr Encoding encodings[] = {
    {Index::Type::f64, 8, "\x11\x20\x3f\x00"sv, "\x00\x00\x40\x00\x34\x0b\x00\x34\xff\x03\x00\x00"sv},
    {Index::Type::f32, 4, "\x11\x20\x1f\x00"sv, "\x00\x00\x20\x00\x17\x08\x00\x17\x7f\x00\x00\x00"sv},
    {Index::Type::i64, 8, "\x10\x08\x00\x00"sv, "\x00\x00\x40\x00"sv},
    {Index::Type::u64, 8, "\x10\x00\x00\x00"sv, "\x00\x00\x40\x00"sv},
    {Index::Type::u8, 1, "\x10\x00\x00\x00"sv, "\x00\x00\x08\x00"sv},
    {Index::Type::text, 0, "\x13\x11\x00\x00"sv, ""sv}};  // UTF-8, padded with null bytes, of any width

std::pair<Index::Type, std::size_t> type_of(std::string_view message) {
  Cursor at(message);
  const std::string_view head = at.text(4);
  const std::size_t width = static_cast<std::size_t>(at.number(4));
  expect(width > 0);
  for (const Encoding& known : encodings) {
    const bool fits = known.width == width || known.type == Index::Type::text;
    if (fits && head == known.head && at.rest() == known.properties) return {known.type, width};
  }
  throw Unknown{};
}

/// Values of a dataspace: one, or those of the only dimension.
std::uint64_t count_of(std::string_view message) {
  Cursor at(message);
  expect(at.number(1) == 2);  // version
  const std::uint64_t rank = at.number(1), flags = at.number(1), kind = at.number(1);
  if (kind == 0) {
    expect(rank == 0);
    return 1;
  }
  expect(kind == 1 && rank == 1 && flags <= 1);
  const std::uint64_t count = at.number(8);
  expect(flags == 0 || at.number(8) == count);  // may not grow
  return count;
}

}  // namespace

/// Walks an image once, from the superblock through all object headers.
class IndexBuilder {
 public:
  explicit IndexBuilder(std::string_view image) : image_(image) {}
  Index build();

 private:
  struct Header {
    Index::Object object;
    std::optional<std::pair<Index::Type, std::size_t>> type;
    std::optional<std::uint64_t> count;
    std::optional<std::string_view> bytes;
    std::map<std::string, std::uint64_t> links;  // name and address
    bool group = false;
  };
  /// Bytes of the image that end with their checksum, without it.
  std::string_view guarded(std::uint64_t at, std::uint64_t size) const;
  std::string_view part(std::uint64_t at, std::uint64_t size) const {
    expect(at <= image_.size() && size <= image_.size() - at);
    return image_.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  }
  void object(std::uint64_t at, const std::string& path, std::size_t depth);
  void messages(std::string_view chunk, Header& header, std::size_t depth) const;
  void message(std::uint64_t kind, std::string_view body, Header& header, std::size_t depth) const;

  std::string_view image_;
  Index index_;
};

std::string_view IndexBuilder::guarded(std::uint64_t at, std::uint64_t size) const {
  expect(size > checksum_bytes);
  const std::string_view bytes = part(at, size);
  const std::string_view body = bytes.substr(0, bytes.size() - checksum_bytes);
  expect(Cursor(bytes.substr(body.size())).number(checksum_bytes) == checksum(body));
  return body;
}

/// Superblock 2: signature, version, bytes of an address and of a length, flags; base, extension, end, root.
Index IndexBuilder::build() {
  Cursor at(guarded(0, 48));
  expect(at.text(12) == "\x89HDF\r\n\x1a\n\x02\x08\x08\x00"sv);
  const std::uint64_t base = at.number(8), extension = at.number(8), end = at.number(8);
  expect(base == 0 && extension == nowhere && end == image_.size());
  object(at.number(8), "", 0);
  return std::move(index_);
}

/// Object header 2: signature, version, flags, size of the messages (in 1, 2, 4 or 8 bytes), messages.
void IndexBuilder::object(std::uint64_t at, const std::string& path, std::size_t depth) {
  expect(depth < most_depth && index_.objects_.size() < most_objects);  // links may lead in circles
  Cursor start(part(at, 6));
  expect(start.text(5) == "OHDR\x02"sv);
  const std::uint64_t flags = start.number(1);
  expect(flags < 4);  // no times, no order of attributes
  const std::size_t width = std::size_t{1} << flags;
  const std::uint64_t size = Cursor(part(at + 6, width)).number(width);
  expect(size <= image_.size());
  Header header;
  messages(guarded(at, 6 + width + size + checksum_bytes).substr(6 + width), header, 0);
  if (header.group) {
    expect(!header.type && !header.count && !header.bytes);
  } else {
    expect(header.type && header.count && header.bytes && header.links.empty());
    const std::size_t bytes = header.bytes->size(), of_one = header.type->second;
    expect(bytes % of_one == 0 && bytes / of_one == *header.count);
    header.object.values = Index::Values{header.type->first, of_one, bytes / of_one, *header.bytes};
  }
  expect(index_.objects_.emplace(path, std::move(header.object)).second);
  for (const auto& [name, target] : header.links) object(target, path.empty() ? name : path + "/" + name, depth + 1);
}

/// Each: kind, size, flags (bit 1: it lies elsewhere), body. What is left may be too small for another one.
void IndexBuilder::messages(std::string_view chunk, Header& header, std::size_t depth) const {
  expect(depth < most_depth);
  Cursor at(chunk);
  while (at.rest().size() >= 4) {
    const std::uint64_t kind = at.number(1), size = at.number(2), flags = at.number(1);
    expect((flags & 2) == 0);
    message(kind, at.text(size), header, depth);
  }
}

void IndexBuilder::message(std::uint64_t kind, std::string_view body, Header& header, std::size_t depth) const {
  Cursor at(body);
  switch (kind) {
    case 0x00:  // unused
    case 0x05:  // fill value
    case 0x0a:  // estimates of a group
      return;
    case 0x01:
      header.count = count_of(body);
      return;
    case 0x02:  // links are in the header, unless a heap of them is defined
    case 0x15:  // the same of attributes
      expect(at.number(2) == 0 && at.number(8) == nowhere);
      header.group = header.group || kind == 0x02;
      return;
    case 0x03:
      header.type = type_of(body);
      return;
    case 0x06: {  // link: version 1, a hard one whose name has less than 256 bytes
      expect(at.number(2) == 1);
      const std::string_view name = at.text(at.number(1));
      expect(header.links.emplace(name, at.number(8)).second);
      return;
    }
    case 0x08: {  // layout: version 3, contiguous
      expect(at.number(2) == 0x0103);
      const std::uint64_t address = at.number(8), size = at.number(8);
      header.bytes = size == 0 ? std::string_view{} : part(address, size);
      return;
    }
    case 0x0c: {  // attribute: version 3, nothing of it elsewhere
      expect(at.number(2) == 3);
      const std::uint64_t name_size = at.number(2), type_size = at.number(2), space_size = at.number(2);
      at.number(1);  // character set of the name
      const std::string_view name = at.text(name_size);
      const auto [type, width] = type_of(at.text(type_size));
      expect(!name.empty() && name.back() == '\0' && count_of(at.text(space_size)) == 1);
      const Index::Values values{type, width, 1, at.text(width)};
      expect(header.object.attributes.emplace(name.substr(0, name.size() - 1), values).second);
      return;
    }
    case 0x10: {  // goes on elsewhere
      const std::uint64_t address = at.number(8);
      const std::string_view chunk = guarded(address, at.number(8));
      expect(chunk.starts_with("OCHK"));
      messages(chunk.substr(4), header, depth + 1);
      return;
    }
    default:
      throw Unknown{};
  }
}

std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t a = 0xdeadbeef + static_cast<std::uint32_t>(bytes.size()), b = a, c = a;
  const auto add = [&](std::string_view block) {
    std::array<std::uint32_t, 3> words{};  // a block that is not full ends in zeros
    std::memcpy(words.data(), block.data(), block.size());
    a += words[0], b += words[1], c += words[2];
  };
  const auto step = [](std::uint32_t& x, std::uint32_t& y, std::uint32_t z, int by) {
    x = (x - y) ^ std::rotl(y, by);
    y += z;
  };
  for (; bytes.size() > 12; bytes.remove_prefix(12)) {
    add(bytes.substr(0, 12));
    step(a, c, b, 4);
    step(b, a, c, 6);
    step(c, b, a, 8);
    step(a, c, b, 16);
    step(b, a, c, 19);
    step(c, b, a, 4);
  }
  if (bytes.empty()) return c;
  add(bytes);
  const auto last = [](std::uint32_t& x, std::uint32_t y, int by) { x = (x ^ y) - std::rotl(y, by); };
  last(c, b, 14);
  last(a, c, 11);
  last(b, a, 25);
  last(c, b, 16);
  last(a, c, 4);
  last(b, a, 14);
  last(c, b, 24);
  return c;
}

std::uint64_t digest_of(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  return hash;
}

std::optional<Index> Index::of(std::string_view image) {
  try {
    return IndexBuilder(image).build();
  } catch (const Unknown&) {
    return std::nullopt;
  }
}

const Index::Values* Index::column(const std::string& path) const {
  const auto found = objects_.find(path);
  if (found == objects_.end() || !found->second.values) return nullptr;
  const auto digest = found->second.attributes.find("digest");
  if (digest == found->second.attributes.end() || digest->second.type != Type::u64) return nullptr;
  const Values& values = *found->second.values;
  return Cursor(digest->second.bytes).number(8) == digest_of(values.bytes) ? &values : nullptr;
}

const Index::Values* Index::attribute(const std::string& name) const {
  const auto found = root().attributes.find(name);
  return found == root().attributes.end() ? nullptr : &found->second;
}

}  // namespace phasor::results::h5
