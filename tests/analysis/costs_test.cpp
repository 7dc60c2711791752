// What rows cost beside what they score: measurements of `phasor bench --decode` in every form of a table.

#include "analysis/writers/cost_columns.h"

#include <gtest/gtest.h>

#include "tests/analysis/sweep.h"

namespace phasor::analysis {
namespace {

/// Two rows, two tasks, two rates, two seeds; the spec says which row and task a trial is of.
Sweep sample() {
  Sweep sweep({points("variant", "row", {"NoPE", "Selective"}), points("task", "column", {"S2", "A3"}),
               values("lr", "select", "optimizer.lr", {0.1, 0.2}), values("seed", "replicate", "seed", {0, 1})});
  for (const results::ManifestTrial& trial : sweep.manifest.trials) {
    auto& record = sweep.record(trial.at, 0.5, 0.5);
    record.spec.make_path("model.encoding") = trial.at[0];
    record.spec.make_path("task.group") = trial.at[1];
  }
  sweep.manifest.table["baseline"] = "NoPE";
  return sweep;
}

results::Costs costs_of_sample(const Sweep& sweep) {
  results::Costs costs;
  costs.facts = {{"commit", "abc"}, {"dirty", "0"}, {"processor", "P"}, {"device", "cpu"}, {"threads", "2"}, {"rounds", "10"}};
  for (const std::vector<std::int64_t>& at : std::vector<std::vector<std::int64_t>>{{0, 0, 1, 1}, {1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0}}) {
    results::MeasuredCost cost;
    for (const results::TrialRecord& record : sweep.folder.records)
      if (record.id == Sweep::id_of(at)) cost.key = results::cost_key(record.spec);
    cost.trial = Sweep::id_of(at);
    if (at[0] == 1 && at[1] == 1) {
      cost.problem = "there is nothing to continue";
    } else {
      const double factor = at[0] == 1 ? 1.5 : 1.0;
      cost.rows = 16;
      cost.tokens = 32 + 32 * at[1];
      cost.context = 24;
      cost.training_ms = results::Timing{4.0 * factor, 3.0, 6.0};
      cost.prefill_ms = results::Timing{1.0 * factor, 0.9, 1.1};
      cost.decode_ms = results::Timing{0.02 * factor, 0.01, 0.05};
      cost.state_bytes = 1000 + 500 * at[0];
      cost.training_bytes = 2000000;
      cost.decoding_bytes = 900000;
    }
    costs.entries.push_back(cost);
  }
  return costs;
}

const std::string head = "parameters_ratio,training_ms,training_ratio,prefill_ms,prefill_ratio,decode_ms,decode_low_ms,decode_high_ms,decode_ratio,"
                         "state_bytes,state_ratio,training_bytes,training_bytes_ratio,decoding_bytes,decoding_bytes_ratio";

TEST(Costs, StandInTheLongForm) {
  const Sweep sweep = sample();
  const results::Costs costs = costs_of_sample(sweep);
  const std::string text = render(sweep.table({.costs = &costs}), Format::csv, Form::longer);
  EXPECT_NE(text.find(",trials," + head + ",flags,"), std::string::npos) << text;
  const auto lines = read_csv(text);
  ASSERT_EQ(lines.size(), 4u);
  const auto& selective = lines[2];
  EXPECT_EQ(selective.at("variant") + selective.at("task"), "SelectiveS2");
  EXPECT_EQ(selective.at("training_ms"), "6.0000");
  EXPECT_EQ(selective.at("training_ratio"), "1.5000");
  EXPECT_EQ(selective.at("decode_ms"), "0.0300");
  EXPECT_EQ(selective.at("decode_low_ms"), "0.0100");
  EXPECT_EQ(selective.at("decode_high_ms"), "0.0500");
  EXPECT_EQ(selective.at("decode_ratio"), "1.5000");
  EXPECT_EQ(selective.at("state_bytes"), "1500");
  EXPECT_EQ(selective.at("state_ratio"), "1.5000");
  EXPECT_EQ(selective.at("training_bytes"), "2000000");
  EXPECT_EQ(selective.at("decoding_bytes_ratio"), "1.0000");
  EXPECT_EQ(selective.at("parameters_ratio"), "1.0000");
  EXPECT_EQ(lines[0].at("decode_ratio"), "1.0000");
}

TEST(Costs, WhatWasNotMeasuredIsMissingNeverZero) {
  const Sweep sweep = sample();
  const results::Costs costs = costs_of_sample(sweep);
  const auto lines = read_csv(render(sweep.table({.costs = &costs}), Format::csv, Form::longer));
  const auto none = read_csv(sweep.text(Format::csv, Form::longer));  // and without any measurement
  for (const auto& line : {lines[3], none[0]}) {
    for (const char* name : {"training_ms", "prefill_ms", "decode_ms", "decode_low_ms", "decode_ratio", "state_bytes", "training_bytes", "decoding_bytes"})
      EXPECT_EQ(line.at(name), "NA") << name;
    EXPECT_EQ(line.at("parameters_ratio"), "1.0000");
  }
  Sweep without = sample();
  without.manifest.table["baseline"] = nullptr;
  EXPECT_EQ(read_csv(without.text(Format::csv, Form::longer))[0].at("decode_ratio"), "");
}

TEST(Costs, StandInTheWideFormAndInJson) {
  const Sweep sweep = sample();
  const results::Costs costs = costs_of_sample(sweep);
  const Table table = sweep.table({.costs = &costs});
  const auto wide = read_csv(render(table, Format::csv, Form::wide));
  EXPECT_EQ(wide[1].at("S2.prefill_ms"), "1.5000");
  EXPECT_EQ(wide[1].at("S2.prefill_ratio"), "1.5000");
  EXPECT_EQ(wide[1].at("S2.parameters"), "1000");
  EXPECT_EQ(wide[1].at("A3.prefill_ms"), "NA");
  const Json json = parse_json(render(table, Format::json, Form::longer), "table");
  EXPECT_EQ(json.find("lines")->as_array()[2].find("decode_ms")->as_number(), 0.03);
  EXPECT_TRUE(json.find("lines")->as_array()[3].find("decode_ms")->is_null());
}

TEST(Costs, AreATableForPeopleWithMachineAndReasons) {
  const Sweep sweep = sample();
  const results::Costs costs = costs_of_sample(sweep);
  const Table table = sweep.table({.costs = &costs});
  const std::string text = render(table, Format::terminal, Form::wide);
  EXPECT_NE(text.find("\ncost of variant   parameters     training step              prefill                    one token                    state of a row  "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nSelective         1,000  1.00x   6.00 ms  1.50x  (1 of 2)   1.50 ms  1.50x  (1 of 2)   0.0300 ms  1.50x  (1 of 2)   1.50 kB  1.50x  (1 of 2)"), std::string::npos) << text;
  EXPECT_NE(text.find("(1 of 2)"), std::string::npos) << text;
  for (const char* words : {"medians of 10 rounds in turn on P, cpu, 2 threads, commit abc; times are of this machine and no part of a trial's bits; x: times that of NoPE",
                            "S2: step and prefill of 16 x 32 tokens, one token of 16 rows after 24", "A3: step and prefill of 16 x 64 tokens",
                            "Selective / A3: not measured: there is nothing to continue"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  EXPECT_EQ(text.find("another build"), std::string::npos);
  for (const Format format : {Format::markdown, Format::latex}) {
    const std::string other = render(table, format, Form::wide);
    EXPECT_NE(other.find("0.0300 ms  1.50x"), std::string::npos) << other;
    EXPECT_NE(other.find("commit abc"), std::string::npos) << other;
  }
  EXPECT_TRUE(cost_grid(sweep.table()).lines.empty());
}

TEST(Costs, SeveralColumnsAreARange) {
  const Sweep sweep = sample();
  results::Costs costs = costs_of_sample(sweep);
  for (results::MeasuredCost& cost : costs.entries) {
    if (cost.tokens != 64) continue;  // NoPE on A3
    cost.training_ms->median = 8.0;
    cost.decoding_bytes = 1500000;
  }
  const std::string text = render(sweep.table({.costs = &costs}), Format::markdown, Form::wide);
  EXPECT_NE(text.find("| 4.00 to 8.00 ms  1.00x |"), std::string::npos) << text;
  EXPECT_NE(text.find("| 900 kB to 1.50 MB  1.00x |"), std::string::npos) << text;
}

TEST(Costs, OfAnotherBuildSaySo) {
  const Sweep sweep = sample();
  results::Costs costs = costs_of_sample(sweep);
  costs.facts[0].second = "def";
  costs.facts[1].second = "yes";
  costs.facts[2].second = "Q";
  const std::string text = render(sweep.table({.costs = &costs}), Format::markdown, Form::wide);
  EXPECT_NE(text.find("the trials are of another build or machine (commit abc, without changes, processor P)"), std::string::npos) << text;
  EXPECT_NE(text.find("commit def with changes"), std::string::npos);
}

TEST(Costs, OfAnotherShapeAreNotTaken) {
  Sweep sweep = sample();
  const results::Costs costs = costs_of_sample(sweep);
  for (results::TrialRecord& record : sweep.folder.records) record.spec.make_path("model.dim") = 64;
  const Table table = sweep.table({.costs = &costs});
  EXPECT_EQ(read_csv(render(table, Format::csv, Form::longer))[0].at("decode_ms"), "NA");
  EXPECT_NE(render(table, Format::markdown, Form::wide).find("no measurement of this shape"), std::string::npos);
}

}  // namespace
}  // namespace phasor::analysis
