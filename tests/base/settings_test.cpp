#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/spec/problems.h"
#include "tests/base/example_config.h"

namespace phasor {
namespace {

std::string setting(const std::string& text) {
  try {
    const auto [path, value] = parse_setting(text);
    return path + " " + value.canonical();
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(Setting, is_json_or_a_string) {
  EXPECT_EQ(setting("optimizer.lr=1e-3"), "optimizer.lr 0.001");
  EXPECT_EQ(setting("seed=9007199254740993"), "seed 9007199254740993");
  EXPECT_EQ(setting("a=true"), "a true");
  EXPECT_EQ(setting("a=\"true\""), "a \"true\"");
  EXPECT_EQ(setting("a=True"), "a \"True\"");
  EXPECT_EQ(setting("a=null"), "a null");
  EXPECT_EQ(setting("a=rope"), "a \"rope\"");
  EXPECT_EQ(setting("a=b=c"), "a \"b=c\"");
  EXPECT_EQ(setting("a="), "a \"\"");
  EXPECT_EQ(setting("a=[1, 2.0]"), "a [1,2]");
  EXPECT_EQ(setting("a={\"name\": \"nope\"}"), "a {\"name\":\"nope\"}");
  EXPECT_EQ(setting("a=.5"), "a \".5\"");
  EXPECT_EQ(setting("a=1_000"), "a \"1_000\"");
  EXPECT_EQ(setting("a=2024-data.txt"), "a \"2024-data.txt\"");
  EXPECT_EQ(setting("a=/data/x y"), "a \"/data/x y\"");
}

TEST(Setting, mistakes) {
  EXPECT_EQ(setting("optimizer.lr"),
            "--set optimizer.lr: found no \"=\", expected path=value, such as optimizer.lr=1e-3");
  EXPECT_EQ(setting("=3"), "--set empty path, expected one such as optimizer.lr");
  EXPECT_EQ(setting("a..b=3"),
            "--set a..b: malformed path, expected names joined by single dots, such as optimizer.lr");
  EXPECT_EQ(setting("a[0]=3"), "--set a[0]: an element of a list cannot be set alone, set the whole list");
  EXPECT_EQ(setting("a=[1,2"), "--set a=[1,2: found no \"]\" for this \"[\" before the end of the file");
  EXPECT_EQ(setting("a={'x': 1}"), "--set a={'x': 1}: found single quotes, expected double quotes: \"x\"");
  EXPECT_EQ(setting("a=\"x"), "--set a=\"x: found a text that does not end on its line, expected a closing quote");
  EXPECT_EQ(setting("a=1e400"),
            "--set a=1e400: found 1e400, expected a number that fits a double, below 1.8e308 in size");
  EXPECT_EQ(setting("a=9223372036854775808"),
            "--set a=9223372036854775808: found 9223372036854775808, expected an integer from -2^63 to 2^63 - 1");
  EXPECT_EQ(setting("a=\xff"), "--set: found bytes that are not UTF-8, expected path=value in UTF-8");
}

TEST(Setting, obeys_the_rules_of_files) {
  example::Experiment e;
  FieldList fields = example::fields_of(e);
  Document document = Document::parse(R"({"task": {"name": "copy"}})", "f.json");
  for (const char* text : {"optimizer.lr=.5", "tie_head=True", "seed=3.5", "lr=1", "model.encoding.name=rope",
                           "model.dim=8", "optimizer.betas=[0,2]"}) {
    const auto [path, value] = parse_setting(text);
    document.set(path, value, "--set");
  }
  read_fields(fields, document.value(), "", document, fields);
  try {
    document.require_none();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "--set: optimizer.lr: found \".5\" (text), expected a number above 0, write 0.5 without quotes\n"
                 "--set: optimizer.betas[1]: found 2, expected a number 0 to 1 (excluded)\n"
                 "--set: tie_head: found \"True\" (text), expected true or false, write true without quotes\n"
                 "--set: seed: found 3.5, expected an integer at least 0\n"
                 "--set: lr: unknown key \"lr\" here, it belongs to optimizer.lr");
  }
  EXPECT_EQ(e.model.encoding.name, "rope");
  EXPECT_EQ(e.model.dim, 8);
}

std::string merged(const std::string& base, const std::string& patch) {
  Json json = parse_json(base, "base");
  merge(json, parse_json(patch, "patch"));
  return json.canonical();
}

TEST(Merge, objects_merge_and_lists_are_replaced) {
  EXPECT_EQ(merged(R"({"a":{"x":1,"y":[1,2]},"b":1})", R"({"a":{"y":[3]},"c":null})"),
            R"({"a":{"x":1,"y":[3]},"b":1,"c":null})");
  EXPECT_EQ(merged(R"({"model":{"dim":64,"gate":{"kind":"low-rank","rank":16}}})", R"({"model":{"gate":{"rank":8}}})"),
            R"({"model":{"dim":64,"gate":{"kind":"low-rank","rank":8}}})");
  EXPECT_EQ(merged(R"({"a":1})", R"({"a":{"x":1}})"), R"({"a":{"x":1}})");
  EXPECT_EQ(merged(R"({"a":{"x":1}})", R"({"a":2})"), R"({"a":2})");
  EXPECT_EQ(merged(R"({"a":{"x":1}})", "{}"), R"({"a":{"x":1}})");
}

TEST(Merge, a_changed_name_replaces_the_object) {
  EXPECT_EQ(merged(R"({"e":{"name":"rope","theta":2}})", R"({"e":{"name":"nope"}})"), R"({"e":{"name":"nope"}})");
  EXPECT_EQ(merged(R"({"e":{"name":"rope","theta":2}})", R"({"e":{"name":"rope","scale":1}})"),
            R"({"e":{"name":"rope","scale":1,"theta":2}})");
  EXPECT_EQ(merged(R"({"e":{"theta":2}})", R"({"e":{"name":"rope"}})"), R"({"e":{"name":"rope"}})");
}

}  // namespace
}  // namespace phasor
