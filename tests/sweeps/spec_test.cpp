#include "sweeps/spec.h"

#include <gtest/gtest.h>

#include "core/spec/problems.h"
#include "tests/sweeps/scratch.h"

namespace phasor::sweeps {
namespace {

/// Reads a sweep file; `problems` lists what is wrong, a line each.
struct Read {
  SweepSpec spec;
  std::string problems;
};
Read read(const std::string& text) {
  Document document = Document::parse(text, "sweep.json");
  Read result;
  result.spec = read_sweep_spec(document);
  result.problems = error_of([&] { document.require_none(); });
  return result;
}

void expect_problem(const std::string& text, const std::string& words) {
  const std::string problems = read(text).problems;
  EXPECT_NE(problems.find(words), std::string::npos) << "expected: " << words << "\nfound: " << problems;
}

const std::string lr_axis = R"({"name": "lr", "role": "select", "path": "optimizer.lr", "values": [0.001, 1e-2]})";

TEST(SweepSpec, ReadsPointsAndValues) {
  const Read made = read(sweep_text(R"(
    {"name": "variant", "role": "row", "points": [
      {"label": "NoPE", "set": {"model.encoding": {"name": "nope"}, "model.dim": 8}},
      {"label": "Selective", "set": {}}]},)" +
                                    lr_axis));
  ASSERT_EQ(made.problems, "");
  ASSERT_EQ(made.spec.axes.size(), 2u);
  const Axis& variant = made.spec.axes[0];
  EXPECT_EQ(variant.role, "row");
  EXPECT_EQ(variant.path, "");
  ASSERT_EQ(variant.points.size(), 2u);
  ASSERT_EQ(variant.points[0].settings.size(), 2u);
  EXPECT_EQ(variant.points[0].settings[1].path, "model.dim");
  EXPECT_EQ(variant.points[0].settings[1].place, "axes[0].points[0].set.model.dim");
  EXPECT_TRUE(variant.points[1].settings.empty());
  const Axis& lr = made.spec.axes[1];
  EXPECT_EQ(lr.path, "optimizer.lr");
  EXPECT_EQ(lr.points[1].label, "0.01");
  EXPECT_EQ(lr.points[1].value, Json(0.01));
}

TEST(SweepSpec, AnAxisOutsideTheIdentityIsNone) {
  for (const std::string path : {"run.threads", "run", "note", "$schema"}) {
    expect_problem(sweep_text(R"({"name": "a", "role": "select", "path": ")" + path + R"(", "values": [1, 2]})"),
                   "axes[0].path: found " + path + ", which is outside a trial's identity");
  }
  EXPECT_EQ(read(sweep_text(R"({"name": "a", "role": "replicate", "path": "runs", "values": [1]},)" + lr_axis)).problems, "");
}

TEST(SweepSpec, WritesTheDefaultsOfTheTable) {
  const Json table = read(sweep_text(lr_axis)).spec.table;
  EXPECT_EQ(table.at_path("select.at")->as_string(), "final");
  EXPECT_EQ(table.at_path("select.ties")->as_array().size(), 2u);
}

TEST(SweepSpec, BaseIsRelativeToTheSweepFile) {
  Document document = Document::parse(sweep_text(lr_axis), "sweeps/small.json");
  EXPECT_EQ(read_sweep_spec(document).base, "sweeps/base.json");
}

TEST(SweepSpec, ReadsExclusions) {
  const Read made =
      read(sweep_text(R"({"name": "variant", "role": "row", "points": [{"label": "A", "set": {}}]},)" + lr_axis,
                      R"("exclude": [{"variant": "A", "lr": 1E-2, "reason": "too high"}],)"));
  ASSERT_EQ(made.problems, "");
  ASSERT_EQ(made.spec.exclude.size(), 1u);
  EXPECT_EQ(made.spec.exclude[0].reason, "too high");
  EXPECT_EQ(made.spec.exclude[0].conditions, (std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}, {1, 1}}));
}

