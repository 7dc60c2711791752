#include "analysis/table/table.h"

#include <gtest/gtest.h>

#include "tests/analysis/sweep.h"

namespace phasor::analysis {
namespace {

/// A6: LR 1e-3 seeds .99 .10 .10; 3e-3 .80 .80 .80; 1e-2 .95 NaN missing.
Sweep a6() {
  Sweep sweep({points("variant", "row", {"A"}), values("lr", "select", "optimizer.lr", {0.001, 0.003, 0.01}),
               values("seed", "replicate", "seed", {0, 1, 2})});
  const double first[] = {0.99, 0.10, 0.10};
  for (std::int64_t seed = 0; seed < 3; ++seed) {
    sweep.record({0, 0, seed}, first[seed], first[seed]);
    sweep.record({0, 1, seed}, 0.75, 0.80);
  }
  sweep.record({0, 2, 0}, 0.95, 0.95);
  sweep.record({0, 2, 1}, nan, nan);
  return sweep;
}

TEST(Table, ACandidateWithADivergedOrMissingReplicateIsNotChosen) {
  const auto lines = read_csv(a6().text(Format::csv, Form::longer));
  ASSERT_EQ(lines.size(), 1u);
  const auto& line = lines[0];
  EXPECT_EQ(line.at("variant"), "A");
  EXPECT_EQ(line.at("optimizer.lr"), "0.003");
  EXPECT_EQ(line.at("mean"), "0.8000");  // of test, though valid chose
  EXPECT_EQ(line.at("sd"), "0.0000");
  EXPECT_EQ(line.at("n"), "3");
  EXPECT_EQ(line.at("expected"), "3");
  EXPECT_EQ(line.at("diverged"), "0");
  EXPECT_EQ(line.at("missing"), "0");
  EXPECT_EQ(line.at("solved"), "0");
  EXPECT_EQ(line.at("trials"), "9");
  EXPECT_EQ(line.at("flags"), "");
  EXPECT_EQ(line.at("select_split"), "valid");
  EXPECT_EQ(line.at("select_metric"), "accuracy");
  EXPECT_EQ(line.at("select_slice"), "32");
  EXPECT_EQ(line.at("select_at"), "final");
  EXPECT_EQ(line.at("select_direction"), "maximise");
  EXPECT_EQ(line.at("select_seeds"), "same as reported");
  EXPECT_EQ(line.at("split"), "test");

  const auto candidates = read_csv(a6().text(Format::csv, Form::candidates));
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].at("score"), "0.3967");
  EXPECT_EQ(candidates[1].at("chosen"), "yes");
  EXPECT_EQ(candidates[1].at("tied"), "1");
  EXPECT_EQ(candidates[2].at("optimizer.lr"), "0.01");
  EXPECT_EQ(candidates[2].at("n"), "1");
  EXPECT_EQ(candidates[2].at("diverged"), "1");
  EXPECT_EQ(candidates[2].at("missing"), "1");
  EXPECT_EQ(candidates[2].at("eligible"), "no");

  for (const Format format : {Format::terminal, Format::markdown}) {
    const std::string text = a6().text(format, Form::wide);
    EXPECT_NE(text.find("A / optimizer.lr 0.01: n=1 of 3, diverged 1, failed 0, missing 1"), std::string::npos) << text;
    EXPECT_NE(text.find("valid of the same seeds that are reported on test"), std::string::npos) << text;
  }
}

TEST(Table, SelectionLooksAtValidationAndTheReportAtTest) {
  Sweep sweep({values("lr", "select", "optimizer.lr", {0.1, 0.2, 0.3, 0.4})});
  sweep.record({0}, 0.1, 1.0);
  sweep.record({1}, 0.9, 0.2);
  sweep.record({2}, 0.5, 0.9);
  sweep.record({3}, 0.4, 0.3);
  const auto line = read_csv(sweep.text(Format::csv, Form::longer)).at(0);
  EXPECT_EQ(line.at("optimizer.lr"), "0.2");
  EXPECT_EQ(line.at("mean"), "0.2000");
  EXPECT_EQ(line.at("sd"), "");
  EXPECT_EQ(line.at("n"), "1");
}

