#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/spec/problems.h"
#include "tests/base/example_config.h"

namespace phasor {
namespace {

using example::Experiment;
using example::fields_of;

/// Reads `text` into an experiment with a task and gives the report without the name of the file.
std::string read(Experiment& experiment, const std::string& text, bool with_task = true) {
  FieldList fields = fields_of(experiment);
  if (with_task) fields.find("task")->choose("parity");
  Document document = Document::parse(text, "f");
  read_fields(fields, document.value(), "", document, fields);
  try {
    document.require_none();
  } catch (const UserError& error) {
    std::string report = std::string("\n") + error.what();
    for (std::size_t at = 0; (at = report.find("\nf:", at)) != std::string::npos;) report.replace(at, 3, 1, '\n');
    return report.substr(1);
  }
  return "none";
}
std::string report(const std::string& text) {
  Experiment experiment;
  return read(experiment, text);
}

TEST(ReadFields, reads_everything) {
  Experiment e;
  EXPECT_EQ(read(e, R"({
    "seed": 9007199254740993, "note": "x", "tie_head": true,
    "model": {"dim": 64.0, "encoding": {"theta": 2.5, "name": "rope"}},
    "optimizer": {"lr": 1E-3, "betas": [0, 0.5], "clip": null, "decay": "all"},
    "task": {"name": "copy", "limit": 5, "test": {"lengths": [1, 2.0, 3e0]}}})"),
            "none");
  EXPECT_EQ(e.seed, 9007199254740993);
  EXPECT_EQ(e.note, "x");
  EXPECT_TRUE(e.tie_head);
  EXPECT_EQ(e.model.dim, 64);
  EXPECT_EQ(e.model.heads, 2);
  EXPECT_EQ(e.model.encoding.name, "rope");
  EXPECT_EQ(dynamic_cast<example::Rope&>(*e.model.encoding.made).theta, 2.5);
  EXPECT_EQ(e.optimizer.lr, 0.001);
  EXPECT_EQ(e.optimizer.betas, (std::vector<double>{0, 0.5}));
  EXPECT_EQ(e.optimizer.clip, std::nullopt);
  EXPECT_EQ(e.optimizer.decay, "all");
  EXPECT_EQ(e.task.name, "copy");
  EXPECT_EQ(e.task.limit, 5);
  EXPECT_EQ(e.task.test.lengths, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(ReadFields, unknown_keys_name_what_was_meant) {
  EXPECT_EQ(report(R"({"model": {"num-heads": 2}})"),
            R"(1:12: model.num-heads: unknown key "num-heads", did you mean "heads"?)");
  EXPECT_EQ(report(R"({"learnig_rate": 2})"),
            R"(1:2: learnig_rate: unknown key "learnig_rate", did you mean "optimizer.lr"?)");
  EXPECT_EQ(report(R"({"optimizer": {"learning_rate": 2}})"),
            R"(1:16: optimizer.learning_rate: unknown key "learning_rate", did you mean "lr"?)");
  EXPECT_EQ(report(R"({"lr": 2})"), R"(1:2: lr: unknown key "lr" here, it belongs to optimizer.lr)");
  EXPECT_EQ(report(R"({"LR": 2})"), R"(1:2: LR: unknown key "LR" here, it belongs to optimizer.lr)");
  EXPECT_EQ(report(R"({"model": {"Dim": 2}})"), R"(1:12: model.Dim: unknown key "Dim", did you mean "dim"?)");
  EXPECT_EQ(report(R"({"tie-head": true})"), R"(1:2: tie-head: unknown key "tie-head", did you mean "tie_head"?)");
  EXPECT_EQ(report(R"({"rows": 2})"),
            R"(1:2: rows: unknown key "rows" here, it belongs to task.train.rows or task.test.rows)");
  EXPECT_EQ(report(R"({"model": {"theta": 2}})"),
            R"(1:12: model.theta: unknown key "theta" here, it belongs to model.encoding.theta or )"
            R"(model.encoding.temperature.theta)");
  EXPECT_EQ(report(R"({"optimiser": {}})"), R"(1:2: optimiser: unknown key "optimiser", did you mean "optimizer"?)");
  EXPECT_EQ(report(R"({"sed": 1})"), R"(1:2: sed: unknown key "sed", did you mean "seed"?)");
  EXPECT_EQ(report(R"({"model": {"bettas": 1}})"),
            R"(1:12: model.bettas: unknown key "bettas", did you mean "optimizer.betas"?)");
  EXPECT_EQ(
      report(R"({"frobnicate": 1})"),
      R"(1:2: frobnicate: unknown key "frobnicate", expected "seed", "note", "tie_head", "model", "optimizer" or "task")");
  EXPECT_EQ(report(R"({"": 1})").substr(0, 26), R"(1:2: unknown key "", expec)");
  EXPECT_EQ(report("{\"a\\u0000\\n\": 1}").substr(0, 47), R"(1:2: "a\u0000\n": unknown key "a\u0000\n", exp)"
                                                          "e");
}

TEST(ReadFields, a_key_of_another_alternative) {
  EXPECT_EQ(report(R"({"model": {"encoding": {"name": "nope", "theta": 1}}})"),
            R"(1:41: model.encoding.theta: unknown key "theta": "theta" is a field of encoding rope, not of nope)");
  EXPECT_EQ(report(R"({"model": {"encoding": {"theta": 1}}})"),  // nope by default
            R"(1:25: model.encoding.theta: unknown key "theta": "theta" is a field of encoding rope, not of nope)");
  EXPECT_EQ(
      report(R"({"model": {"encoding": {"name": "rope", "Rank": 1}}})"),
      R"(1:41: model.encoding.Rank: unknown key "Rank": "rank" is a field of encoding selective_rope, not of rope)");
  EXPECT_EQ(report(R"({"model": {"encoding": {"name": "nope", "zzzzzz": 1}}})"),
            R"(1:41: model.encoding.zzzzzz: unknown key "zzzzzz", expected "name")");
  EXPECT_EQ(report(R"({"model": {"encoding": {"nam": "rope"}}})"),
            R"(1:25: model.encoding.nam: unknown key "nam", did you mean "name"?)");
}

TEST(ReadFields, wrong_types) {
  EXPECT_EQ(report(R"({"optimizer": {"lr": "1e-3"}})"),
            R"(1:22: optimizer.lr: found "1e-3" (text), expected a number above 0, remove the quotes)");
  EXPECT_EQ(report(R"({"optimizer": {"lr": ".5"}})"),
            R"(1:22: optimizer.lr: found ".5" (text), expected a number above 0, write 0.5 without quotes)");
  EXPECT_EQ(report(R"({"optimizer": {"lr": "fast"}})"),
            R"(1:22: optimizer.lr: found "fast" (text), expected a number above 0)");
  EXPECT_EQ(report(R"({"tie_head": "true"})"),
            R"(1:14: tie_head: found "true" (text), expected true or false, write true without quotes)");
  EXPECT_EQ(report(R"({"tie_head": "False"})"),
            R"(1:14: tie_head: found "False" (text), expected true or false, write false without quotes)");
  EXPECT_EQ(report(R"({"tie_head": 1})"), "1:14: tie_head: found 1, expected true or false");
  EXPECT_EQ(report(R"({"seed": true})"), "1:10: seed: found true, expected an integer at least 0");
  EXPECT_EQ(report(R"({"seed": 3.5})"), "1:10: seed: found 3.5, expected an integer at least 0");
  EXPECT_EQ(report(R"({"seed": 3.0})"), "none");
  EXPECT_EQ(report(R"({"seed": null})"), "1:10: seed: found null, expected an integer at least 0");
  // The scanner's double has lost the last digit; taking it would change a seed in silence.
  EXPECT_EQ(
      report(R"({"seed": 9007199254740993.0})"),
      "1:10: seed: found 9007199254740992.0, expected an integer at least 0, write all its digits without point or "
      "exponent");
  EXPECT_EQ(report(R"({"seed": 9007199254740991.0})"), "none");
  EXPECT_EQ(report(R"({"seed": 1e17})"),
            "1:10: seed: found 1e17, expected an integer at least 0, write all its digits without point or exponent");
  EXPECT_EQ(
      report(R"({"optimizer": {"lr": 9007199254740993}})"),
      "1:22: optimizer.lr: found 9007199254740993, expected a number above 0, a double cannot hold all these digits");
  EXPECT_EQ(report(R"({"note": 3})"), "1:10: note: found 3, expected a text, put it in double quotes");
  EXPECT_EQ(report(R"({"note": []})"), "1:10: note: found a list, expected a text");
  EXPECT_EQ(report(R"({"optimizer": {"betas": 0.9}})"),
            "1:25: optimizer.betas: found 0.9, expected a list of numbers in [ ]");
  EXPECT_EQ(report(R"({"optimizer": {"clip": "1"}})"),
            R"(1:24: optimizer.clip: found "1" (text), expected a number above 0, remove the quotes)");
  EXPECT_EQ(report(R"({"model": 3})"), "1:11: model: found 3, expected an object in { }");
  EXPECT_EQ(report(R"({"model": null})"), "1:11: model: found null, expected an object in { }");
  EXPECT_EQ(report(R"({"model": {"encoding": "rope"}})"),
            R"(1:24: model.encoding: found "rope" (text), expected an object, write {"name": "rope"})");
  EXPECT_EQ(report(R"({"model": {"encoding": ["rope"]}})"),
            R"(1:24: model.encoding: found a list, expected an object with a "name")");
  EXPECT_EQ(report("[1]"), "1:1: found a list, expected an object in { }");
}

TEST(ReadFields, ranges_and_lists) {
  EXPECT_EQ(report(R"({"seed": -1})"), "1:10: seed: found -1, expected an integer at least 0");
  EXPECT_EQ(report(R"({"seed": -0})"), "none");
  EXPECT_EQ(report(R"({"optimizer": {"lr": 0}})"), "1:22: optimizer.lr: found 0, expected a number above 0");
  EXPECT_EQ(report(R"({"optimizer": {"lr": 0.0}})"), "1:22: optimizer.lr: found 0.0, expected a number above 0");
  EXPECT_EQ(report(R"({"model": {"dim": 65537}})"), "1:19: model.dim: found 65537, expected an integer 1 to 65536");
  EXPECT_EQ(report(R"({"model": {"dim": 65536}})"), "none");
  EXPECT_EQ(report(R"({"optimizer": {"betas": [0.9, 1, "x"]}})"),
            "1:31: optimizer.betas[1]: found 1, expected a number 0 to 1 (excluded)\n"
            "1:34: optimizer.betas[2]: found \"x\" (text), expected a number 0 to 1 (excluded)");
  EXPECT_EQ(report(R"({"task": {"test": {"lengths": [32, 3.5]}}})"),
            "1:36: task.test.lengths[1]: found 3.5, expected an integer at least 1");
}

TEST(ReadFields, choices) {
  EXPECT_EQ(report(R"({"optimizer": {"decay": "taged"}})"),
            R"(1:25: optimizer.decay: found "taged", expected "tagged", "all" or "none", did you mean "tagged"?)");
  EXPECT_EQ(report(R"({"optimizer": {"decay": "some"}})"),
            R"(1:25: optimizer.decay: found "some", expected "tagged", "all" or "none")");
  EXPECT_EQ(report(R"({"optimizer": {"decay": true}})"),
            R"(1:25: optimizer.decay: found true, expected "tagged", "all" or "none")");
  EXPECT_EQ(report(R"({"model": {"encoding": {"name": "transformer"}}})"),
            R"(1:33: model.encoding.name: found "transformer", expected "nope", "rope", "selective_rope" or "broken")");
}

TEST(ReadFields, fields_of_a_misspelled_name_are_checked_too) {
  Experiment e;
  EXPECT_EQ(read(e, R"({"model": {"encoding": {"name": "Selective-RoPE", "rnk": 1, "rank": 0,
 "temperature": {"theta": "2", "learned": true}}}})"),
            "1:33: model.encoding.name: found \"Selective-RoPE\", expected \"nope\", \"rope\", \"selective_rope\" or "
            "\"broken\", did you mean \"selective_rope\"?\n"
            "1:51: model.encoding.rnk: unknown key \"rnk\", did you mean \"rank\"?\n"
            "1:69: model.encoding.rank: found 0, expected an integer at least 1\n"
            "2:27: model.encoding.temperature.theta: found \"2\" (text), expected a number above 0, remove the quotes");
  EXPECT_EQ(e.model.encoding.name, "nope");
}