TEST(SweepSpec, EveryMistakeHasItsPlace) {
  expect_problem("[]", "sweep.json:1:1: found a list, expected an object");
  expect_problem(sweep_text(lr_axis, "\"nam\": 1,"),
                 "sweep.json:2:41: nam: unknown key \"nam\", did you mean \"name\"?");
  expect_problem(sweep_text(lr_axis, "\"confirm\": {},"), "confirm: expected one replicate axis");
  expect_problem(sweep_text(lr_axis, "\"limits\": {\"seconds\": 0},"), "limits.seconds: found 0, expected a whole number");
  expect_problem(sweep_text(""), "axes: found an empty list");
  expect_problem(sweep_text("3"), "axes[0]: found 3, expected an object");
  expect_problem(sweep_text(R"({"name": "a", "role": "rows", "path": "seed", "values": [1]})"),
                 "axes[0].role: found \"rows\", expected \"row\"");
  expect_problem(sweep_text(R"({"role": "row", "path": "seed", "values": [1]})"), "axes[0]: missing \"name\"");
  expect_problem(sweep_text(R"({"name": "reason", "role": "row", "path": "seed", "values": [1]})"), "rename the axis");
  expect_problem(sweep_text(R"({"name": "a", "role": "row"})"), "expected \"points\", \"path\" and \"values\", or \"random\"");
  expect_problem(sweep_text(R"({"name": "a", "role": "row", "points": [], "values": []})"), "found both");
  expect_problem(sweep_text(R"({"name": "a", "role": "row", "values": [1]})"), "axes[0]: missing \"path\"");
  expect_problem(sweep_text(R"({"name": "a", "role": "row", "path": "seed", "values": []})"),
                 "values: found an empty list");
  expect_problem(sweep_text(R"({"name": "a", "role": "row", "path": "a..b", "values": [1]})"),
                 "axes[0].path: a..b: malformed");
  expect_problem(sweep_text(R"({"name": "a", "role": "row", "path": "seed", "values": [1, 1.0]})"),
                 "axes[0].values[1]: found the value 1 twice");
  expect_problem(sweep_text(R"({"name": "a", "role": "row", "points": [{"label": "x"}]})"), "missing \"set\"");
  expect_problem(sweep_text(R"({"name": "a", "role": "row", "points": [{"set": {}}]})"), "missing \"label\"");
  expect_problem(sweep_text(R"({"name": "a", "role": "row", "points": [{"label": "x", "set": []}]})"),
                 "set: found a list");
  expect_problem(sweep_text(lr_axis + "," + lr_axis), "found the name \"lr\" twice");
  expect_problem(sweep_text(lr_axis + R"(, {"name": "b", "role": "row", "path": "optimizer.lr", "values": [1]})"),
                 "is set by the axis \"lr\" too");
  expect_problem(sweep_text(lr_axis, R"("exclude": [{"lrr": 0.001}],)"),
                 "exclude[0].lrr: no axis is called \"lrr\", did you mean \"lr\"?");
  expect_problem(sweep_text(lr_axis, R"("exclude": [{"lr": 3}],)"),
                 "exclude[0].lr: found 3, expected a point of this axis");
  expect_problem(sweep_text(lr_axis, R"("exclude": [{"reason": "none"}],)"), "exclude[0]: found no condition");
  expect_problem(R"({"axes": [], "table": {}})", "missing \"name\"");
  expect_problem(R"({"axes": [], "table": {}})", "missing \"base\"");
  expect_problem(R"({"name": "a/b", "base": "x", "axes": [], "table": {}})", "name: found \"a/b\"");
}

std::string with_table(const std::string& table) {
  return R"({"name": "a", "base": "b", "axes": [{"name": "v", "role": "row", "points": [{"label": "RoPE", "set": {}}]},
            )" +
         lr_axis + R"(], "table": )" + table + "}";
}
const std::string report = R"("report": [{"split": "test", "metric": "loss", "slices": [8]}])";
const std::string select = R"("select": {"split": "valid", "metric": "loss", "slice": 8)";

