#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/spec/problems.h"
#include "core/spec/scanner.h"
#include "core/spec/strict_json.h"

namespace phasor {
namespace {

/// The report about a document, without the name of the file: "line:column: path: message".
std::string report(const Document& document) {
  try {
    document.require_none();
  } catch (const UserError& error) {
    std::string text = std::string("\n") + error.what();
    const std::string prefix = '\n' + document.name() + ':';
    for (std::size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;) text.replace(at, prefix.size(), "\n");
    return text.substr(1);
  }
  return "none";
}
std::string report(const std::string& text) { return report(Document::parse(text, "f.json")); }

struct Mistake {
  const char* text;
  const char* report;
  const char* value;  // canonical, what is understood all the same
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.text; }

class Syntax : public testing::TestWithParam<Mistake> {};

TEST_P(Syntax, is_reported_in_its_place_and_read_past) {
  const Document document = Document::parse(GetParam().text, "f.json");
  EXPECT_EQ(report(document), GetParam().report) << GetParam().text;
  EXPECT_EQ(document.value().canonical(), GetParam().value) << GetParam().text;
}

const Mistake comments[] = {
    {"{\n  // why\n  \"a\": 1 /* b */ }",
     "2:3: found a comment, JSON has none, remove it\n"
     "3:10: found a comment, JSON has none, remove it",
     R"({"a":1})"},
    {"{\"a\": 1 # end\n}", "1:9: found a comment, JSON has none, remove it", R"({"a":1})"},
    {"{\"a\": \"// # /* no comment */\"}", "none", R"({"a":"// # /* no comment */"})"},
    {"{\"a\": 1} /* open", "1:10: found a comment that does not end, JSON has none, remove it", R"({"a":1})"},
    {"{\"a\": 1}\n// last", "2:1: found a comment, JSON has none, remove it", R"({"a":1})"},
};
const Mistake commas[] = {
    {"{\"a\": 1,\n}", "1:8: found a comma before \"}\", expected none", R"({"a":1})"},
    {"{\"a\": [1, 2, ]}", "1:12: a: found a comma before \"]\", expected none", R"({"a":[1,2]})"},
    {"{\"a\": 1\n \"b\": 2}", "1:8: missing \",\" after this value", R"({"a":1,"b":2})"},
    {"[1 2]", "1:3: missing \",\" after this value", "[1,2]"},
    {"[{} {}]", "1:4: missing \",\" after this value", "[{},{}]"},
    {"{\"a\": 1,, \"b\": 2}", "1:9: found \",\", expected a key, remove it", R"({"a":1,"b":2})"},
    {"[,1]", "1:2: found \",\", expected a value, remove it", "[1]"},
    {"{\"a\": 1; \"b\": 2}", "1:8: found \";\", expected \",\"", R"({"a":1,"b":2})"},
    {"{\"a\" 1}", "1:5: a: missing \":\" after the key \"a\"", R"({"a":1})"},
    {"{\"a\" = 1}", "1:6: a: found \"=\", expected \":\"", R"({"a":1})"},
    {"{\"a\": , \"b\": 2}", "1:7: a: found \",\", expected a value", R"({"a":null,"b":2})"},
    {"{\"a\": }", "1:7: a: found \"}\", expected a value", R"({"a":null})"},
    {"{\"a\"}", "1:5: a: missing \":\" after the key \"a\"\n1:5: a: found \"}\", expected a value", R"({"a":null})"},
    {"{\"a\": @ 1}", "1:7: a: found \"@\", expected a value", R"({"a":1})"},
    {"{\"a\": 1 @@ , \"b\": 2}", "1:9: found \"@\", expected \",\"", R"({"a":1,"b":2})"},
};
const Mistake keys[] = {
    {"{\"lr\": 1,\n \"b\": 2,\n \"lr\": 3}", "3:2: lr: found the key \"lr\" again, first at line 1, remove one",
     R"({"b":2,"lr":1})"},
    {"{\"l\\u0072\": 1, \"lr\": 2}", "1:16: lr: found the key \"lr\" again, first at line 1, remove one",
     R"({"lr":1})"},
    {"{\"x\": {\"a\": 1}, \"y\": {\"a\": 1}}", "none", R"({"x":{"a":1},"y":{"a":1}})"},
    {"{lr: 1}", "1:2: found the key lr without quotes, expected \"lr\"", R"({"lr":1})"},
    {"{lr\": 1}", "1:2: found the key lr\" without its opening quote, expected \"lr\"", R"({"lr":1})"},
    {"{'lr': 1}", "1:2: found single quotes, expected double quotes: \"lr\"", R"({"lr":1})"},
    {"{\"a\": 1, {\"b\": 2}, \"c\": 3}", "1:10: found \"{\", expected a key", R"({"a":1,"c":3})"},
};
const Mistake texts[] = {
    {"{\"a\": 'x\"y'}", "1:7: a: found single quotes, expected double quotes: \"x\\\"y\"", R"({"a":"x\"y"})"},
    {"{\"a\": \u201Cx\u201D, \"b\": 1,}",
     "1:7: a: found typographic quotes, expected double quotes: \"x\"\n"
     "1:18: found a comma before \"}\", expected none",
     R"({"a":"x","b":1})"},
    {"{\"a\": \"abc,\n \"b\": 2}", "1:7: a: found a text that does not end on its line, expected a closing quote",
     R"({"a":"abc","b":2})"},
    {"{\"a: 1,\n \"b\": 2}", "1:2: found a text that does not end on its line, expected a closing quote",
     R"({"a":1,"b":2})"},
    {"{\"a\": \"abc}", "1:7: a: found a text that does not end on its line, expected a closing quote",
     R"({"a":"abc"})"},
    {"{\"a\": rope}", "1:7: a: found rope without quotes, expected \"rope\"", R"({"a":"rope"})"},
    {"{\"a\": rope\"}", "1:7: a: found rope without quotes, expected \"rope\"", R"({"a":"rope"})"},
    {"[\"\\d\"]", "1:3: [0]: found a backslash before \"d\", which is no escape of JSON; write \\\\ for a backslash",
     R"(["\\d"])"},
    {"[\"a\tb\"]", "1:4: [0]: found a tab in a text, expected \\t", R"(["a\tb"])"},
    {"[\"\x01\"]", "1:3: [0]: found the control character U+0001 in a text, expected an escape such as \\n",
     R"(["\u0001"])"},
    {"[\"\\ud800\"]",
     "1:3: [0]: found \\ud800, expected \\u and four hexadecimal digits of a character, or a pair of surrogates",
     "[\"\uFFFDd800\"]"},
    {"[\"\\u12g4\"]",
     "1:3: [0]: found \\u12g4, expected \\u and four hexadecimal digits of a character, or a pair of surrogates",
     "[\"\uFFFD12g4\"]"},
};
const Mistake numbers[] = {
    {"[NaN, 1]", "1:2: [0]: found NaN, expected a finite number", "[null,1]"},
    {"[-Infinity, inf]",
     "1:2: [0]: found -Infinity, expected a finite number\n"
     "1:13: [1]: found inf, expected a finite number",
     "[null,null]"},
    {"[.5, -.5, 5., 1.e3, +1]",
     "1:2: [0]: found .5, expected 0.5\n1:6: [1]: found -.5, expected -0.5\n1:11: [2]: found 5., expected 5.0\n"
     "1:15: [3]: found 1.e3, expected 1.0e3\n1:21: [4]: found +1, expected 1",
     "[0.5,-0.5,5,1000,1]"},
    {"[1_000, 007, -01, 00, 0x1F]",
     "1:2: [0]: found 1_000, expected 1000\n1:9: [1]: found 007, expected 7\n1:14: [2]: found -01, expected -1\n"
     "1:19: [3]: found 00, expected 0\n1:23: [4]: found 0x1F, expected a decimal number, write 31",
     "[1000,7,-1,0,31]"},
    {"[1e400]", "1:2: [0]: found 1e400, expected a number that fits a double, below 1.8e308 in size", "[null]"},
    {"[-1e400]", "1:2: [0]: found -1e400, expected a number that fits a double, below 1.8e308 in size", "[null]"},
    {"[1e-400]", "1:2: [0]: found 1e-400, expected a number that fits a double, 0 or above 4.9e-324 in size", "[null]"},
    {"[0.00001e400]", "1:2: [0]: found 0.00001e400, expected a number that fits a double, below 1.8e308 in size",
     "[null]"},
    {"[9223372036854775807, 9223372036854775808]",
     "1:23: [1]: found 9223372036854775808, expected an integer from -2^63 to 2^63 - 1", "[9223372036854775807,null]"},
    {"[-9223372036854775809]", "1:2: [0]: found -9223372036854775809, expected an integer from -2^63 to 2^63 - 1",
     "[null]"},
    {"[1e, 12abc, 1.2.3]",
     "1:2: [0]: found 1e, expected a number, put text in double quotes\n"
     "1:6: [1]: found 12abc, expected a number, put text in double quotes\n"
     "1:13: [2]: found 1.2.3, expected a number, put text in double quotes",
     "[null,null,null]"},
    {"[True, FALSE, None, NULL]",
     "1:2: [0]: found True, expected true\n1:8: [1]: found FALSE, expected false\n"
     "1:15: [2]: found None, expected null\n1:21: [3]: found NULL, expected null",
     "[true,false,null,null]"},
};
const Mistake brackets[] = {
    {"{\"a\": {\n\"b\": 1",
     "1:1: found no \"}\" for this \"{\" before the end of the file\n"
     "1:7: a: found no \"}\" for this \"{\" before the end of the file",
     R"({"a":{"b":1}})"},
    {"{\"a\": [1, 2}", "1:12: a: found \"}\", expected \"]\" for the \"[\" of line 1", R"({"a":[1,2]})"},
    {"{\"a\": {\"x\": 1], \"b\": 2}", "1:14: a: found \"]\", expected \"}\" for the \"{\" of line 1",
     R"({"a":{"x":1},"b":2})"},
    {"{\"a\": 1}}", "1:9: found \"}\" that closes nothing, remove it", R"({"a":1})"},
    {"{\"a\": 1} x", "1:10: found \"x\" after the end of the document, expected nothing more", R"({"a":1})"},
    {"{} {}", "1:4: found \"{\" after the end of the document, expected nothing more", "{}"},
    {"{\"a\":",
     "1:1: found no \"}\" for this \"{\" before the end of the file\n"
     "1:6: a: found the end of the file, expected a value",
     R"({"a":null})"},
    {"\xEF\xBB\xBF{\"a\": tru}",
     "1:1: found a byte order mark, expected none, save as UTF-8 without it\n"
     "1:7: a: found tru without quotes, expected \"tru\"",
     R"({"a":"tru"})"},
    {"", "1:1: found nothing in it, expected a JSON object in { }", "null"},
    {" \n\t ", "1:1: found nothing in it, expected a JSON object in { }", "null"},
    {"{\"\u00e9\": \"\xe9\"}", "1:8: found the byte 0xe9, expected UTF-8 text, save it in that encoding", "null"},
    {"[\"\xC0\x80\"]", "1:3: found the byte 0xc0, expected UTF-8 text, save it in that encoding", "null"},
    {"\xFF\xFE{", "1:1: found UTF-16 text, expected UTF-8, save it in that encoding", "null"},
};
INSTANTIATE_TEST_SUITE_P(comments, Syntax, testing::ValuesIn(comments));
INSTANTIATE_TEST_SUITE_P(commas, Syntax, testing::ValuesIn(commas));
INSTANTIATE_TEST_SUITE_P(keys, Syntax, testing::ValuesIn(keys));
INSTANTIATE_TEST_SUITE_P(texts, Syntax, testing::ValuesIn(texts));
INSTANTIATE_TEST_SUITE_P(numbers, Syntax, testing::ValuesIn(numbers));
INSTANTIATE_TEST_SUITE_P(brackets, Syntax, testing::ValuesIn(brackets));

TEST(Document, all_mistakes_in_one_report) {
  EXPECT_EQ(report("{ // c\n  \"a\": .5,\n  \"a\": 'x',\n  \"b\": [1 2,],\n  \"c\": True\n  \"d\": 1e999,\n}"),
            "1:3: found a comment, JSON has none, remove it\n"
            "2:8: a: found .5, expected 0.5\n"
            "3:3: a: found the key \"a\" again, first at line 2, remove one\n"
            "3:8: a: found single quotes, expected double quotes: \"x\"\n"
            "4:10: b: missing \",\" after this value\n"
            "4:12: b: found a comma before \"]\", expected none\n"
            "5:8: c: found True, expected true\n"
            "5:12: missing \",\" after this value\n"
            "6:8: d: found 1e999, expected a number that fits a double, below 1.8e308 in size\n"
            "6:13: found a comma before \"}\", expected none");
}

TEST(Document, positions_of_keys_and_values) {
  const Document d = Document::parse("{\n  \"a\": {\"\u00e9\": 1, \"b\":\n [10, {\"c\": 2}]},\r\n\"z\": null\n}", "f");
  ASSERT_EQ(report(d), "none");
  const auto value = [&](const char* path) { return std::pair(d.position_of(path).line, d.position_of(path).column); };
  const auto key = [&](const char* path) {
    return std::pair(d.key_position_of(path).line, d.key_position_of(path).column);
  };
  EXPECT_EQ(value(""), std::pair(1, 1));
  EXPECT_EQ(value("a"), std::pair(2, 8));
  EXPECT_EQ(key("a"), std::pair(2, 3));
  EXPECT_EQ(key("a.b"), std::pair(2, 17));  // characters, not bytes
  EXPECT_EQ(value("a.b[0]"), std::pair(3, 3));
  EXPECT_EQ(value("a.b[1].c"), std::pair(3, 13));
  EXPECT_EQ(key("a.b[1].c"), std::pair(3, 8));
  EXPECT_EQ(value("z"), std::pair(4, 6));
  EXPECT_EQ(value("a.b[1].nothing.at[3].all"), std::pair(3, 7));  // the nearest parent
  EXPECT_EQ(value("nothing"), std::pair(1, 1));
  EXPECT_EQ(key("a.b[7]"), std::pair(3, 2));
}

TEST(Document, problems_are_sorted_by_line_and_broken_values_stay_quiet) {
  Document d = Document::parse("{\n\"a\": 1,\n\"b\": 1e999,\n\"c\": 3}", "dir/f.json");
  d.problem("c", "last");
  d.key_problem("a", "first");
  d.problem("b", "the scanner has said so");
  d.problem("", "whole");
  EXPECT_TRUE(d.broken("b"));
  EXPECT_FALSE(d.broken("a"));
  try {
    d.require_none();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "dir/f.json:1:1: whole\ndir/f.json:2:1: a: first\n"
                 "dir/f.json:3:6: b: found 1e999, expected a number that fits a double, below 1.8e308 in size\n"
                 "dir/f.json:4:6: c: last");
  }
}

TEST(Document, a_key_with_control_characters_stays_on_one_line) {
  Document d = Document::parse("{\"a\\nb\": 1}", "f.json");
  d.problem("a\nb", "no");
  EXPECT_EQ(report(d), "1:10: \"a\\nb\": no");
}

TEST(Document, what_is_cut_off_deep_inside_is_a_few_lines) {
  for (const char* opener : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 5000; ++i) text += opener;
    EXPECT_LE(Document::parse(text, "deep.json").problems().size(), 10u);
    EXPECT_GE(Document::parse(text, "deep.json").problems().size(), 2u);
  }
}