/// L36: losses 0.5, NaN, inf, -inf and a real 0.0.
TEST(Table, DivergedNeverRanksBest) {
  Sweep sweep({values("lr", "select", "optimizer.lr", {0.1, 0.2, 0.3, 0.4, 0.5})});
  sweep.manifest.table = parse_json(R"({"select": {"split": "valid", "metric": "loss"},
                                        "report": [{"split": "test", "metric": "loss"}]})", "table");
  const double losses[] = {0.5, nan, infinity, -infinity, 0.0};
  for (std::int64_t i = 0; i < 5; ++i) {
    auto& record = sweep.record({i}, 0, 0);
    record.evals = {{10, "valid", "loss", -1, losses[i], 1}, {10, "test", "loss", -1, losses[i], 1}};
  }
  EXPECT_EQ(read_csv(sweep.text(Format::csv, Form::longer)).at(0).at("optimizer.lr"), "0.5");
  const auto candidates = read_csv(sweep.text(Format::csv, Form::candidates));
  const char* diverged[] = {"0", "1", "1", "1", "0"};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(candidates.at(i).at("diverged"), diverged[i]);
  const auto trials = read_csv(sweep.text(Format::csv, Form::trials));
  EXPECT_EQ(trials.at(1).at("test.loss"), "nan");
  EXPECT_EQ(trials.at(2).at("test.loss"), "inf");
  EXPECT_EQ(trials.at(3).at("test.loss"), "-inf");
  EXPECT_EQ(trials.at(4).at("test.loss"), "0");
  EXPECT_EQ(trials.at(4).at("chosen"), "yes");
}

TEST(Table, WithNoneWholeTheCellIsNotAvailableWithItsCounts) {
  Sweep sweep({points("variant", "row", {"A"}), values("lr", "select", "optimizer.lr", {0.1, 0.2}),
               values("seed", "replicate", "seed", {0, 1})});
  sweep.record({0, 0, 0}, 0.9, 0.9);
  sweep.diverged({0, 0, 1});
  sweep.failed({0, 1, 0});
  const auto line = read_csv(sweep.text(Format::csv, Form::longer)).at(0);
  EXPECT_EQ(line.at("mean"), "NA");
  EXPECT_EQ(line.at("sd"), "");
  EXPECT_EQ(line.at("optimizer.lr"), "NA");
  EXPECT_EQ(line.at("n"), "1");
  EXPECT_EQ(line.at("expected"), "4");
  EXPECT_EQ(line.at("diverged"), "1");
  EXPECT_EQ(line.at("failed"), "1");
  EXPECT_EQ(line.at("missing"), "1");
  EXPECT_EQ(line.at("flags"), "none_complete");
  EXPECT_FALSE(sweep.table().complete());
  EXPECT_NE(sweep.text(Format::terminal, Form::wide).find("n/a (n 1 of 4, 1 diverged, 1 failed, 1 missing)"),
            std::string::npos);
  EXPECT_EQ(unfinished(sweep.table()),
            (std::vector<std::string>{"diverged  A / lr 0.1 / seed 1: loss nan at step 7",
                                      "error     A / lr 0.2 / seed 0: out of memory", "missing   A / lr 0.2 / seed 1"}));
}

TEST(Table, AReportedNumberThatIsNotFiniteIsNeverAveragedIn) {
  Sweep sweep({values("lr", "select", "optimizer.lr", {0.1, 0.2}), values("seed", "replicate", "seed", {0, 1})});
  sweep.record({0, 0}, 0.9, 0.7);
  sweep.record({0, 1}, 0.9, infinity);
  sweep.record({1, 0}, 0.1, 0.1);
  sweep.record({1, 1}, 0.1, 0.1);
  const auto line = read_csv(sweep.text(Format::csv, Form::longer)).at(0);
  EXPECT_EQ(line.at("optimizer.lr"), "0.1");  // chosen on valid, where all is well
  EXPECT_EQ(line.at("mean"), "NA");
  EXPECT_EQ(line.at("n"), "1");
  EXPECT_EQ(line.at("diverged"), "1");
  EXPECT_EQ(line.at("flags"), "lr_edge;incomplete");
}

