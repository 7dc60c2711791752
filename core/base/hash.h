#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace phasor {

/// FNV-1a, 64 bits: a number for a name (of a parameter, a purpose). Not for telling contents apart.
constexpr std::uint64_t hash64(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

/// Version 5 UUID (RFC 4122) of a text in Phasor's own namespace, 99536c47-deac-5c2b-842d-d9614cc2a462, which is the
/// version 5 UUID of "phasor" in the namespace of DNS names. 36 characters, lower case.
std::string uuid5(std::string_view text);

/// 128 bits that tell contents apart (data sets, parameters, results): the first half of SHA-1. Values enter in little
/// endian order, so that one content has one hash on every machine.
class ContentHash {
 public:
  ContentHash();
  ContentHash(const ContentHash& other);
  ContentHash(ContentHash&& other) noexcept;
  ContentHash& operator=(ContentHash other) noexcept;
  ~ContentHash();

  void update(std::string_view bytes);

  /// Integers of fixed width and floating point numbers, by their bits (0.0 and -0.0 differ).
  template <class T>
  void update_values(std::span<const T> values) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) {
      update_raw(values.data(), values.size_bytes());
    } else {
      for (const T& value : values) {
        auto bytes = std::bit_cast<std::array<unsigned char, sizeof(T)>>(value);
        std::reverse(bytes.begin(), bytes.end());
        update_raw(bytes.data(), bytes.size());
      }
    }
  }
  template <class T>
  void update_value(const T& value) {
    update_values(std::span<const T>(&value, 1));
  }
  /// With its length, so that ("ab", "c") and ("a", "bc") differ.
  void update_text(std::string_view text) {
    update_value(static_cast<std::uint64_t>(text.size()));
    update(text);
  }

  /// 32 lower case hexadecimal digits of what came so far.
  std::string hex() const;

 private:
  void update_raw(const void* data, std::size_t size);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace phasor