TEST(ReadFields, an_alternative_that_cannot_be_made_is_one_mistake_among_others) {
  EXPECT_EQ(report(R"({"model": {"encoding": {"name": "broken", "x": 1}, "dim": 0}})"),
            "1:33: model.encoding.name: encoding \"broken\" cannot be loaded\n"
            "1:59: model.dim: found 0, expected an integer 1 to 65536");
}

TEST(ReadFields, a_name_without_default_must_be_given) {
  Experiment e;
  EXPECT_EQ(read(e, R"({"task": {"limit": 3}})", false), R"(1:10: task: missing "name", expected "parity" or "copy")");
  EXPECT_EQ(read(e, R"({"task": {"name": null}})", false),
            R"(1:19: task.name: found null, expected "parity" or "copy")");
  EXPECT_EQ(read(e, R"({"task": {"name": "copy", "limit": 3}})", false), "none");
}

TEST(ReadFields, reading_goes_on_after_each_mistake) {
  Experiment e;
  EXPECT_EQ(read(e,
                 "{\n  \"seed\": \"1\",\n  // note\n  \"note\": 'hi',\n  \"lr\": .5,\n"
                 "  \"model\": {\"dim\": True, \"heads\": 4,},\n  \"optimizer\": {\"lr\": 1e999, \"clip\": -1}\n}"),
            "2:11: seed: found \"1\" (text), expected an integer at least 0, remove the quotes\n"
            "3:3: found a comment, JSON has none, remove it\n"
            "4:11: note: found single quotes, expected double quotes: \"hi\"\n"
            "5:3: lr: unknown key \"lr\" here, it belongs to optimizer.lr\n"
            "5:9: lr: found .5, expected 0.5\n"
            "6:20: model.dim: found True, expected true\n"
            "6:20: model.dim: found true, expected an integer 1 to 65536\n"
            "6:36: model: found a comma before \"}\", expected none\n"
            "7:23: optimizer.lr: found 1e999, expected a number that fits a double, below 1.8e308 in size\n"
            "7:38: optimizer.clip: found -1, expected a number above 0");
  EXPECT_EQ(e.note, "hi");
  EXPECT_EQ(e.model.heads, 4);
  EXPECT_EQ(e.model.dim, 32);
  EXPECT_EQ(e.optimizer.lr, 0.001);
  EXPECT_EQ(e.optimizer.clip, 1.0);
}

