#include "analysis/table/comparison.h"

#include <cmath>
#include <ctime>
#include <gtest/gtest.h>

#include "tests/analysis/sweep.h"

namespace phasor::analysis {
namespace {

constexpr std::int64_t seeds = 8;

std::vector<double> seed_values(std::int64_t count) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i));
  return numbers;
}

/// Three rows: the baseline, one that is always .2 better, one that is better and worse by turns.
Sweep three_rows(std::int64_t count = seeds) {
  Sweep sweep({points("variant", "row", {"RoPE", "Selective", "Noise"}), values("seed", "replicate", "seed", seed_values(count))});
  for (std::int64_t seed = 0; seed < count; ++seed) {
    const double base = 0.5 + 0.01 * static_cast<double>(seed * 3 % 8);
    sweep.record({0, seed}, 0.0, base);
    sweep.record({1, seed}, 0.0, base + 0.2 + 0.001 * static_cast<double>(seed));
    sweep.record({2, seed}, 0.0, base + (seed % 2 == 0 ? 0.05 : -0.04));
  }
  sweep.manifest.table["baseline"] = "RoPE";
  return sweep;
}

TEST(Compare, PairedOverSeedsAndCorrectedWithinTheFamily) {
  const auto lines = read_csv(three_rows().text(Format::csv, Form::longer));
  EXPECT_EQ(lines[0].at("baseline"), "");
  EXPECT_EQ(lines[0].at("p"), "");
  EXPECT_EQ(lines[1].at("baseline"), "RoPE");
  EXPECT_EQ(lines[1].at("diff"), "0.2035");
  EXPECT_EQ(lines[1].at("pairs"), "8");
  EXPECT_EQ(lines[1].at("p"), "0.0078");
  EXPECT_EQ(lines[1].at("p_holm"), "0.0156");
  EXPECT_EQ(lines[1].at("diff_low"), "0.2019");
  EXPECT_EQ(lines[1].at("diff_high"), "0.2051");
  EXPECT_EQ(lines[2].at("diff"), "0.0050");
  EXPECT_EQ(lines[2].at("p"), lines[2].at("p_holm"));
  const Table table = three_rows().table();
  EXPECT_EQ(table.family->comparisons, 2);
  EXPECT_EQ(table.family->smallest_p, 0.0078125);
  EXPECT_EQ(table.family->smallest_holm, 0.015625);
}

TEST(Compare, TheBestIsBoldWhereItHolds) {
  Sweep sweep = three_rows();
  std::string text = sweep.text(Format::markdown, Form::wide);
  EXPECT_NE(text.find("| **0.7385 \xC2\xB1 0.0256**  0/8 * |"), std::string::npos) << text;
  EXPECT_NE(text.find("- **\\***: differs from RoPE at p < .05: with 8 seeds the smallest possible p is .0078, .0156 after Holm"),
            std::string::npos) << text;
  EXPECT_EQ(text.find("**0.5"), std::string::npos);
  EXPECT_NE(sweep.text(Format::latex, Form::wide).find("\\textbf{0.7385 $\\pm$ 0.0256}  0/8 *"), std::string::npos);
  // With three seeds nothing can hold.
  text = three_rows(3).text(Format::markdown, Form::wide);
  EXPECT_EQ(text.find("**0."), std::string::npos) << text;
  EXPECT_NE(text.find("no row can differ from RoPE at p < .05: with 3 seeds the smallest possible p is .25, .5 after Holm"),
            std::string::npos) << text;
}

TEST(Compare, TheBaselineIsBoldWhereAllOthersAreWorse) {
  Sweep sweep = three_rows();
  for (auto& record : sweep.folder.records) {
    if (!record.id.starts_with("t-0")) record.evals[1].value -= 0.4;
  }
  EXPECT_TRUE(sweep.table().cells[0].numbers[0].best);
  for (auto& record : sweep.folder.records) {
    if (record.id.starts_with("t-2")) record.evals[1].value += 0.395;  // one of them is as good but for chance
  }
  for (const Cell& cell : sweep.table().cells) EXPECT_FALSE(cell.numbers[0].best);
}

TEST(Compare, EqualBestsAreNotBold) {
  Sweep sweep = three_rows();
  for (std::int64_t seed = 0; seed < seeds; ++seed) {
    sweep.folder.records[static_cast<std::size_t>(3 * seed + 2)].evals[1].value =
        sweep.folder.records[static_cast<std::size_t>(3 * seed + 1)].evals[1].value;
  }
  for (const Cell& cell : sweep.table().cells) EXPECT_FALSE(cell.numbers[0].best);
}