/// L38: 1,500 trials; one row lacks a field of the spec; two cells lack seeds.
TEST(Table, NoRowVanishes) {
  std::vector<std::string> labels;
  for (int i = 0; i < 50; ++i) labels.push_back("V" + std::to_string(i));
  std::vector<double> seeds;
  for (int i = 0; i < 30; ++i) seeds.push_back(i);
  Sweep sweep({points("variant", "row", labels), values("seed", "replicate", "seed", seeds)});
  sweep.manifest.varied.push_back("model.encoding");
  for (std::int64_t v = 0; v < 50; ++v) {
    for (std::int64_t s = 0; s < 30; ++s) {
      if ((v == 3 && s == 7) || (v == 40 && s == 0)) continue;
      auto& record = sweep.record({v, s}, 0.5, 0.5);
      record.spec.make_path("model.encoding.name") = v == 9 ? "nope" : "rope";
      if (v != 9) record.spec.make_path("model.encoding.theta") = 10000;
    }
  }
  const Table table = sweep.table();
  EXPECT_EQ(table.expected, 1500);
  EXPECT_EQ(table.done, 1498);
  EXPECT_EQ(table.missing, 2);
  EXPECT_EQ(unfinished(table), (std::vector<std::string>{"missing   V3 / seed 7", "missing   V40 / seed 0"}));
  const auto lines = read_csv(render(table, Format::csv, Form::longer));
  ASSERT_EQ(lines.size(), 50u);
  EXPECT_EQ(lines[9].at("n"), "30");
  EXPECT_EQ(lines[3].at("n"), "29");
  EXPECT_EQ(lines[3].at("missing"), "1");
  EXPECT_EQ(lines[3].at("mean"), "NA");
  const auto trials = read_csv(render(table, Format::csv, Form::trials));
  ASSERT_EQ(trials.size(), 1500u);
  EXPECT_EQ(trials[9 * 30].at("model.encoding.name"), "nope");
  EXPECT_EQ(trials[9 * 30].at("model.encoding.theta"), "");
  EXPECT_EQ(trials[10 * 30].at("model.encoding.theta"), "10000");
  EXPECT_EQ(trials[3 * 30 + 7].at("status"), "missing");
  EXPECT_EQ(trials[3 * 30 + 7].at("file"), "");
}

TEST(Table, ADamagedFileIsMissingAndNamed) {
  Sweep sweep({values("seed", "replicate", "seed", {0, 1})});
  sweep.record({0}, 0.5, 0.5);
  sweep.folder.damaged.push_back({"data/x/t-1.h5", "not a whole HDF5 file"});
  const Table table = sweep.table();
  EXPECT_EQ(table.missing, 1);
  EXPECT_EQ(unfinished(table).at(0), "missing   seed 1: its file is not whole: not a whole HDF5 file");
  EXPECT_NE(render(table, Format::terminal, Form::wide).find("data/x/t-1.h5: not a whole HDF5 file"), std::string::npos);
}

TEST(Table, FilesThatAreNotExpectedAreNamedAndLeftOut) {
  Sweep sweep({values("seed", "replicate", "seed", {0})});
  sweep.record({0}, 0.5, 0.5);
  sweep.record({0}, 0.9, 0.9).id = "stranger";
  const Table table = sweep.table();
  EXPECT_EQ(table.ignored, (std::vector<std::string>{"stranger.h5"}));
  EXPECT_EQ(read_csv(render(table, Format::csv, Form::longer)).at(0).at("mean"), "0.5000");
  EXPECT_NE(render(table, Format::terminal, Form::wide).find("ignored"), std::string::npos);
}

