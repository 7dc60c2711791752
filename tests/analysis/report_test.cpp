#include <chrono>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>

#include "analysis/figures/figures.h"
#include "analysis/report/data.h"
#include "analysis/report/report.h"
#include "core/base/hash.h"
#include "tests/analysis/sweep.h"

namespace phasor::analysis {
namespace {

Sweep small() {
  Sweep sweep({points("variant", "row", {"NoPE", "<Selective>"}), points("task", "column", {"S2", "A3"}),
               values("lr", "select", "optimizer.lr", {0.001, 0.01}), values("seed", "replicate", "seed", {0, 1})});
  for (const results::ManifestTrial& trial : sweep.manifest.trials) {
    results::TrialRecord& record = sweep.record(trial.at, 0.1 * static_cast<double>(trial.at[2] + 1), 0.2 + 0.1 * static_cast<double>(trial.at[3]));
    for (std::int64_t step = 1; step <= 100; ++step) record.steps.push_back({step, 1.0 / static_cast<double>(step), 0.01, 1.0, false});
    record.spec.make_path("task.train.length") = 32;
  }
  return sweep;
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::vector<Figure> figures_of(const Sweep& sweep) {
  const Frame frame = flatten(sweep.manifest, sweep.folder);
  const Table table = sweep.table();
  return figures({frame, table, sweep.folder});
}

const Figure* named(const std::vector<Figure>& figures, const std::string& name) {
  for (const Figure& figure : figures) {
    if (figure.name == name) return &figure;
  }
  return nullptr;
}

TEST(Figures, OfASmallSweep) {
  const std::vector<Figure> made = figures_of(small());
  EXPECT_EQ(named(made, "length"), nullptr) << "one length is no curve";
  EXPECT_EQ(named(made, "width"), nullptr);
  EXPECT_EQ(named(made, "progress"), nullptr) << "one evaluation is no curve";
  ASSERT_NE(named(made, "heatmap"), nullptr);
  ASSERT_NE(named(made, "curves"), nullptr);
  ASSERT_NE(named(made, "sensitivity"), nullptr);
  EXPECT_NE(named(made, "heatmap")->svg.find(">.25<"), std::string::npos) << "the mean of .2 and .3";
  EXPECT_NE(named(made, "heatmap")->svg.find("&lt;Selective&gt; on S2: 0.2500 (0.2000 to 0.3000, n=2)"), std::string::npos);
  // The choice of 0.01 is ringed, the mean of each rate is a point, each trial a dot.
  const std::string& sensitivity = named(made, "sensitivity")->svg;
  EXPECT_NE(sensitivity.find("NoPE, lr 0.01: mean 0.2000"), std::string::npos);
  EXPECT_EQ(count_of(sensitivity, "class=\"ring\""), 4U);
  EXPECT_EQ(count_of(sensitivity, "NoPE / S2 / lr 0.001 / seed 0: 0.1000"), 1U);
  EXPECT_EQ(count_of(sensitivity, "NoPE / S2 / lr 0.001 / seed 1: 0.1000"), 1U);
}

TEST(Figures, LengthMarksTraining) {
  Sweep sweep = small();
  sweep.manifest.table = parse_json(R"({"select": {"split": "valid", "metric": "accuracy", "slice": 32},
    "report": [{"split": "test", "metric": "accuracy", "slices": [64, 32]}], "primary": {"metric": "accuracy", "slice": 32}})", "table");
  for (results::TrialRecord& record : sweep.folder.records) record.evals.push_back({100, "test", "accuracy", 64, 0.05, 10});
  const std::vector<Figure> made = figures_of(sweep);
  ASSERT_NE(named(made, "length"), nullptr);
  const std::string& svg = named(made, "length")->svg;
  EXPECT_NE(svg.find(">trained to 32<"), std::string::npos);
  EXPECT_NE(svg.find("NoPE, length 64: 0.0500"), std::string::npos);
  EXPECT_LT(svg.find("NoPE, length 32"), svg.find("NoPE, length 64")) << "in order of length, whatever the order of the file";
  // Another length in one trial of a column: there is no one length to mark.
  sweep.folder.records.front().spec.make_path("task.train.length") = 48;
  const std::string mixed = named(figures_of(sweep), "length")->svg;
  EXPECT_EQ(count_of(mixed, "trained to 32"), 1U);
}

TEST(Figures, WidthIsAColumnOfNumbers) {
  Sweep sweep({points("variant", "row", {"a", "b"}), points("width", "column", {"64", "16", "32"}), values("lr", "select", "optimizer.lr", {0.1}), values("seed", "replicate", "seed", {0, 1})});
  for (const results::ManifestTrial& trial : sweep.manifest.trials) sweep.record(trial.at, 0.5, 0.1 * static_cast<double>(trial.at[1] + 1));
  const std::vector<Figure> made = figures_of(sweep);
  ASSERT_NE(named(made, "width"), nullptr);
  const std::string& svg = named(made, "width")->svg;
  EXPECT_NE(svg.find("a, width 64: 0.1000"), std::string::npos);
  EXPECT_LT(svg.find("a, width 16: 0.2000"), svg.find("a, width 64: 0.1000")) << "in order of width";
}

TEST(Figures, WhatHasNoNumberIsSaid) {
  Sweep sweep = small();
  for (results::TrialRecord& record : sweep.folder.records) {
    if (record.id.starts_with("t-0-0")) record.status = results::Status::diverged;
  }
  const std::vector<Figure> made = figures_of(sweep);
  EXPECT_NE(named(made, "curves")->caption.find("Not drawn, for want of a number: NoPE on S2."), std::string::npos);
  EXPECT_NE(named(made, "sensitivity")->caption.find("Crosses: diverged or failed."), std::string::npos);
  EXPECT_NE(named(made, "heatmap")->svg.find(">n/a<"), std::string::npos);
  EXPECT_TRUE(figures_of(Sweep({values("seed", "replicate", "seed", {0})})).empty());
}

TEST(Figures, RefuseNamesThatAreNone) {
  const Sweep sweep = small();
  const Frame frame = flatten(sweep.manifest, sweep.folder);
  const Table table = sweep.table();
  EXPECT_NE(refusal([&] { figures_named({frame, table, sweep.folder}, "pie"); }).find("expected \"length\", \"width\""), std::string::npos);
  EXPECT_NE(refusal([&] { figures_named({frame, table, sweep.folder}, "length"); }).find("nothing to show"), std::string::npos);
}

TEST(Commons, SayOnceWhatMostHave) {
  const std::vector<Commons::Entries> all = {{{"a", "1"}, {"b", "x"}}, {{"a", "1"}, {"b", "y"}}, {{"a", "2"}, {"b", "y"}, {"c", "z"}}, {{"b", "y"}, {"d", "4"}}};
  const Commons commons(all);
  EXPECT_EQ(commons.common(), (Commons::Entries{{"b", "y"}})) << "half is not most";
  const Commons three({all[0], all[1], all[2]});
  EXPECT_EQ(three.common(), (Commons::Entries{{"a", "1"}, {"b", "y"}}));
  // What is common and own together give back what a trial has.
  for (const Commons::Entries& one : all) {
    std::map<std::string, std::string> merged(three.common().begin(), three.common().end());
    for (const auto& [name, value] : three.own(one)) {
      if (value) merged[name] = *value;
      else merged.erase(name);
    }
    EXPECT_EQ(Commons::Entries(merged.begin(), merged.end()), one);
  }
}

Json data_of(const Sweep& sweep, const ReportOptions& options = {}) { return parse_json(make_report(sweep.manifest, sweep.folder, options).data, "data"); }

TEST(Report, DataHasEveryTrial) {
  Sweep sweep = small();
  sweep.expected({1, 1, 1, 1}).excluded = "does not fit";
  sweep.folder.records.pop_back();
  sweep.folder.records.pop_back();
  sweep.folder.records.front().evals.front().value = infinity;
  const Json data = data_of(sweep, {.folder = "out", .log = [](const auto& trial, bool) { return TrialLog{"logs/" + trial.id, "the end"}; }});
  const Json::Array& trials = data.find("trials")->as_array();
  ASSERT_EQ(trials.size(), sweep.manifest.trials.size());
  EXPECT_EQ(trials[0].find("s")->as_string(), "done");
  EXPECT_EQ(trials[0].find("v")->as_string(), "inf") << "as it was measured";
  EXPECT_EQ(trials[1].find("v")->as_number(), 0.1);
  EXPECT_EQ(trials[1].find("r")->as_array()[0].as_number(), 0.2 + 0.1);
  EXPECT_EQ(trials[1].find("o")->as_array()[0].as_string(), "logs/" + trials[1].find("i")->as_string());
  EXPECT_EQ(trials[14].find("s")->as_string(), "missing");
  EXPECT_EQ(trials[15].find("s")->as_string(), "excluded");
  EXPECT_EQ(trials[15].find("m")->as_string(), "does not fit");
  EXPECT_EQ(trials[3].find("c")->as_integer(), 1) << "of the chosen rate";
  EXPECT_EQ(trials[1].find("c"), nullptr);
  EXPECT_EQ(data.find("spec")->find("task.train.length")->as_string(), "32");
}

TEST(Report, CurvesKeepSpikes) {
  Sweep sweep = small();
  results::TrialRecord& record = sweep.folder.records.front();
  record.steps.clear();
  for (std::int64_t step = 1; step <= 5000; ++step) record.steps.push_back({step, step == 3333 ? 1e6 : step == 777 ? 1e-9 : 1.0, 0.01, 1.0, false});
  record.steps[4000].loss = nan;
  const Json data = data_of(sweep);
  const Json::Array& curve = data.find("trials")->as_array()[0].find("l")->as_array();
  std::int64_t step = 0;
  std::map<std::int64_t, Json> kept;
  for (std::size_t i = 0; i < curve[0].as_array().size(); ++i) kept[step += curve[0].as_array()[i].as_integer()] = curve[1].as_array()[i];
  EXPECT_LE(kept.size(), 200U);
  EXPECT_EQ(curve[2].as_integer(), 5000);
  EXPECT_EQ(kept.begin()->first, 1);
  EXPECT_EQ(kept.rbegin()->first, 5000);
  ASSERT_TRUE(kept.contains(3333));
  EXPECT_EQ(kept[3333].as_number(), 1e6);
  ASSERT_TRUE(kept.contains(777));
  ASSERT_TRUE(kept.contains(4001));
  EXPECT_TRUE(kept[4001].is_null());
}

TEST(Report, IsEscapedAndAlone) {
  Sweep sweep = small();
  sweep.manifest.name = "</title><script>bad()</script>";
  sweep.manifest.note = "</script><img src=x onerror=bad()>";
  sweep.folder.records.front().message = "</script><script>bad()</script>";
  const Report report = make_report(sweep.manifest, sweep.folder, {});
  const std::string page = report_page(report, false);
  EXPECT_EQ(page.find("<script>bad"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<Selective>"), std::string::npos);
  EXPECT_EQ(count_of(page, "</script>"), 2U) << "the data and the program";
  EXPECT_EQ(count_of(page, "https://"), 0U);
  EXPECT_EQ(count_of(page, "http://"), count_of(page, "http://www.w3.org/")) << "names of name spaces only";
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("data-live=\"no\""), std::string::npos);
  EXPECT_EQ(page.find("{{"), std::string::npos);
}

TEST(Report, SameFolderSameBytes) {
  Sweep sweep = small();
  const Report one = make_report(sweep.manifest, sweep.folder, {});
  EXPECT_EQ(report_page(one, false), report_page(make_report(sweep.manifest, sweep.folder, {}), false));
  EXPECT_EQ(parse_json(report_news(one), "news").find("top")->as_string(), one.top);
  sweep.folder.records.front().evals.back().value += 1e-9;
  EXPECT_NE(make_report(sweep.manifest, sweep.folder, {}).version, one.version);
}

TEST(Report, SaysWhyThereIsNoTable) {
  Sweep sweep = small();
  sweep.folder.records.front().provenance[0].second = "another commit";
  EXPECT_NE(refusal([&] { make_report(sweep.manifest, sweep.folder, {}); }).find("different commit"), std::string::npos);
  const Report report = make_report(sweep.manifest, sweep.folder, {.tolerant = true});
  EXPECT_NE(report.top.find("no table can be made: "), std::string::npos);
  EXPECT_EQ(parse_json(report.data, "data").find("trials")->as_array().size(), 16U);
  EXPECT_EQ(make_report(sweep.manifest, sweep.folder, {.allow_mixed = true}).top.find("no table"), std::string::npos);
}

/// 10,000 trials, each with a curve of 1,000 steps, 80 evaluations and facts of its own: from files to a page.
TEST(Report, TenThousandTrials) {
  std::vector<double> seeds(100);
  for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i] = static_cast<double>(i);
  Sweep sweep({points("variant", "row", {"a", "b", "c", "d", "e"}), points("task", "column", {"s", "t", "u", "v"}), values("lr", "select", "optimizer.lr", {1, 2, 3, 4, 5}),
               values("seed", "replicate", "seed", seeds)});
  ASSERT_EQ(sweep.manifest.trials.size(), 10000U);
  for (const results::ManifestTrial& trial : sweep.manifest.trials) {
    results::TrialRecord& record = sweep.record(trial.at, 0.5 + 1e-3 * static_cast<double>(trial.at[3]), 0.123456789 * static_cast<double>(trial.at[3]) / 100);
    record.id = uuid5(trial.id);
    for (std::int64_t step = 1; step <= 1000; ++step) record.steps.push_back({step, 1.0 + 0.1 * std::sin(static_cast<double>(step * (trial.at[3] + 1))), 0.01, 1.0, false});
    for (std::int64_t i = 0; i < 80; ++i) record.evals.push_back({10 * (i % 10), i < 40 ? "valid" : "test", i % 2 == 0 ? "loss" : "accuracy", 32 + i % 4, 0.1234567 + static_cast<double>(i), 1000});
    for (int i = 0; i < 60; ++i) record.spec.make_path("model.part" + std::to_string(i) + ".option") = i;
    record.provenance.emplace_back("command", "phasor run out/" + record.id + ".json");
    record.provenance.emplace_back("data.test.32", "5742c0bb");
    record.message = "";
  }
  for (results::ManifestTrial& trial : sweep.manifest.trials) trial.id = uuid5(trial.id);
  const auto began = std::chrono::steady_clock::now();
  const std::string page = report_page(make_report(sweep.manifest, sweep.folder, {.folder = "out", .log = [](const auto& trial, bool) { return TrialLog{"logs/" + trial.id.substr(0, 8) + ".log", ""}; }}), false);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  RecordProperty("seconds", std::to_string(seconds));
  RecordProperty("bytes", std::to_string(page.size()));
  std::printf("%.1f s, %.1f MB\n", seconds, static_cast<double>(page.size()) / 1e6);
  EXPECT_LT(page.size(), 30'000'000U);
  EXPECT_LT(seconds, 30.0);
}

}  // namespace
}  // namespace phasor::analysis
