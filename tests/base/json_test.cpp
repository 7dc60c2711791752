#include "core/spec/json.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>

#include "core/base/error.h"

namespace phasor {
namespace {

Json read(const std::string& text) { return parse_json(text, "test"); }

TEST(Json, numbers_of_one_value_have_one_text) {
  for (const char* text : {"1e-3", "1E-3", "0.001", "0.0010", "10e-4", "100E-5"}) {
    EXPECT_EQ(read(text).canonical(), "0.001") << text;
  }
  EXPECT_EQ(read("3").canonical(), "3");
  EXPECT_EQ(read("3.0").canonical(), "3");
  EXPECT_EQ(read("30e-1").canonical(), "3");
  EXPECT_EQ(read("-0").canonical(), "0");
  EXPECT_EQ(read("-0.0").canonical(), "0");
  EXPECT_EQ(read("0e7").canonical(), "0");
  EXPECT_EQ(read("1e17").canonical(), "100000000000000000");
  EXPECT_EQ(read("100000000000000000").canonical(), "100000000000000000");
  EXPECT_EQ(read("1e-8").canonical(), "1e-8");
  EXPECT_EQ(read("1.5e+300").canonical(), "1.5e300");
  EXPECT_EQ(read("500000.0").canonical(), "500000");
  EXPECT_EQ(read("9223372036854775807").canonical(), "9223372036854775807");
  EXPECT_EQ(read("-9223372036854775808").canonical(), "-9223372036854775808");
  EXPECT_EQ(read("9007199254740993").canonical(), "9007199254740993");
}

TEST(Json, equality_is_by_value_and_exact) {
  EXPECT_EQ(read("3"), read("3.0"));
  EXPECT_EQ(read("0"), read("-0.0"));
  EXPECT_EQ(read("9007199254740992"), read("9007199254740992.0"));
  EXPECT_NE(read("9007199254740993"), read("9007199254740992.0"));
  EXPECT_NE(read("9007199254740993"), read("9007199254740992"));
  EXPECT_NE(Json(std::numeric_limits<std::int64_t>::max()), Json(0x1p63));
  EXPECT_EQ(Json(std::numeric_limits<std::int64_t>::min()), Json(-0x1p63));
  EXPECT_NE(read("1"), read("true"));
  EXPECT_NE(read("1"), read("\"1\""));
  EXPECT_NE(read("null"), read("0"));
  EXPECT_NE(read("[1,2]"), read("[2,1]"));
  EXPECT_EQ(read(R"({"a": 1, "b": [2.0]})"), read(R"({"b": [2], "a": 1.0})"));
  EXPECT_NE(read(R"({"a": 1})"), read(R"({"a": 1, "b": null})"));
  EXPECT_NE(read(R"({"a": 1})"), read(R"({"b": 1})"));
}

TEST(Json, equal_values_have_equal_texts_and_the_reverse) {
  const std::vector<Json> values = {Json(0),
                                    Json(-0.0),
                                    Json(1),
                                    Json(1.0),
                                    Json(0x1p53),
                                    Json(std::int64_t{1} << 53),
                                    Json((std::int64_t{1} << 53) + 1),
                                    Json(0x1p62),
                                    Json(std::int64_t{1} << 62),
                                    Json(0x1p63),
                                    Json(-0x1p63),
                                    Json(std::numeric_limits<std::int64_t>::min()),
                                    Json(std::numeric_limits<std::int64_t>::max()),
                                    Json(1e300),
                                    Json(0.1),
                                    Json(std::nextafter(0.1, 1.0)),
                                    Json(5e-324),
                                    Json("1"),
                                    Json(true),
                                    Json()};
  for (const Json& a : values) {
    for (const Json& b : values)
      EXPECT_EQ(a == b, a.canonical() == b.canonical()) << a.canonical() << " " << b.canonical();
  }
}

TEST(Json, neighbouring_doubles_are_told_apart_and_read_back) {
  for (const double x : {0.1, 1e-3, 0.3, 123456.789, 1e16, 1e22, 5e-324, 1.7976931348623157e308,
                         2.2250738585072014e-308, 9007199254740991.0, 1e-4, 1e15 + 0.5}) {
    const double next = std::nextafter(x, 0.0);
    EXPECT_NE(Json(x).canonical(), Json(next).canonical());
    for (const double y : {x, next, -x}) {
      EXPECT_EQ(read(Json(y).canonical()).as_number(), y);
      EXPECT_EQ(read(Json(y).pretty()).as_number(), y);
      EXPECT_EQ(std::strtod(shortest(y).c_str(), nullptr), y);
    }
  }
}

TEST(Json, shortest_is_for_people_too) {
  EXPECT_EQ(shortest(0.001), "0.001");
  EXPECT_EQ(shortest(1e-4), "0.0001");
  EXPECT_EQ(shortest(1e-5), "1e-5");
  EXPECT_EQ(shortest(500000.0), "500000");
  EXPECT_EQ(shortest(1e15), "1000000000000000");
  EXPECT_EQ(shortest(1e16), "1e16");
  EXPECT_EQ(shortest(-1.25e100), "-1.25e100");
  EXPECT_EQ(shortest(-0.0), "-0");
  EXPECT_EQ(shortest(INFINITY), "inf");
  EXPECT_EQ(shortest(-INFINITY), "-inf");
  EXPECT_EQ(shortest(NAN), "nan");
}

TEST(Json, numbers_that_json_lacks_are_our_mistake) {
  EXPECT_THROW(Json(NAN).canonical(), InternalError);
  EXPECT_THROW(Json(INFINITY).canonical(), InternalError);
  EXPECT_THROW(Json(INFINITY).pretty(), InternalError);
}

TEST(Json, canonical_sorts_keys_by_byte) {
  EXPECT_EQ(read(R"({ "b": [ 1, { "z": null, "a": true } ], "a": "x", "B": {}, "aa": [] })").canonical(),
            R"({"B":{},"a":"x","aa":[],"b":[1,{"a":true,"z":null}]})");
}

TEST(Json, texts_are_escaped_and_read_back) {
  std::string all;
  for (char c = 1; c < 0x20; ++c) all += c;
  all += '\0';
  all += "\"\\/ \x7F \u00e9 \u20ac \U0001F600";
  EXPECT_EQ(read(Json(all).canonical()).as_string(), all);
  EXPECT_EQ(Json("\x01\b\t\n\f\r\x1f\"\\/").canonical(), "\"\\u0001\\b\\t\\n\\f\\r\\u001f\\\"\\\\/\"");
  EXPECT_EQ(Json("\u00e9\U0001F600").canonical(), "\"\u00e9\U0001F600\"");
  EXPECT_EQ(Json("a\xff"
                 "b\xc3")
                .canonical(),
            "\"a\uFFFD"
            "b\uFFFD\"");
  EXPECT_EQ(read(R"("\u00e9\ud83d\ude00\/")").as_string(), "\u00e9\U0001F600/");
}

TEST(Json, pretty_keeps_order_and_short_lists) {
  const Json json = read(R"({"z":1.0,"a":[0.9,0.999,"x",null],"o":{},"l":[],"n":{"k":[[1],{"m":2}]},"t":1e-8})");
  EXPECT_EQ(json.pretty(), R"({
  "z": 1.0,
  "a": [0.9, 0.999, "x", null],
  "o": {},
  "l": [],
  "n": {
    "k": [
      [1],
      {
        "m": 2
      }
    ]
  },
  "t": 1e-8
})");
  EXPECT_EQ(read(json.pretty()), json);
  Json::Array many(60, Json(123));
  EXPECT_EQ(Json(many).pretty().substr(0, 8), "[\n  123,");
  EXPECT_TRUE(read(Json(1.0).pretty()).is_number());
  EXPECT_FALSE(read(Json(1.0).pretty()).is_integer());
}

TEST(Json, integers_keep_all_digits) {
  EXPECT_EQ(read("9007199254740993").as_integer(), 9007199254740993);
  EXPECT_EQ(read("9223372036854775807").as_integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(read("3.0").as_integer(), 3);
  EXPECT_TRUE(read("3").is_integer());
  EXPECT_FALSE(read("3.0").is_integer());
  EXPECT_THROW(read("3.5").as_integer(), InternalError);
  EXPECT_THROW(read("1e19").as_integer(), InternalError);
  EXPECT_EQ(read("-1e18").as_integer(), -1000000000000000000);
}

TEST(Json, wrong_types_are_our_mistake) {
  EXPECT_THROW(Json("x").as_number(), InternalError);
  EXPECT_THROW(Json(1).as_string(), InternalError);
  EXPECT_THROW(Json(1).as_bool(), InternalError);
  EXPECT_THROW(Json().as_array(), InternalError);
  EXPECT_THROW(Json(Json::Array{}).as_object(), InternalError);
  EXPECT_THROW(Json(1)["a"], InternalError);
  EXPECT_THROW(Json(1).push_back(2), InternalError);
}

TEST(Json, members) {
  Json json;
  json["b"] = 1;
  json["a"]["c"] = "x";
  json["l"].push_back(1);
  json["l"].push_back("two");
  EXPECT_EQ(json.pretty().find("\"b\""), 4u);
  EXPECT_EQ(json.canonical(), R"({"a":{"c":"x"},"b":1,"l":[1,"two"]})");
  EXPECT_EQ(json.find("nothing"), nullptr);
  EXPECT_EQ(Json(3).find("a"), nullptr);
  json.erase("a");
  EXPECT_EQ(json.find("a"), nullptr);
}

TEST(Json, paths) {
  Json json = read(R"({"axes":[{"label":"a"},{"points":[[1,2]]}],"model":{"dim":32}})");
  EXPECT_EQ(json.at_path("model.dim")->as_integer(), 32);
  EXPECT_EQ(json.at_path("axes[0].label")->as_string(), "a");
  EXPECT_EQ(json.at_path("axes[1].points[0][1]")->as_integer(), 2);
  EXPECT_EQ(json.at_path(""), &json);
  for (const char* path : {"model.width", "axes[2]", "axes.label", "model[0]", "model..dim", ".model", "model.",
                           "axes[x]", "axes[", "axes[0]label", "axes.[0]", "axes[-1]", "axes[]"}) {
    EXPECT_EQ(json.at_path(path), nullptr) << path;
  }
}

std::string path_error(const std::string& path) {
  Json json = read(R"({"model":{"dim":32},"list":[1]})");
  try {
    json.make_path(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(Json, make_path) {
  Json json;
  json.make_path("model.encoding.theta") = 2.0;
  json.make_path("model.dim") = 8;
  json.make_path("seed") = 1;
  EXPECT_EQ(json.canonical(), R"({"model":{"dim":8,"encoding":{"theta":2}},"seed":1})");
  EXPECT_EQ(path_error("model.new.deep"), "none");
  EXPECT_EQ(path_error("model.dim.x"),
            "model.dim.x: found a number at model.dim, expected an object, correct the path");
  EXPECT_EQ(path_error("list[0]"), "list[0]: an element of a list cannot be set alone, set the whole list");
  EXPECT_EQ(path_error("a..b"), "a..b: malformed path, expected names joined by single dots, such as optimizer.lr");
  EXPECT_EQ(path_error("a."), "a.: malformed path, expected names joined by single dots, such as optimizer.lr");
  EXPECT_EQ(path_error(""), "empty path, expected one such as optimizer.lr");
  Json number(1);
  EXPECT_THROW(number.make_path("a"), UserError);
}

}  // namespace
}  // namespace phasor
