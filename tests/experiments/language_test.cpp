// Perplexity and what it is counted over: texts whose losses are known, documents that must not see each other.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <unistd.h>

#include "core/base/philox.h"
#include "experiments/trainer.h"
#include "experiments/trial.h"
#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

class Language : public testing::Test {
 protected:
  Language() : folder_(testing::TempDir() + "phasor_language_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Language() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }
  /// A small model; `task` and `more` are members of their objects.
  Json experiment(const std::string& task, const std::string& more = "{}") const {
    Document document = Document::parse(R"({
      "task": {"name": "language_modeling", )" + task + R"(},
      "model": {"dim": 16, "layers": 1, "init_std": 0.2, "mlp": {"width": 24},
                "backbone": {"name": "gla", "heads": 2, "expand_k": 1.0, "short_conv": 4},
                "encoding": {"name": "selective_rope", "projection": {"rank": 4}, "bias": true}},
      "optimizer": {"name": "adamw", "lr": 0.01}, "train": {"steps": 1, "batch": 4}})", "text");
    document.require_none();
    Document over = Document::parse(more, "patch");
    over.require_none();
    merge(document.value(), over.value());
    return document.value();
  }
  results::TrialRecord run(const Json& value) const {
    ExperimentSpec spec(shipped_plugins());
    read_spec(spec, value);
    return run_trial(spec, {});
  }

  std::string folder_;
};

double value_of(const results::TrialRecord& record, const std::string& metric, std::int64_t slice, const std::string& split = "test") {
  double value = std::numeric_limits<double>::quiet_NaN();
  for (const results::EvalPoint& point : record.evals)
    if (point.split == split && point.metric == metric && point.slice == slice) value = point.value;
  return value;
}

std::int64_t count_of(const results::TrialRecord& record, const std::string& metric, std::int64_t slice) {
  for (const results::EvalPoint& point : record.evals)
    if (point.split == "test" && point.metric == metric && point.slice == slice) return point.count;
  return -1;
}

std::string words(int count, int first = 0) {
  std::string text;
  for (int i = first; i < first + count; ++i) text += "word " + std::to_string(i * i) + ", ";
  return text;
}

TEST_F(Language, AModelThatKnowsNothingHasThePerplexityOfTheVocabulary) {
  // Zero weights give every token the same probability: by hand, 257 per token, and per byte 257^(tokens / bytes), where
  // the boundaries are tokens and no bytes.
  const std::string test = write("test", words(20) + "|" + words(3, 20)), text = write("text", words(100, 50));
  const results::TrialRecord record = run(experiment(
      R"("path": ")" + text + R"(", "separator": "|", "train": {"length": 32}, "test": {"path": ")" + test + R"(", "lengths": [32, 128]})",
      R"({"model": {"init_std": 0.0}, "optimizer": {"lr": 0.0}})"));
  ASSERT_EQ(record.status, results::Status::done) << record.message;
  const double bytes = static_cast<double>(words(20).size() + words(3, 20).size()), tokens = bytes + 2.0;
  for (const std::int64_t length : {32, 128}) {
    EXPECT_NEAR(value_of(record, "perplexity", length), 257.0, 1e-3);
    EXPECT_EQ(count_of(record, "perplexity", length), static_cast<std::int64_t>(tokens));
    EXPECT_EQ(count_of(record, "byte_perplexity", length), static_cast<std::int64_t>(bytes));
    EXPECT_NEAR(value_of(record, "byte_perplexity", length), std::pow(257.0, tokens / bytes), 1e-2);
    EXPECT_NEAR(value_of(record, "bits_per_byte", length), std::log2(257.0) * tokens / bytes, 1e-4);
  }
}