TEST(Table, AnExcludedCellIsVisible) {
  Sweep sweep({points("variant", "row", {"A", "B"}), points("task", "column", {"S2", "A3"}),
               values("seed", "replicate", "seed", {0, 1})});
  for (std::int64_t s = 0; s < 2; ++s) {
    for (const auto& [row, column] : {std::pair{0, 0}, {0, 1}, {1, 0}}) sweep.record({row, column, s}, 0.5, 0.5);
    sweep.expected({1, 1, s}).excluded = "needs an even head_dim";
  }
  const auto lines = read_csv(sweep.text(Format::csv, Form::longer));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[3].at("variant"), "B");
  EXPECT_EQ(lines[3].at("task"), "A3");
  EXPECT_EQ(lines[3].at("mean"), "NA");
  EXPECT_EQ(lines[3].at("expected"), "0");
  EXPECT_EQ(lines[3].at("flags"), "excluded");
  EXPECT_TRUE(sweep.table().complete());
  EXPECT_EQ(sweep.table().excluded, 2);
  EXPECT_NE(sweep.text(Format::terminal, Form::wide).find("B / A3: needs an even head_dim"), std::string::npos);
  EXPECT_EQ(read_csv(sweep.text(Format::csv, Form::trials)).at(7).at("status"), "excluded");
}

TEST(Table, AnEdgeOfTheGridIsFlagged) {
  for (const auto& [best, flag] : {std::pair<std::int64_t, std::string>{0, "lr_edge"}, {1, ""}, {2, "lr_edge"}}) {
    Sweep sweep({values("lr", "select", "optimizer.lr", {0.3, 0.1, 0.2})});  // in order of value: 1, 2, 0
    for (std::int64_t i = 0; i < 3; ++i) sweep.record({i}, i == (best + 1) % 3 ? 0.9 : 0.1, 0.5);
    EXPECT_EQ(read_csv(sweep.text(Format::csv, Form::longer)).at(0).at("flags"), flag) << best;
  }
  Sweep one({values("lr", "select", "optimizer.lr", {0.3})});  // nothing to widen from
  one.record({0}, 0.5, 0.5);
  EXPECT_EQ(read_csv(one.text(Format::csv, Form::longer)).at(0).at("flags"), "");
}

TEST(Table, TiesAreBrokenByValidationLossThenTheLowestAndCounted) {
  Sweep sweep({values("lr", "select", "optimizer.lr", {0.4, 0.3, 0.2, 0.1})});
  const double loss[] = {0.5, 0.2, 0.2, 0.7};
  for (std::int64_t i = 0; i < 4; ++i) {
    auto& record = sweep.record({i}, i == 3 ? 0.8 : 0.9, 0.5);
    record.evals.push_back({100, "valid", "loss", -1, loss[i], 1});  // over all lengths: not measured at 32
  }
  const auto line = read_csv(sweep.text(Format::csv, Form::longer)).at(0);
  EXPECT_EQ(line.at("optimizer.lr"), "0.2");
  EXPECT_EQ(line.at("tied"), "3");
  EXPECT_EQ(line.at("flags"), "tied");
  EXPECT_NE(sweep.text(Format::terminal, Form::wide).find("t3"), std::string::npos);
  sweep.manifest.table["select"]["ties"] = Json::Array{"lowest"};
  EXPECT_EQ(read_csv(sweep.text(Format::csv, Form::longer)).at(0).at("optimizer.lr"), "0.2");
  sweep.folder.records[0].evals.back().value = 0.1;
  EXPECT_EQ(read_csv(sweep.text(Format::csv, Form::longer)).at(0).at("optimizer.lr"), "0.2");
  sweep.manifest.table["select"]["ties"] = Json::Array{"valid.loss"};
  EXPECT_EQ(read_csv(sweep.text(Format::csv, Form::longer)).at(0).at("optimizer.lr"), "0.4");
  sweep.manifest.table["select"]["ties"] = Json::Array{"valid.perplexity"};
  EXPECT_EQ(sweep.table().notes, (std::vector<std::string>{"no trial measured valid.perplexity, so it broke no ties"}));
}

