#include "core/base/hash.h"

#include <gtest/gtest.h>
#include <vector>

namespace phasor {
namespace {

// Reference values: FNV test vectors of the authors; uuid and hashlib of Python.
static_assert(hash64("") == 0xcbf29ce484222325u);
static_assert(hash64("a") == 0xaf63dc4c8601ec8cu);
static_assert(hash64("foobar") == 0x85944171f73967e8u);

TEST(Hash, uuid5) {
  EXPECT_EQ(uuid5(""), "3e835d6c-42a5-52f5-9b15-7c72734fa0d9");
  EXPECT_EQ(uuid5("{\"seed\":0}"), "3c62a8e9-3a67-5c8c-a1d7-e4dd30a737b7");
  EXPECT_NE(uuid5("a"), uuid5("b"));
}

std::string content(std::string_view bytes) {
  ContentHash hash;
  hash.update(bytes);
  return hash.hex();
}

TEST(Hash, content_is_the_first_half_of_sha1) {
  EXPECT_EQ(ContentHash().hex(), "da39a3ee5e6b4b0d3255bfef95601890");
  EXPECT_EQ(content("abc"), "a9993e364706816aba3e25717850c26c");
  EXPECT_EQ(content("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), "84983e441c3bd26ebaae4aa1f95129e5");
  EXPECT_EQ(content(std::string(1000000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad2731");
}

TEST(Hash, content_goes_on_after_hex) {
  ContentHash hash;
  hash.update("a");
  const ContentHash copy = hash;
  EXPECT_EQ(hash.hex(), content("a"));
  hash.update("bc");
  EXPECT_EQ(hash.hex(), content("abc"));
  EXPECT_EQ(copy.hex(), content("a"));
}

TEST(Hash, values_enter_in_little_endian_order) {
  ContentHash floats, integers, one;
  const std::vector<float> numbers = {1.0f, 2.0f, -0.5f};
  floats.update_values(std::span<const float>(numbers));
  EXPECT_EQ(floats.hex(), "d687943e69aea6ae51ca527bfad04c80");
  integers.update_value(std::int32_t{1});
  integers.update_value(std::int32_t{-2});
  EXPECT_EQ(integers.hex(), "e6cf1cee3e4a95ce61d3055151b01dcb");
  one.update_value(std::uint32_t{0x64636261});
  EXPECT_EQ(one.hex(), content("abcd"));
}

TEST(Hash, texts_do_not_run_into_each_other) {
  ContentHash first, second;
  first.update_text("ab");
  first.update_text("c");
  second.update_text("a");
  second.update_text("bc");
  EXPECT_NE(first.hex(), second.hex());
}

}  // namespace
}  // namespace phasor