TEST_F(Language, AUnigramModelHasTheEntropyOfItsCounts) {
  // One document of two letters, a three times as often as b. Without a mixer and an MLP a model knows the last letter only,
  // which says nothing in this order; what can be learned are the shares. By hand: 4 / 3^(3/4) = 1.7548.
  std::string text;
  Draws draws(1, Purpose::statistics, 0);
  for (int i = 0; i < 3000; ++i) text += draws.below(4) == 0 ? 'b' : 'a';
  const double b = static_cast<double>(std::count(text.begin(), text.end(), 'b')) / 3000.0;
  const double unigram = std::exp(-b * std::log(b) - (1.0 - b) * std::log1p(-b));
  EXPECT_NEAR(unigram, 1.7548, 0.02);
  const results::TrialRecord record = run(experiment(
      R"("path": ")" + write("text", text) + R"(", "train": {"length": 50}, "valid": {"share": 0.1, "lengths": [50]}, "test": {"share": 0.3, "lengths": [50]})",
      R"({"model": {"backbone": {"name": "transformer", "heads": 1}, "encoding": {"name": "nope"}, "mlp": {"kind": "none"}, "dim": 8},
          "optimizer": {"lr": 0.02}, "train": {"steps": 120, "batch": 16}})"));
  ASSERT_EQ(record.status, results::Status::done) << record.message;
  EXPECT_NEAR(value_of(record, "perplexity", 50), unigram, 0.12);
  EXPECT_LT(value_of(record, "perplexity", 50), 1.9) << "far below the 257 of the start";
}

TEST_F(Language, RangesOfPositionsAreAllTokens) {
  const std::string test = write("test", words(40) + "|" + words(9, 40) + "|" + words(60, 50)), text = write("text", words(100, 150));
  const auto task = [&](const std::string& lengths) {
    return R"("path": ")" + text + R"(", "separator": "|", "train": {"length": 32}, "test": {"path": ")" + test + R"(", "positions": [1, 10, 64, 200], "lengths": )" + lengths + "}";
  };
  const results::TrialRecord record = run(experiment(task("[200, 32]")));
  ASSERT_EQ(record.status, results::Status::done) << record.message;
  double sum = 0.0;
  std::int64_t tokens = 0;
  for (const std::int64_t end : {1, 10, 64, 200}) {
    const double loss = value_of(record, "position_loss", end);
    EXPECT_NEAR(value_of(record, "position_perplexity", end), std::exp(loss), 1e-9);
    sum += loss * static_cast<double>(count_of(record, "position_loss", end));
    tokens += count_of(record, "position_loss", end);
  }
  EXPECT_EQ(tokens, count_of(record, "loss", 200));
  EXPECT_NEAR(sum / static_cast<double>(tokens), value_of(record, "loss", 200), 1e-9);
  EXPECT_EQ(tokens, count_of(record, "loss", 32)) << "every length scores the same tokens";
  // First positions: of three documents, and of the rows of 200 that begin within one.
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(test));
  EXPECT_EQ(count_of(record, "position_loss", 1), 3 + size / 200) << size;
  EXPECT_GT(value_of(record, "position_loss", 200), 0.0);
}

/// Losses of all tokens of a split by position, as the trainer sees them: one range per position of one row.
std::vector<double> losses(const Json& value) {
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, value);
  Trainer trainer(spec);
  std::vector<double> all;
  const EvaluationData whole = make_evaluation_data(trainer.task(), trainer.task().slices(Split::test).front(), 0);
  for (std::int64_t row = 0; row < whole.rows.count; ++row)
    for (std::int64_t t = 0; t < whole.rows.tokens; ++t) {
      EvaluationData one = whole;
      for (std::int64_t i = 0; i < whole.rows.count * whole.rows.tokens; ++i)
        if (i != row * whole.rows.tokens + t) one.rows.targets[static_cast<std::size_t>(i)] = -1;
      all.push_back(trainer.evaluate(one).loss);
    }
  return all;
}