/// L30: curves A 9, 7, 5 and B 10, 4, 10, minimise.
TEST(Table, TheRuleDecidesAndIsNamed) {
  Sweep sweep({values("lr", "select", "optimizer.lr", {0.1, 0.2})});
  sweep.manifest.table = parse_json(R"({"select": {"split": "valid", "metric": "loss", "at": "final"},
                                        "report": [{"split": "test", "metric": "loss"}]})", "table");
  const double a[] = {9, 7, 5}, b[] = {10, 4, 10};
  for (std::int64_t i = 0; i < 2; ++i) {
    auto& record = sweep.record({i}, 0, 0);
    record.evals = {{3, "test", "loss", -1, 1.0 + static_cast<double>(i), 1}};
    for (std::int64_t s = 0; s < 3; ++s) record.evals.push_back({s + 1, "valid", "loss", -1, (i == 0 ? a : b)[s], 1});
  }
  const auto check = [&](const char* at, const char* chosen, const char* step) {
    sweep.manifest.table["select"]["at"] = at;
    for (const Form form : {Form::longer, Form::candidates, Form::trials}) {
      for (const auto& line : read_csv(sweep.text(Format::csv, form))) {
        EXPECT_EQ(line.at("select_at"), at);
        EXPECT_EQ(line.at("select_direction"), "minimise");
        if (form == Form::trials && line.at("chosen") == "no") continue;
        if (form == Form::candidates && line.at("chosen") == "no") continue;
        EXPECT_EQ(line.at("optimizer.lr"), chosen) << at;
        EXPECT_EQ(line.at("select_step"), step) << at;
      }
    }
  };
  check("final", "0.1", "3");
  check("best", "0.2", "2");
  check("mean_last_2", "0.1", "3");  // 6 against 7
  sweep.manifest.table["select"]["at"] = "mean_last_4";
  EXPECT_EQ(refusal([&] { sweep.table(); }),
            "table.select: the mean of the last 4 evaluations, but lr 0.1 has fewer of valid.loss; lower k, or evaluate "
            "more often");
}

TEST(Table, MetricsThatNobodyMeasuredAreAnErrorThatListsTheOthers) {
  Sweep sweep({values("lr", "select", "optimizer.lr", {0.1, 0.2})});
  sweep.record({0}, 0.5, 0.5);
  sweep.manifest.table["report"] = parse_json(R"([{"split": "test", "metric": "accuracy", "slices": [64]}])", "t");
  EXPECT_EQ(refusal([&] { sweep.table(); }),
            "table.report: no trial measured test.accuracy@64; they measured test.accuracy@32, valid.accuracy@32");
  sweep.folder.records.clear();
  EXPECT_EQ(sweep.table().missing, 2);  // nothing ran yet: all n/a, no error
}

TEST(Table, SeveralAxesOfEveryRoleAreCrossed) {
  Sweep sweep({points("encoding", "row", {"E0", "E1"}), points("gate", "row", {"G0", "G1"}),
               points("task", "column", {"S2", "A3"}), points("size", "column", {"s", "m"}),
               values("lr", "select", "optimizer.lr", {0.1, 0.2}), values("wd", "select", "optimizer.weight_decay", {0, 1}),
               values("seed", "replicate", "seed", {0, 1})});
  for (const results::ManifestTrial& trial : sweep.manifest.trials) {
    const auto& at = trial.at;
    // Each cell has its own winner (lr, wd), and a test value that tells where it is.
    const bool wins = at[4] == at[0] && at[5] == at[2];
    const std::int64_t place = at[0] * 1000 + at[1] * 100 + at[2] * 10 + at[3];
    sweep.record(at, wins ? 0.9 : 0.1, static_cast<double>(place + 10000 * (wins ? 1 : 0)) + 0.5 * static_cast<double>(at[6]));
  }
  const auto lines = read_csv(sweep.text(Format::csv, Form::longer));
  ASSERT_EQ(lines.size(), 16u);
  const auto& line = lines[4 * 2 + 2];  // E1 G0 A3 s
  EXPECT_EQ(line.at("encoding") + line.at("gate") + line.at("task") + line.at("size"), "E1G0A3s");
  EXPECT_EQ(line.at("optimizer.lr"), "0.2");
  EXPECT_EQ(line.at("optimizer.weight_decay"), "1");
  EXPECT_EQ(line.at("mean"), "11010.2500");
  EXPECT_EQ(line.at("trials"), "8");
  const auto wide = read_csv(sweep.text(Format::csv, Form::wide));
  ASSERT_EQ(wide.size(), 4u);
  EXPECT_EQ(wide[2].at("A3/s.mean"), "11010.2500");
  EXPECT_EQ(wide[2].at("A3/s.optimizer.lr"), "0.2");
}