/// A5: the seven mistakes of one file.
TEST(ReadFields, seven_mistakes) {
  EXPECT_EQ(report("{\n  // a comment\n  \"learnig_rate\": 0.001,\n  \"lr\": 0.001,\n"
                   "  \"model\": {\"num-heads\": 2, \"encoding\": {\"name\": \"nope\", \"theta\": 1.0}},\n"
                   "  \"seed\": 1,\n  \"seed\": 2,\n}"),
            "2:3: found a comment, JSON has none, remove it\n"
            "3:3: learnig_rate: unknown key \"learnig_rate\", did you mean \"optimizer.lr\"?\n"
            "4:3: lr: unknown key \"lr\" here, it belongs to optimizer.lr\n"
            "5:13: model.num-heads: unknown key \"num-heads\", did you mean \"heads\"?\n"
            "5:58: model.encoding.theta: unknown key \"theta\": \"theta\" is a field of encoding rope, not of nope\n"
            "7:3: seed: found the key \"seed\" again, first at line 6, remove one\n"
            "7:12: found a comma before \"}\", expected none");
}

TEST(ReadFields, a_section_of_a_larger_file) {
  Experiment e;
  FieldList fields = fields_of(e);
  Document document = Document::parse("{\"base\": {\"optimizer\": {\"lr\": -1, \"sed\": 2}}}", "f");
  read_fields(*fields.find("optimizer")->members, *document.value().at_path("base.optimizer"), "base.optimizer",
              document, fields);
  ASSERT_EQ(document.problems().size(), 2u);
  EXPECT_EQ(document.problems()[0].path, "base.optimizer.lr");
  EXPECT_EQ(document.problems()[0].position.column, 31);
  EXPECT_EQ(document.problems()[1].message, "unknown key \"sed\", did you mean \"seed\"?");
}

}  // namespace
}  // namespace phasor
