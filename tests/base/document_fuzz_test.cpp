#include <gtest/gtest.h>
#include <optional>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/base/text.h"
#include "core/spec/problems.h"
#include "core/spec/scanner.h"
#include "core/spec/strict_json.h"

namespace phasor {
namespace {

const std::string seed_text = R"({
  "$schema": "../experiment.json", "seed": 9007199254740993, "note": "caf\u00e9 é 😀 \ud83d\ude00",
  "task": {"name": "state_tracking", "test": {"rows": 4000, "lengths": [32, 64, 96]}, "count_bos": false},
  "optimizer": {"lr": 0.005, "betas": [0.9, 0.999], "eps": 1e-8, "clip": null, "decay": -1.5E+3},
  "list": [[], {}, [{"a": [1, 2, [3]]}], "", "\\\"\/"]
})";

std::string mutated(Draws& draws) {
  static const std::vector<std::string> pieces = {"{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  ",",
                                                  ":",
                                                  "\"",
                                                  "'",
                                                  "\\",
                                                  "//",
                                                  "/*",
                                                  "*/",
                                                  "#",
                                                  "\n",
                                                  " ",
                                                  "\t",
                                                  "NaN",
                                                  "1e400",
                                                  ".5",
                                                  "-",
                                                  "1_0",
                                                  "\\u",
                                                  "\\ud83d",
                                                  "\xEF\xBB\xBF",
                                                  "\u201C",
                                                  "\u201D",
                                                  "\xff",
                                                  "\xc3",
                                                  std::string(1, '\0'),
                                                  "True",
                                                  "=",
                                                  ";",
                                                  "9223372036854775808",
                                                  "{\"a\":",
                                                  "[[[[[[[[[[",
                                                  "0x",
                                                  "e",
                                                  "+",
                                                  "\r"};
  std::string text = seed_text;
  const std::uint64_t changes = 1 + draws.below(12);
  for (std::uint64_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = draws.below(text.size()), length = draws.below(8);
    switch (draws.below(5)) {
      case 0:
        text.insert(at, pieces[draws.below(pieces.size())]);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.replace(at, std::min(length, text.size() - at), pieces[draws.below(pieces.size())]);
        break;
      case 3:
        text[at] = static_cast<char>(draws.below(256));
        break;
      default:
        text.resize(draws.chance(0.2) ? at : text.size());
        text += text.substr(at, length);
        break;
    }
  }
  return text;
}

/// Whatever comes in: no crash, places inside the text, one line per mistake, and a text is clean for the scanner only
/// if the strict parser takes it too and both understand the same.
TEST(DocumentFuzz, mutated_documents) {
  int clean = 0, bad = 0;
  for (std::uint64_t round = 0; round < 8000; ++round) {
    Draws draws(7, Purpose{99}, round);
    const std::string text = mutated(draws);
    const Document document = Document::parse(text, "f");
    StrictError error;
    const std::optional<Json> strict = strict_json(text, error);
    if (document.problems().empty()) {
      ++clean;
      ASSERT_TRUE(strict.has_value()) << text;
      ASSERT_EQ(scan_json(text).value.pretty(), strict->pretty()) << text;
      ASSERT_EQ(parse_json(strict->canonical(), "again"), *strict) << text;
    } else {
      ++bad;
      const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
      for (const Problem& p : document.problems()) {
        ASSERT_GE(p.position.line, 1) << text;
        ASSERT_LE(p.position.line, lines) << text;
        ASSERT_GE(p.position.column, 1) << text;
        ASSERT_EQ(p.message.find("not JSON"), std::string::npos) << text << p.message;
        ASSERT_FALSE(find_bad_utf8(p.message).has_value()) << text;
      }
      std::string report;
      try {
        document.require_none();
      } catch (const UserError& e) {
        report = e.what();
      }
      ASSERT_EQ(static_cast<std::size_t>(std::count(report.begin(), report.end(), '\n')) + 1,
                document.problems().size());
      document.value().canonical();
    }
  }
  EXPECT_GT(clean, 50);  // the loop looks at both kinds
  EXPECT_GT(bad, 4000);
}

/// What the strict parser takes, the scanner takes, apart from what it refuses on purpose: keys given twice, numbers
/// that underflow and byte order marks.
TEST(DocumentFuzz, the_scanner_refuses_nothing_that_is_json) {
  int compared = 0;
  for (std::uint64_t round = 0; round < 8000; ++round) {
    Draws draws(8, Purpose{99}, round);
    std::string text = seed_text;
    const std::size_t at = draws.below(text.size());
    if (draws.chance(0.5))
      text.erase(at, 1 + draws.below(3));
    else
      text[at] = static_cast<char>(' ' + static_cast<char>(draws.below(95)));
    StrictError error;
    if (!strict_json(text, error)) continue;
    ++compared;
    for (const Problem& p : scan_json(text).problems) {
      EXPECT_TRUE(p.message.find("again") != std::string::npos || p.message.find("4.9e-324") != std::string::npos)
          << text << p.message;
    }
  }
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace phasor