TEST(Table, ParametersMoreThanFivePercentApartAreFlagged) {
  Sweep sweep({points("variant", "row", {"A", "B", "C"})});
  const std::int64_t counts[] = {1000, 1050, 1051};
  for (std::int64_t i = 0; i < 3; ++i) {
    sweep.expected({i}).parameters = counts[i];
    sweep.record({i}, 0.5, 0.5);
  }
  const auto lines = read_csv(sweep.text(Format::csv, Form::longer));
  EXPECT_EQ(lines[1].at("flags"), "");
  EXPECT_EQ(lines[2].at("flags"), "parameters");
  EXPECT_EQ(lines[2].at("parameters"), "1051");
  sweep.folder.records[1].parameters = {{"w", 2000, false, true}, {"b", 3, false, false}};  // the record knows better
  EXPECT_EQ(read_csv(sweep.text(Format::csv, Form::longer)).at(1).at("parameters"), "2003");
}

TEST(Table, TheNumbersOfACellDoNotDependOnWhatElseIsThere) {
  const auto mean_of = [](std::int64_t rows) {
    std::vector<std::string> labels;
    for (std::int64_t i = 0; i < rows; ++i) labels.push_back("V" + std::to_string(i));
    std::vector<double> seeds;
    for (int i = 0; i < 150; ++i) seeds.push_back(i);
    Sweep sweep({points("variant", "row", labels), values("seed", "replicate", "seed", seeds)});
    for (std::int64_t v = 0; v < rows; ++v) {
      for (std::int64_t s = 0; s < 150; ++s) {
        sweep.record({v, s}, 0.5, static_cast<double>((s * 37 + v * 11) % 150) / 151.0);
      }
    }
    const Number& number = sweep.table().cells[0].numbers[0];
    return std::pair(*number.statistics.mean, number.counts.finite);
  };
  EXPECT_EQ(mean_of(1), mean_of(2));
  EXPECT_EQ(mean_of(2).second, 150);
}

TEST(Table, TheOrderOfTheRecordsDoesNotShow) {
  Sweep sweep = a6();
  std::vector<std::string> expected;
  for (const Form form : {Form::longer, Form::wide, Form::trials, Form::candidates}) {
    expected.push_back(sweep.text(Format::csv, form));
    expected.push_back(sweep.text(Format::markdown, form));
  }
  expected.push_back(sweep.text(Format::terminal, Form::wide));
  for (int round = 0; round < 10; ++round) {
    std::rotate(sweep.folder.records.begin(), sweep.folder.records.begin() + 3, sweep.folder.records.end());
    if (round % 2 == 0) std::reverse(sweep.folder.records.begin(), sweep.folder.records.end());
    for (auto& record : sweep.folder.records) std::reverse(record.evals.begin(), record.evals.end());
    std::size_t i = 0;
    for (const Form form : {Form::longer, Form::wide, Form::trials, Form::candidates}) {
      EXPECT_EQ(sweep.text(Format::csv, form), expected[i++]);
      EXPECT_EQ(sweep.text(Format::markdown, form), expected[i++]);
    }
    EXPECT_EQ(sweep.text(Format::terminal, Form::wide), expected[i]);
  }
}

TEST(Table, ASelectAxisNeedsARule) {
  Sweep sweep({values("lr", "select", "optimizer.lr", {0.1, 0.2})});
  sweep.manifest.table.erase("select");
  EXPECT_NE(refusal([&] { sweep.table(); }).find("no \"select\""), std::string::npos);
}

TEST(Table, ABaselineThatIsNoRowIsRefused) {
  Sweep sweep({points("variant", "row", {"A", "B"})});
  for (std::int64_t i = 0; i < 2; ++i) sweep.record({i}, 0.5, 0.5).summary = {{"step_ms", 2.0 + static_cast<double>(i)}};
  sweep.manifest.table["baseline"] = "C";
  EXPECT_EQ(refusal([&] { sweep.table(); }), "table.baseline: no row is labelled \"C\"");
  sweep.manifest.table["baseline"] = "A";
  const std::string text = sweep.text(Format::terminal, Form::wide);
  EXPECT_NE(text.find("A (baseline)"), std::string::npos);
  EXPECT_NE(text.find("1.50x"), std::string::npos) << text;
}

}  // namespace
}  // namespace phasor::analysis