TEST(Document, what_a_plugin_refuses_stands_where_an_option_came_from) {
  Document d = Document::parse(R"({"task": {"name": "t", "group": "S3"}, "tasks": 1})", "x.json");
  d.set("task.group", Json("S8"), "--set");
  d.problem("task", "t: found S8");
  d.problem("tasks", "bad");  // not below what was set, and not above it
  EXPECT_EQ(report(d), "--set task.group: task: t: found S8\n1:49: tasks: bad");
}

TEST(Document, values_set_from_elsewhere_name_their_origin) {
  Document d =
      Document::parse("{\"model\": {\"dim\": 1e999, \"encoding\": {\"name\": \"rope\", \"theta\": 2}}}", "f.json");
  d.set("model.dim", Json("x"), "--set");
  d.set("model.encoding.name", Json("nope"), "--set");
  EXPECT_EQ(d.value().canonical(), R"({"model":{"dim":"x","encoding":{"name":"nope"}}})");
  EXPECT_FALSE(d.broken("model.dim"));
  d.problem("model.dim", "bad");
  d.problem("model", "file");
  try {
    d.require_none();
    FAIL();
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.substr(0, text.find('\n')), "--set: model.dim: bad");
    EXPECT_NE(text.find("f.json:1:11: model: file"), std::string::npos);
  }
}

