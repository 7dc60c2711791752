#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace phasor::results::h5 {

/// FNV-1a (64 bit) of the values of a column.
std::uint64_t digest_of(std::string_view bytes);
/// What HDF5 guards its metadata by: hashlittle of Bob Jenkins' lookup3 (2006) with the initial value 0.
std::uint32_t checksum(std::string_view bytes);

/// Where the columns and the attributes of an image lie, found without the HDF5 library: that takes a hundred times as
/// long for small columns, and one thread at a time. It understands what `Writer` makes and no more (HDF5 File Format
/// Specification 3.0: superblock 2, object headers 2, links and attributes in the headers, contiguous values, six
/// types). For everything else, and where a checksum or a digest does not match, it gives nothing: then the library has
/// to look.
class Index {
 public:
  enum class Type { f64, f32, i64, u64, u8, text };
  struct Values {
    Type type;
    std::size_t width;  // bytes of one value
    std::size_t count;
    std::string_view bytes;  // in the image
  };

  /// Of an image that outlives the index.
  static std::optional<Index> of(std::string_view image);

  /// Whether there is a group or a column of that path. All of them are known.
  bool has(const std::string& path) const { return objects_.contains(path); }
  bool has_attribute(const std::string& name) const { return root().attributes.contains(name); }
  /// Null when it is absent, has no digest or does not match it.
  const Values* column(const std::string& path) const;
  /// One value, of the root group. Null when it is absent.
  const Values* attribute(const std::string& name) const;

 private:
  friend class IndexBuilder;
  struct Object {
    std::optional<Values> values;  // of a column
    std::map<std::string, Values> attributes;
  };
  const Object& root() const { return objects_.at(""); }

  std::map<std::string, Object> objects_;  // by path; "" is the root group
};

}  // namespace phasor::results::h5
