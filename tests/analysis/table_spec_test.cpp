#include "analysis/table/table_spec.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/analysis/sweep.h"

namespace phasor::analysis {
namespace {

TableSpec read(const std::string& text) { return read_table_spec(parse_json(text, "table")); }

TEST(TableSpec, TheSampleIsUnderstood) {
  const TableSpec spec = read(R"({
    "select": {"split": "valid", "metric": "sequence_accuracy", "slice": 32, "at": "final", "ties": ["valid.loss", "lowest"]},
    "report": [{"split": "test", "metric": "sequence_accuracy", "slices": [32, 128]}],
    "primary": {"metric": "sequence_accuracy", "slice": 128},
    "solved_at": 0.95, "baseline": "RoPE",
    "test": {"name": "sign_flip", "correct": "holm", "family": "rows x columns at primary"}, "averages": []})");
  EXPECT_EQ(to_text(spec.select->series), "valid.sequence_accuracy@32");
  EXPECT_EQ(to_text(spec.select->at), "final");
  EXPECT_EQ(spec.select->direction, Direction::maximise);
  ASSERT_EQ(spec.select->ties.size(), 1u);
  EXPECT_EQ(to_text(spec.select->ties[0].series), "valid.loss@32");
  EXPECT_FALSE(spec.select->ties[0].slice_given);
  ASSERT_EQ(spec.report.size(), 2u);
  EXPECT_EQ(to_text(spec.report[1]), "test.sequence_accuracy@128");
  EXPECT_EQ(spec.primary, spec.report[1]);
  EXPECT_EQ(spec.solved_at, 0.95);
  EXPECT_EQ(spec.baseline, "RoPE");
}

TEST(TableSpec, TheLeastIsAReport) {
  const TableSpec spec = read(R"({"report": [{"split": "test", "metric": "loss"}]})");
  EXPECT_FALSE(spec.select.has_value());
  EXPECT_EQ(to_text(spec.primary), "test.loss");
  EXPECT_FALSE(spec.solved_at.has_value());
}

TEST(TableSpec, RulesAndTies) {
  const auto select = [](const std::string& more) {
    return *read(R"({"report": [{"split": "test", "metric": "loss"}],
                     "select": {"split": "valid", "metric": "loss", )" + more + "}}").select;
  };
  EXPECT_EQ(to_text(select(R"("at": "best")").at), "best");
  EXPECT_EQ(to_text(select(R"("at": "mean_last_k", "k": 5)").at), "mean_last_5");
  EXPECT_EQ(to_text(select(R"("at": "mean_last_3")").at), "mean_last_3");
  EXPECT_EQ(select(R"("slice": "all")").series.slice, -1);
  const SelectRule rule = select(R"("ties": ["valid.loss@64"])");
  EXPECT_EQ(rule.ties[0].series.slice, 64);
  EXPECT_TRUE(rule.ties[0].slice_given);
}

TEST(TableSpec, MistakesAreNamed) {
  const auto says = [](const std::string& text, const std::string& expected) {
    const std::string message = refusal([&] { read(text); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  const std::string report = R"("report": [{"split": "test", "metric": "loss"}])";
  const auto select = [&](const std::string& inside) { return "{" + report + R"(, "select": {)" + inside + "}}"; };
  says("{}", "table: no \"report\"");
  says("[]", "table: found a list, expected an object");
  says(R"({"report": []})", "table.report: expected a list of at least one entry");
  says(R"({"report": [{"metric": "loss"}]})", "table.report[0]: no \"split\"");
  says(select(R"("split": "valid")"), "table.select: no \"metric\"");
  says(select(R"("split": "valid", "metric": "speed")"), "table.select.metric: whether more or less speed is better");
  says(select(R"("split": "valid", "metric": "loss", "at": "last")"), "table.select.at: found \"last\", expected final");
  says(select(R"("split": "valid", "metric": "loss", "at": "mean_last_0")"), "table.select.at");
  says(select(R"("split": "valid", "metric": "loss", "at": "mean_last_k")"), "table.select.at");
  says(select(R"("split": "valid", "metric": "loss", "ties": ["lowest", "valid.loss"])"), "nothing can come after");
  says(select(R"("split": "valid", "metric": "loss", "ties": ["loss"])"), "expected \"lowest\" or split.metric");
  says("{" + report + R"(, "primary": {"metric": "accuracy"}})", "table.primary: accuracy at all is not among");
  says("{" + report + R"(, "averages": ["all"]})", "table.averages");
  says("{" + report + R"(, "test": {"correct": "none"}})", "table.test.correct: found \"none\", expected \"holm\"");
  says("{" + report + R"(, "test": {"alpha": 0.01}})", "table.test.alpha: expected name, correct and family alone");
  says("{" + report + R"(, "test": "sign_flip"})", "table.test: found a string, expected an object");
}

}  // namespace
}  // namespace phasor::analysis