TEST(Document, deep_nesting_is_one_mistake) {
  for (const char* open : {"[", "{\"a\":", "[{\"b\":"}) {
    std::string text;
    for (int i = 0; i < 200000; ++i) text += open;
    const Document d = Document::parse(text, "f");
    int deep = 0;
    for (const Problem& p : d.problems()) deep += p.message == "found more than 100 nested levels, expected fewer";
    EXPECT_EQ(deep, 1);
  }
  const std::string fits = std::string(100, '[') + std::string(100, ']');
  EXPECT_EQ(report(fits), "none");
  const std::string exceeds = "[" + fits + ", 1e999]";
  EXPECT_NE(report(exceeds).find("1:101: [0]"), std::string::npos) << report(exceeds);
  EXPECT_NE(report(exceeds).find("1:204: [1]: found 1e999"), std::string::npos) << report(exceeds);
}

TEST(Document, endless_mistakes_end) {
  std::string text = "[";
  for (int i = 0; i < 100000; ++i) text += "NaN,";
  const Document d = Document::parse(text, "f");
  EXPECT_EQ(d.problems().size(), 200u);
  EXPECT_EQ(d.problems().back().message, "found too many mistakes, the rest was not read");
}

TEST(Document, long_documents_on_one_line_are_quick) {
  std::string text = "[";
  for (int i = 0; i < 50000; ++i) text += "{\"a\":1},";
  text += "0]";
  const Document d = Document::parse(text, "f");
  EXPECT_EQ(d.position_of("[49999].a").column, 1 + 49999 * 8 + 6);
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / "phasor_document_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    unlink((folder_ + "/f.json").c_str());
    rmdir(folder_.c_str());
  }
  std::string error(const std::string& file) {
    try {
      Document::read(file).require_none();
    } catch (const UserError& e) {
      return e.what();
    }
    return "none";
  }
  std::string write(const std::string& text) {
    const std::string file = folder_ + "/f.json";
    std::ofstream(file) << text;
    return file;
  }
  std::string folder_;
};

