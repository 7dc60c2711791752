#include "core/base/text.h"

#include <gtest/gtest.h>

namespace phasor {
namespace {

TEST(Text, utf8) {
  EXPECT_FALSE(find_bad_utf8("abc \u00e9 \u20ac \U0001F600 \xEF\xBB\xBF"));
  EXPECT_FALSE(find_bad_utf8(std::string_view("\0", 1)));
  EXPECT_EQ(find_bad_utf8("ab\x80"), 2u);
  EXPECT_EQ(find_bad_utf8("\xC1\xBF"), 0u);          // overlong
  EXPECT_EQ(find_bad_utf8("a\xE0\x9F\xBF"), 1u);     // overlong
  EXPECT_EQ(find_bad_utf8("\xED\xA0\x80"), 0u);      // surrogate
  EXPECT_EQ(find_bad_utf8("\xF4\x90\x80\x80"), 0u);  // beyond U+10FFFF
  EXPECT_EQ(find_bad_utf8("\xF0\x8F\xBF\xBF"), 0u);  // overlong
  EXPECT_EQ(find_bad_utf8("\xE2\x82"), 0u);          // cut off
  std::string text;
  for (const char32_t code : {U'a', U'\u00e9', U'\u20ac', U'\U0001F600'}) append_utf8(text, code);
  EXPECT_EQ(text, "a\u00e9\u20ac\U0001F600");
}

TEST(Text, edit_distance) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("hedas", "heads"), 1u);  // neighbours swapped
  EXPECT_EQ(edit_distance("ab", ""), 2u);
}

TEST(Text, nearest) {
  const std::vector<std::string> names = {"rope", "nope", "selective_rope", "alibi", "lr"};
  EXPECT_EQ(nearest("ropee", names), "rope");
  EXPECT_EQ(nearest("Selective-RoPE", names), "selective_rope");
  EXPECT_EQ(nearest("selctive_rope", names), "selective_rope");
  EXPECT_EQ(nearest("alibbi", names), "alibi");
  EXPECT_EQ(nearest("l", names), "lr");
  EXPECT_EQ(nearest("transformer", names), std::nullopt);
  EXPECT_EQ(nearest("", names), std::nullopt);
  EXPECT_EQ(nearest(std::string(100000, 'x'), names), std::nullopt);
}

TEST(Text, words_for_a_shell) {
  EXPECT_EQ(shell_words({"phasor", "run", "a/b-1.json", "--set", "x=1e-3"}), "phasor run a/b-1.json --set x=1e-3");
  EXPECT_EQ(shell_words({"my file", "it's", "", "$HOME", "a*b", "~"}), "'my file' 'it'\\''s' '' '$HOME' 'a*b' '~'");
  EXPECT_EQ(shell_words({"{\"a\": 1}", "two\nlines"}), "'{\"a\": 1}' 'two\nlines'");
}

TEST(Text, lists) {
  EXPECT_EQ(quoted_list({}), "");
  EXPECT_EQ(quoted_list({"a"}), "\"a\"");
  EXPECT_EQ(quoted_list({"a", "b"}), "\"a\" or \"b\"");
  EXPECT_EQ(quoted_list({"a", "b", "c"}), "\"a\", \"b\" or \"c\"");
  EXPECT_EQ(quoted_list({"a", "b", "c"}, 2), "\"a\", \"b\" or \"c\"");
  EXPECT_EQ(quoted_list({"a", "b", "c", "d"}, 2), "\"a\", \"b\" or 2 others");
}

}  // namespace
}  // namespace phasor