TEST(Compare, ALowerLossIsBetter) {
  Sweep sweep = three_rows();
  sweep.manifest.table = parse_json(R"({"report": [{"split": "test", "metric": "loss", "slices": [32]}], "baseline": "RoPE"})", "t");
  for (auto& record : sweep.folder.records) {
    record.evals[1].metric = "loss";
    if (record.id.starts_with("t-1")) record.evals[1].value -= 0.4;
  }
  const Table table = sweep.table();
  EXPECT_TRUE(table.cells[1].numbers[0].best);
  EXPECT_NEAR(table.cells[1].numbers[0].difference->mean, -0.1965, 1e-12);
}

TEST(Compare, OnlyCommonSeedsArePaired) {
  Sweep sweep = three_rows();
  for (auto& trial : sweep.manifest.trials) {
    if (trial.at[0] == 1 && trial.at[1] < 2) trial.excluded = "left out";
    if (trial.at[0] == 0 && trial.at[1] == 7) trial.excluded = "left out";
  }
  const Table table = sweep.table();
  EXPECT_EQ(table.cells[1].numbers[0].difference->pairs, 5);
  EXPECT_EQ(table.cells[2].numbers[0].difference->pairs, 7);
  EXPECT_EQ(table.family->least_pairs, 5);
  EXPECT_EQ(table.family->most_pairs, 7);
  EXPECT_NEAR(table.cells[1].numbers[0].difference->mean, 0.2 + 0.001 * 4.0, 1e-12);
}

TEST(Compare, WithoutAWholeNumberThereIsNoComparison) {
  Sweep sweep = three_rows();
  for (auto& record : sweep.folder.records) {
    if (record.id == "t-1-3") record.status = results::Status::diverged;
  }
  const Table table = sweep.table();
  EXPECT_FALSE(table.cells[1].numbers[0].difference.has_value());
  EXPECT_EQ(table.family->comparisons, 1);
}

TEST(Compare, EveryRowHasTheBaselineOfItsOwnGroup) {
  Sweep sweep({points("backbone", "row", {"GLA", "FoX"}), points("encoding", "row", {"NoPE", "RoPE"}),
               values("seed", "replicate", "seed", {0, 1})});
  for (const auto& trial : sweep.manifest.trials) {
    auto& record = sweep.record(trial.at, 0.0, 0.1 * static_cast<double>(trial.at[0] * 2 + trial.at[1]));
    record.summary = {{"step_ms", 1.0 + static_cast<double>(trial.at[0] * 2 + trial.at[1])}};
  }
  sweep.manifest.table["baseline"] = "NoPE";
  auto lines = read_csv(sweep.text(Format::csv, Form::longer));
  EXPECT_EQ(lines[1].at("baseline"), "GLA / NoPE");
  EXPECT_EQ(lines[3].at("baseline"), "FoX / NoPE");
  EXPECT_EQ(lines[3].at("diff"), "0.1000");
  EXPECT_EQ(lines[3].at("step_ratio"), "1.33");
  sweep.manifest.table["baseline"] = "GLA / NoPE";
  lines = read_csv(sweep.text(Format::csv, Form::longer));
  EXPECT_EQ(lines[3].at("baseline"), "GLA / NoPE");
  EXPECT_EQ(lines[3].at("diff"), "0.3000");
}

TEST(Compare, PerplexitiesByTheirLogarithms) {
  Sweep sweep = three_rows(2);
  sweep.manifest.table = parse_json(R"({"report": [{"split": "test", "metric": "perplexity", "slices": [32]}], "baseline": "RoPE"})", "t");
  for (auto& record : sweep.folder.records) {
    record.evals[1].metric = "perplexity";
    record.evals[1].value = std::exp(record.id.starts_with("t-1") ? 2.0 : record.id.ends_with("0") ? 3.0 : 4.0);
  }
  EXPECT_NEAR(sweep.table().cells[1].numbers[0].difference->mean, -1.5, 1e-12);
  const Table paper = make_table(sweep.manifest, sweep.folder, {.as_paper = true});
  EXPECT_NEAR(*paper.cells[0].numbers[0].statistics.mean, (std::exp(3.0) + std::exp(4.0)) / 2.0, 1e-9);
  EXPECT_NEAR(*sweep.table().cells[0].numbers[0].statistics.mean, std::exp(3.5), 1e-9);
  EXPECT_NE(render(paper, Format::csv, Form::longer).find(",as_paper,"), std::string::npos);
  EXPECT_NE(render(paper, Format::terminal, Form::wide).find("perplexities are averaged themselves"), std::string::npos);
}