TEST_F(Files, that_cannot_be_read_give_one_clear_line) {
  EXPECT_EQ(error(folder_), folder_ + ": found a directory, expected a JSON file");
  EXPECT_EQ(error(folder_ + "/none.json"),
            folder_ + "/none.json: cannot be read: No such file or directory, check the path");
  const std::string file = write("");
  EXPECT_EQ(error(file), file + ":1:1: found nothing in it, expected a JSON object in { }");
  write("{\"a\": 1}");
  EXPECT_EQ(error(file), "none");
}

TEST_F(Files, without_permission) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const std::string file = write("{}");
  chmod(file.c_str(), 0);
  EXPECT_EQ(error(file), file + ": cannot be read: Permission denied, expected a JSON file that can be read");
}

TEST(Strict, agrees_with_the_scanner_on_clean_texts) {
  const char* clean[] = {"{}",
                         "[]",
                         "null",
                         "true",
                         "-0",
                         "0",
                         "-0.0",
                         "1E5",
                         "1e-3",
                         "9223372036854775807",
                         "-9223372036854775808",
                         "9007199254740993",
                         "2.2250738585072011e-308",
                         "5e-324",
                         "1.7976931348623157e308",
                         "0.1e1",
                         "123456789012345678.5",
                         R"({"b":1,"a":{"c":[1,2.5,"x",null,true,{}]},"":0})",
                         R"("\u00e9\ud83d\ude00\\\/\b\f\n\r\t\"")",
                         "\"\u20ac\x7f\"",
                         " [ 1 ,\r\n\t2 ] "};
  for (const char* text : clean) {
    const Scan scan = scan_json(text);
    StrictError error;
    const std::optional<Json> strict = strict_json(text, error);
    ASSERT_TRUE(strict.has_value()) << text << error.message;
    EXPECT_TRUE(scan.problems.empty()) << text << scan.problems.front().message;
    EXPECT_EQ(*strict, scan.value) << text;
    EXPECT_EQ(strict->pretty(), scan.value.pretty()) << text;  // order and kind of numbers too
  }
}

