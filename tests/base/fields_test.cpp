#include "core/spec/fields.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/spec/problems.h"
#include "tests/base/example_config.h"

namespace phasor {
namespace {

using example::Experiment;
using example::fields_of;

void read(FieldList& fields, const std::string& text) {
  Document document = Document::parse(text, "f");
  read_fields(fields, document.value(), "", document, fields);
  document.require_none();
}

TEST(Fields, write_has_every_default) {
  Experiment e;
  FieldList fields = fields_of(e);
  EXPECT_EQ(write_fields(fields).pretty(), R"({
  "seed": 0,
  "note": "",
  "tie_head": false,
  "model": {
    "dim": 32,
    "heads": 2,
    "encoding": {
      "name": "nope"
    }
  },
  "optimizer": {
    "lr": 0.001,
    "betas": [0.9, 0.999],
    "clip": 1.0,
    "decay": "tagged"
  },
  "task": {
    "name": ""
  }
})");
}

TEST(Fields, what_is_written_reads_back) {
  Experiment e;
  FieldList fields = fields_of(e);
  read(fields, R"({"seed": 9007199254740993, "model": {"encoding": {"name": "selective_rope", "rank": 3,
    "temperature": {"theta": 0.1}}}, "optimizer": {"clip": null}, "task": {"name": "copy", "train": {"rows": 5}}})");
  const Json written = write_fields(fields);
  EXPECT_EQ(written.at_path("model.encoding")->canonical(),
            R"({"name":"selective_rope","rank":3,"temperature":{"learned":false,"theta":0.1}})");
  EXPECT_EQ(written.at_path("model.encoding")->as_object().front().first, "name");
  EXPECT_EQ(written.at_path("task.train.rows")->as_integer(), 5);
  EXPECT_TRUE(written.at_path("task.limit")->is_null());

  Experiment other;
  FieldList again = fields_of(other);
  read(again, written.pretty());
  EXPECT_EQ(write_fields(again).canonical(), written.canonical());
  EXPECT_EQ(other.seed, 9007199254740993);
}

TEST(Fields, choosing_the_same_name_keeps_values_and_another_takes_defaults) {
  Experiment e;
  FieldList fields = fields_of(e);
  read(fields, R"({"model": {"encoding": {"name": "rope", "theta": 2}}})");
  read(fields, R"({"model": {"encoding": {"name": "rope"}}})");
  EXPECT_EQ(write_fields(fields).at_path("model.encoding.theta")->as_number(), 2.0);
  read(fields, R"({"model": {"encoding": {"name": "nope"}}})");
  read(fields, R"({"model": {"encoding": {"name": "rope"}}})");
  EXPECT_EQ(write_fields(fields).at_path("model.encoding.theta")->as_number(), 500000.0);
}

TEST(Fields, differences) {
  Experiment e;
  FieldList fields = fields_of(e);
  EXPECT_TRUE(differences(fields).empty());
  read(fields, R"({"seed": 0, "model": {"dim": 32.0, "encoding": {"name": "rope", "theta": 10}},
    "optimizer": {"clip": null, "betas": [0.9, 0.99]}, "task": {"name": "copy", "test": {"rows": 5}}})");
  std::string text;
  for (const Difference& d : differences(fields)) {
    text += d.path + " " + d.value.canonical() + " " + d.initial.canonical() + "\n";
  }
  EXPECT_EQ(text,
            "model.encoding.name \"rope\" \"nope\"\n"
            "model.encoding.theta 10 500000\n"
            "optimizer.betas [0.9,0.99] [0.9,0.999]\n"
            "optimizer.clip null 1\n"
            "task.test.rows 5 1000\n");
}

TEST(Fields, help) {
  Experiment e;
  FieldList fields;
  fields.integer("seed", e.seed, "of everything");
  e.optimizer.fields(fields);
  fields.integer("limit", e.task.limit, "at most so many", Range::at_least(0));
  fields.boolean("tie_head", e.tie_head, "share weights");
  fields.text("note", e.note, "for people");
  EXPECT_EQ(help_text(fields, 2),
            "  seed      0            integer                    of everything\n"
            "  lr        0.001        number above 0             learning rate\n"
            "  betas     [0.9,0.999]  numbers 0 to 1 (excluded)  decay of the moments\n"
            "  clip      1            number above 0             largest norm of the gradient\n"
            "  decay     \"tagged\"     \"tagged\", \"all\" or \"none\"  which parameters decay\n"
            "  limit     not set      integer at least 0         at most so many\n"
            "  tie_head  false        true or false              share weights\n"
            "  note      \"\"           text                       for people\n");
}

TEST(Fields, help_of_nested_fields) {
  Experiment e;
  FieldList fields;
  e.model.encoding.field(fields);
  EXPECT_EQ(help_text(fields),
            "encoding  \"nope\"  where position enters\n"
            "  name \"nope\"\n"
            "  name \"rope\"\n"
            "    theta  500000  number above 0  base of the frequencies\n"
            "  name \"selective_rope\"\n"
            "    rank         8  integer at least 1  of the projection\n"
            "    temperature                         of the phases\n"
            "      theta    1      number above 0  base of the frequencies\n"
            "      learned  false  true or false   train it\n"
            "  name \"broken\"\n");
}

TEST(Fields, ranges) {
  EXPECT_EQ(range_text({}), "");
  EXPECT_EQ(range_text(Range::above(0)), "above 0");
  EXPECT_EQ(range_text(Range::at_least(1)), "at least 1");
  EXPECT_EQ(range_text(Range::between(1e-8, 1)), "1e-8 to 1");
  EXPECT_EQ(range_text({0, 1, true, true}), "0 (excluded) to 1 (excluded)");
  Range below;
  below.high = 2;
  EXPECT_EQ(range_text(below), "at most 2");
  below.high_open = true;
  EXPECT_EQ(range_text(below), "below 2");
  EXPECT_FALSE(in_range(below, 2));
  EXPECT_TRUE(in_range(Range::between(1, 2), 2));
  EXPECT_FALSE(in_range(Range::above(0), 0));
  EXPECT_FALSE(in_range(Range::at_least(0), std::numeric_limits<double>::quiet_NaN()));
}

TEST(Fields, mistakes_of_ours) {
  double x = 0;
  FieldList fields;
  fields.number("x", x, "");
  EXPECT_THROW(fields.number("x", x, ""), InternalError);
  EXPECT_THROW(fields.number("", x, ""), InternalError);
  FieldList more;
  more.number("y", x, "");
  fields.append(more);
  EXPECT_NE(fields.find("y"), nullptr);
  EXPECT_THROW(fields.append(more), InternalError);
  EXPECT_EQ(fields.find("z"), nullptr);
  EXPECT_THROW(fields.find("x")->bound(), InternalError);

  // An alternative whose fields take the key that chooses it, and one that is not what was asked for.
  const auto named = [&](const std::string& selected) {
    FieldList list;
    list.named(
        "n", {"a"}, "",
        [&](const std::string&) {
          FieldList inner;
          inner.number("name", x, "");
          return inner;
        },
        [selected] { return selected; }, [](const std::string&) { return FieldList(); });
    return list;
  };
  EXPECT_THROW(named("a").find("n")->bound(), InternalError);
  EXPECT_THROW(named("b").find("n")->choose("a"), InternalError);
}

}  // namespace
}  // namespace phasor