std::string flags_of(const Sweep& sweep, std::size_t line) { return read_csv(sweep.text(Format::csv, Form::longer)).at(line).at("flags"); }

TEST(Flags, TwoGroupsAndTheFloor) {
  Sweep sweep({points("variant", "row", {"split", "floor", "guess"}), values("seed", "replicate", "seed", {0, 1, 2})});
  const double split[] = {0.99, 0.02, 1.0};
  for (std::int64_t seed = 0; seed < 3; ++seed) {
    sweep.record({0, seed}, 0.0, split[seed]);
    sweep.record({1, seed}, 0.0, 0.05);
    sweep.record({2, seed}, 0.0, 0.54).summary.emplace_back("chance", 0.5);
  }
  EXPECT_EQ(flags_of(sweep, 0), "bimodal");
  EXPECT_EQ(flags_of(sweep, 1), "floor");
  EXPECT_EQ(flags_of(sweep, 2), "floor");
  const std::string text = sweep.text(Format::terminal, Form::wide);
  EXPECT_NE(text.find("2/3 b"), std::string::npos) << text;
  EXPECT_NE(text.find("0/3 f"), std::string::npos) << text;
  sweep.folder.records[1].evals[1].value = 0.06;
  sweep.folder.records[2].evals[1].value = 0.56;
  EXPECT_EQ(flags_of(sweep, 1), "");
  EXPECT_EQ(flags_of(sweep, 2), "");
}

TEST(Flags, UnequalBudgetsAndTheirTrials) {
  Sweep sweep({points("variant", "row", {"A", "B"}), values("lr", "select", "optimizer.lr", {0.1, 0.2, 0.3}),
               values("seed", "replicate", "seed", {0})});
  for (const auto& trial : sweep.manifest.trials) sweep.record(trial.at, trial.at[1] == 1 ? 0.9 : 0.1, 0.5);
  EXPECT_EQ(flags_of(sweep, 0), "");
  EXPECT_NE(sweep.text(Format::terminal, Form::wide).find("; 3 a row\n"), std::string::npos);
  sweep.expected({0, 0, 0}).excluded = "left out";
  EXPECT_EQ(flags_of(sweep, 1), "budget");
  const std::string text = sweep.text(Format::terminal, Form::wide);
  EXPECT_NE(text.find("; in rows: A 2, B 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("more trials spent on the choice"), std::string::npos) << text;
}

TEST(Flags, MixedBuildsMarkEveryNumber) {
  Sweep sweep = three_rows(2);
  sweep.folder.records[0].provenance[0].second = "other";
  const Table table = make_table(sweep.manifest, sweep.folder, {.allow_mixed = true});
  for (const auto& line : read_csv(render(table, Format::csv, Form::longer))) EXPECT_EQ(line.at("flags"), "mixed");
}

/// 20 rows x 5 columns x 10 rates x 10 seeds in memory. Reading as many files is HDF5's time, which this does not measure.
TEST(Compare, TenThousandTrialsInFiveSeconds) {
  std::vector<std::string> rows;
  for (int i = 0; i < 20; ++i) rows.push_back("V" + std::to_string(i));
  Sweep sweep({points("variant", "row", rows), points("task", "column", {"A", "B", "C", "D", "E"}),
               values("lr", "select", "optimizer.lr", seed_values(10)), values("seed", "replicate", "seed", seed_values(10))});
  for (const auto& trial : sweep.manifest.trials) {
    const double value = static_cast<double>((trial.at[0] * 7 + trial.at[2] * 3 + trial.at[3] * 5) % 11) / 11.0;
    auto& record = sweep.record(trial.at, value, value);
    for (int i = 0; i < 40; ++i) record.spec.make_path("model.option" + std::to_string(i)) = i;
    for (int i = 0; i < 16; ++i) record.evals.push_back({i, "test", "loss", 64 + i, 1.0, 10});
    for (int i = 0; i < 40; ++i) record.summary.emplace_back("shared_rows.test." + std::to_string(i), 0.0);
  }
  sweep.manifest.table["baseline"] = "V0";
  const std::clock_t start = std::clock();
  const Table table = sweep.table();
  EXPECT_EQ(table.done, 10000);
  for (const Form form : {Form::longer, Form::wide, Form::trials, Form::candidates}) render(table, Format::csv, form);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 5.0);  // of a processor
}

}  // namespace
}  // namespace phasor::analysis