TEST(Strict, refuses_what_the_scanner_refuses) {
  for (const char* text : {"[1,]", "{\"a\":1,}", "[01]", "[.5]", "[NaN]", "{'a':1}", "// c\n1", "[1e400]", "1 2", "",
                           "[\"\t\"]", "[\"\\ud800\"]", "[9223372036854775808]", "[\"\xff\"]"}) {
    StrictError error;
    EXPECT_FALSE(strict_json(text, error).has_value()) << text;
    EXPECT_FALSE(error.message.empty());
    EXPECT_FALSE(scan_json(text).problems.empty()) << text;
  }
}

struct TemporaryFolder {
  TemporaryFolder() { path = mkdtemp(path.data()); }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path = std::filesystem::temp_directory_path() / "phasor_locale_XXXXXX";
};

bool set_comma_locale() {
  for (const char* name : {"de_DE.UTF-8", "de_DE.ISO-8859-1", "fr_FR.UTF-8", "it_IT.UTF-8"}) {
    if (setlocale(LC_ALL, name)) return true;
  }
  return false;
}

TEST(Strict, reads_the_same_in_a_locale_with_commas) {
  const std::string before = setlocale(LC_ALL, nullptr);
  const TemporaryFolder folder;
  const bool installed = set_comma_locale();
  if (!installed) {  // most containers have the sources of locales only
    const std::string make = "localedef -i de_DE -f ISO-8859-1 " + folder.path + "/de_DE.ISO-8859-1 >/dev/null 2>&1";
    if (std::system(make.c_str()) != 0) GTEST_SKIP() << "no locale with a decimal comma, and localedef makes none";
    setenv("LOCPATH", folder.path.c_str(), 1);
    ASSERT_TRUE(set_comma_locale());
  }
  EXPECT_STREQ(localeconv()->decimal_point, ",");
  const Document d = Document::parse("[0.001, 1.5e3, 1234567.25]", "f");
  const std::string text = d.value().canonical(), pretty = d.value().pretty();
  const std::string problems = report(d), number = shortest(1234.5);
  setlocale(LC_ALL, before.c_str());
  unsetenv("LOCPATH");
  EXPECT_EQ(problems, "none");
  EXPECT_EQ(text, "[0.001,1500,1234567.25]");
  EXPECT_EQ(pretty, "[0.001, 1500.0, 1234567.25]");
  EXPECT_EQ(number, "1234.5");
}

TEST(ParseJson, lists_every_mistake) {
  EXPECT_EQ(parse_json("{\"a\": [1]}", "x").canonical(), R"({"a":[1]})");
  try {
    parse_json("[.5, 1,]", "attribute spec");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "attribute spec:1:2: [0]: found .5, expected 0.5\n"
                 "attribute spec:1:7: found a comma before \"]\", expected none");
  }
}

}  // namespace
}  // namespace phasor
