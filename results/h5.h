#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace phasor::results::h5 {

/// What is wrong with an image, in a few words and without its file's name.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A Writer holds the library's lock for as long as it lives, a Reader from when it needs the library: the HDF5 of most
// distributions is not built thread-safe. An object is for one thread at a time.

class Reader;

/// An HDF5 file in memory. Equal calls give equal bytes: no times are stored. Every dataset carries the attribute
/// `digest` (FNV-1a of its values), since HDF5 itself guards only the metadata.
class Writer {
 public:
  Writer();
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void group(const std::string& path);
  void column(const std::string& path, const std::vector<double>& values, const std::string& unit = "");
  void column(const std::string& path, const std::vector<float>& values);
  void column(const std::string& path, const std::vector<std::int64_t>& values, const std::string& unit = "");
  void column(const std::string& path, const std::vector<std::uint8_t>& values);  // booleans, 0 or 1
  void column(const std::string& path, const std::vector<std::string>& values);   // UTF-8 of fixed length, null-padded
  /// Of the root group.
  void attribute(const std::string& name, const std::string& value);
  void attribute(const std::string& name, std::int64_t value);

  /// A group with everything that another file holds, its attributes too, known to us or not.
  void copy(const Reader& from, const std::string& path);

  /// The whole file; the writer is used up.
  std::string image();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

/// Reads an image. Every call throws Failure when the thing is absent, of another type or damaged. What a Writer made is
/// read without the library (results/h5_index.h); whatever is not so, and all that is to be refused, the library reads.
class Reader {
 public:
  explicit Reader(std::string_view image);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Reads every dataset, known to us or not, and compares its digest; gives the paths of those that carry none. What
  /// HDF5 itself keeps (names, types, attributes) it guards by checksums of its own.
  std::vector<std::string> compare_digests() const;

  /// Whether the library had to open the image so far.
  bool asks_library() const;

  bool has(const std::string& path) const;
  std::vector<double> doubles(const std::string& path) const;
  std::vector<float> floats(const std::string& path) const;
  std::vector<std::int64_t> integers(const std::string& path) const;
  std::vector<std::uint8_t> flags(const std::string& path) const;
  std::vector<std::string> strings(const std::string& path) const;
  bool has_attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;
  std::int64_t integer_attribute(const std::string& name) const;

 private:
  friend class Writer;
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace phasor::results::h5