TEST_F(Language, ADocumentDoesNotSeeAnother) {
  // Three documents in one row; the middle one is changed, byte by byte of equal length. Losses of the others keep their
  // bits, the boundaries' too; and without `separate` they do not, or the test could not fail.
  const std::string text = write("text", words(100, 50));
  const std::string one = "the first of them", middle = "a middle one", other = "XYZ something", last = "and what comes last";
  const auto experiment_of = [&](const std::string& backbone, const std::string& encoding, bool separate) {
    return experiment(R"("path": ")" + text + R"(", "separator": "|", "separate": )" + (separate ? "true" : "false") +
                          R"(, "train": {"length": 32}, "test": {"path": ")" + folder_ + R"(/test", "lengths": [64]})",
                      R"({"model": {"backbone": )" + backbone + R"(, "encoding": )" + encoding + "}}");
  };
  ASSERT_EQ(middle.size() + 1, other.size());
  const std::string changed = other.substr(1);
  for (const std::string backbone : {R"({"name": "gla", "heads": 2, "expand_k": 1.0, "short_conv": 4})", R"({"name": "transformer", "heads": 2})"})
    for (const std::string encoding : {R"({"name": "nope"})", R"({"name": "rope"})", R"({"name": "selective_rope", "projection": {"rank": 4}, "bias": true})"})
      for (const bool separate : {true, false}) {
        write("test", one + "|" + middle + "|" + last);
        const std::vector<double> before = losses(experiment_of(backbone, encoding, separate));
        write("test", one + "|" + changed + "|" + last);
        const std::vector<double> after = losses(experiment_of(backbone, encoding, separate));
        const std::size_t begin = one.size() + 1, end = begin + middle.size() + 1;  // targets of the middle one
        ASSERT_EQ(before.size(), 64U);
        std::size_t different = 0;
        for (std::size_t t = 0; t < end + last.size() + 1; ++t)
          if (t < begin || t >= end) different += before[t] != after[t] ? 1U : 0U;
        EXPECT_NE(std::vector<double>(before.begin() + static_cast<std::ptrdiff_t>(begin), before.begin() + static_cast<std::ptrdiff_t>(end)),
                  std::vector<double>(after.begin() + static_cast<std::ptrdiff_t>(begin), after.begin() + static_cast<std::ptrdiff_t>(end)));
        if (separate)
          EXPECT_EQ(different, 0U) << backbone << encoding;
        else
          EXPECT_GT(different, last.size() / 2) << backbone << encoding;
      }
}

TEST_F(Language, AChangedFileIsAnotherTrial) {
  const auto trial = [&](const std::string& text) {
    ExperimentSpec spec(shipped_plugins());
    read_spec(spec, experiment(R"("path": ")" + write("text", text) + "\""));
    return make_trial(spec);
  };
  const Trial before = trial(words(400)), same = trial(words(400)), after = trial(words(399) + "x");
  EXPECT_EQ(before.id, same.id);
  EXPECT_NE(before.id, after.id);
  // The stored experiment asks for the content that it was made with.
  ExperimentSpec spec(shipped_plugins());
  EXPECT_THROW(read_spec(spec, before.spec), UserError);
}

TEST_F(Language, OverlapAndDistinctPassagesAreStored) {
  const std::string shared = words(80);
  const results::TrialRecord record = run(experiment(R"("path": ")" + write("text", shared) + R"(", "train": {"length": 64}, "test": {"path": ")" +
                                                         write("test", shared.substr(100, 500)) + R"(", "lengths": [64]})",
                                                     R"({"train": {"steps": 40, "batch": 8}})"));
  std::map<std::string, double> summary(record.summary.begin(), record.summary.end());
  EXPECT_GT(summary["units.test.64"], 5.0);
  EXPECT_GT(summary["shared_rows.test.64"], 2.0);
  EXPECT_EQ(summary["distinct.test.64"], summary["units.test.64"]) << "no passage comes twice";
  EXPECT_LT(summary["shared_by_chance.test.64"], 1e-9);
}

}  // namespace
}  // namespace phasor