TEST(SweepSpec, MistakesOfTheTable) {
  EXPECT_EQ(read(with_table("{" + select + "}, " + report + "}")).problems, "");
  expect_problem(with_table("{" + report + "}"), "table: missing \"select\": the axis \"lr\" is chosen");
  expect_problem(with_table("{" + select + "}}"), "table: missing \"report\"");
  const std::string test = R"("test": {"name": "sign_flip", "correct": "holm", "family": "rows x columns at primary"})";
  EXPECT_EQ(read(with_table("{" + select + "}, " + test + ", " + report + "}")).problems, "");
  expect_problem(with_table("{" + select + "}, \"test\": {\"name\": \"t_test\"}, " + report + "}"), "table.test.name: found \"t_test\"");
  expect_problem(with_table("{" + select + "}, \"test\": {\"alpha\": 0.1}, " + report + "}"), "table.test.alpha");
  expect_problem(with_table("{" + select + "}, \"averages\": [1], " + report + "}"),
                 "table.averages: not supported yet");
  expect_problem(with_table("{" + select + ", \"at\": \"last\"}, " + report + "}"), "table.select.at: found \"last\"");
  expect_problem(with_table("{" + select + ", \"ties\": [\"test.loss\"]}, " + report + "}"), "table.select.ties[0]");
  expect_problem(with_table("{" + select + ", \"ties\": [\"lowest\", \"valid.loss\"]}, " + report + "}"),
                 "expected it last");
  expect_problem(with_table(R"({"select": {"split": "test", "metric": "loss", "slice": 8}, )" + report + "}"),
                 "table.select.split: found \"test\", expected \"valid\"");
  expect_problem(with_table(R"({"select": {"split": "valid", "metric": "los", "slice": 8}, )" + report + "}"),
                 "did you mean \"loss\"?");
  expect_problem(with_table(R"({"select": {"split": "valid", "metric": "loss"}, )" + report + "}"),
                 "table.select: missing \"slice\"");
  expect_problem(with_table("{" + select + "}, \"baseline\": \"Rope\", " + report + "}"), "did you mean \"RoPE\"?");
  expect_problem(with_table("{" + select + "}, \"solved_at\": \"0.9\", " + report + "}"),
                 "table.solved_at: found \"0.9\"");
  for (const std::string bad : {"5", "-0.1", "1.0001"}) {
    expect_problem(with_table("{" + select + "}, \"solved_at\": " + bad + ", " + report + "}"),
                   "table.solved_at: found " + bad + ", expected a number 0 to 1");
  }
  EXPECT_EQ(read(with_table("{" + select + "}, \"solved_at\": 1, " + report + "}")).problems, "");
  expect_problem(with_table("{" + select + R"(}, "primary": {"metric": "loss", "slice": 9}, )" + report + "}"),
                 "table.primary: found a metric and slice that are not in \"report\"");
}

const std::string seed_axis = R"(, {"name": "seed", "role": "replicate", "path": "seed", "values": [0, 1]})";

TEST(SweepSpec, ConfirmAddsFreshPointsToTheReplicates) {
  const Read good = read(sweep_text(lr_axis + seed_axis, R"("confirm": {"seed": [100, 101, 102]},)"));
  ASSERT_EQ(good.problems, "");
  EXPECT_EQ(good.spec.axes[1].fresh, 3u);
  EXPECT_EQ(good.spec.axes[1].visited(), 2u);
  EXPECT_EQ(good.spec.axes[1].points[4].value, Json(102));
}

TEST(SweepSpec, MistakesOfConfirm) {
  const auto expect = [](const std::string& confirm, const std::string& words) {
    expect_problem(sweep_text(lr_axis + seed_axis, "\"confirm\": " + confirm + ","), words);
  };
  expect(R"({"seed": [100, 1]})", "confirm.seed[1]: found 1, on which the choice is made");
  expect(R"({"seed": [100, 1.0]})", "confirm.seed[1]: found 1, on which the choice is made");  // the same number
  expect(R"({"seed": [100, 100]})", "confirm.seed[1]: found 100 twice");
  expect(R"({"seed": []})", "confirm.seed: found an empty list");
  expect(R"({"seeds": [100]})", "confirm.seeds: no replicate axis of values is called \"seeds\", expected \"seed\"");
  expect(R"({"lr": [0.5]})", "confirm.lr: no replicate axis of values");
  expect(R"({"seed": 100})", "confirm.seed: found 100, expected a list");
  expect(R"({})", "confirm: expected one replicate axis");
  expect(R"([100])", "confirm: found a list, expected an object");
  expect_problem(sweep_text(seed_axis.substr(2), R"("confirm": {"seed": [9]},)"), "confirm: no axis has the role \"select\"");
}

TEST(SweepSpec, AllMistakesComeAtOnce) {
  const std::string problems = read(R"({
  "nam": "x",
  "axes": [
    {"name": "a", "role": "rows", "path": "seed", "values": [1]},
    {"nme": "b", "role": "row", "points": []}
  ],
  "table": {"report": []}
})")
                                   .problems;
  for (const char* words : {"2:3: nam", "4:27: axes[0].role", "5:6: axes[1].nme", "axes[1].points",
                            "7:23: table.report", "missing \"base\""}) {
    EXPECT_NE(problems.find(words), std::string::npos) << words << "\n" << problems;
  }
}

}  // namespace
}  // namespace phasor::sweeps
