#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sweeps/expand.h"
#include "tests/sweeps/scratch.h"

namespace phasor::sweeps {
namespace {

std::string random_axis(const std::string& draw, int count = 5, int seed = 7) {
  return R"({"name": "search", "role": "select", "random": {"count": )" + std::to_string(count) + R"(, "seed": )" + std::to_string(seed) +
         R"(, "draw": )" + draw + "}}";
}
const std::string lr = R"("optimizer.lr": {"log_uniform": [1e-4, 1e-1]})";
const std::string decay = R"("optimizer.weight_decay": {"uniform": [0, 0.1]})";
const std::string dim = R"("model.dim": {"choice": [8, 16, 32]})";

class Random : public Scratch {
 protected:
  Expansion expand(const std::string& axes) const {
    write("base.json", base_text);
    return load_sweep(write("sweep.json", sweep_text(axes)), {}, plugins()).expansion;
  }
  std::string mistakes(const std::string& axes) const {
    return error_of([&] { expand(axes); });
  }
};

void expect_words(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "expected: " << words << "\nfound: " << text;
}

// The numbers come from another program of Philox and these rules; they are the same on every machine, for ever.
TEST_F(Random, DrawsAreKnownNumbers) {
  const Expansion made = expand(random_axis("{" + lr + ", " + decay + ", " + dim + "}"));
  const results::ManifestAxis& axis = made.manifest.axes[0];
  EXPECT_EQ(axis.path, "");
  EXPECT_EQ(axis.labels, (std::vector<std::string>{"lr 0.0001271, weight_decay 0.05281, dim 16", "lr 0.00344, weight_decay 0.02306, dim 32",
                                                   "lr 0.003482, weight_decay 0.08314, dim 32", "lr 0.0004666, weight_decay 0.07115, dim 16",
                                                   "lr 0.005273, weight_decay 0.01294, dim 32"}));
  ASSERT_EQ(axis.values.size(), 5u);
  EXPECT_EQ(axis.values[1].canonical(), R"({"model.dim":32,"optimizer.lr":0.00344,"optimizer.weight_decay":0.02306})");
  EXPECT_EQ(*made.trials[1].spec.at_path("optimizer.lr"), Json(0.00344));
  EXPECT_EQ(*made.trials[1].spec.at_path("model.dim"), Json(32));
  EXPECT_EQ(made.manifest.varied, (std::vector<std::string>{"model.dim", "optimizer.lr", "optimizer.weight_decay"}));
}

TEST_F(Random, OnePathIsAnAxisOfValues) {
  const results::ManifestAxis axis = expand(random_axis("{" + lr + "}", 3)).manifest.axes[0];
  EXPECT_EQ(axis.path, "optimizer.lr");
  EXPECT_EQ(axis.labels, (std::vector<std::string>{"0.0001271", "0.00344", "0.003482"}));  // whatever else is drawn
  EXPECT_EQ(axis.values[2], Json(0.003482));
}

TEST_F(Random, AHigherCountAddsPoints) {
  const Expansion few = expand(random_axis("{" + lr + ", " + dim + "}", 4)), many = expand(random_axis("{" + lr + ", " + dim + "}", 9));
  for (std::size_t i = 0; i < few.trials.size(); ++i) EXPECT_EQ(few.trials[i].id, many.trials[i].id);
  EXPECT_EQ(many.trials.size(), 9u);
  EXPECT_NE(expand(random_axis("{" + lr + "}", 1, 8)).trials[0].id, expand(random_axis("{" + lr + "}", 1, 7)).trials[0].id);
}

TEST_F(Random, DrawsFillTheirRange) {
  const Expansion made = expand(random_axis("{" + lr + "}", 400));
  std::set<std::string> labels(made.manifest.axes[0].labels.begin(), made.manifest.axes[0].labels.end());
  EXPECT_EQ(labels.size(), 400u);  // each point once
  double sum = 0.0, low = 1.0, high = 0.0;
  for (const Json& value : made.manifest.axes[0].values) {
    const double x = value.as_number();
    sum += std::log10(x);
    low = std::min(low, x);
    high = std::max(high, x);
  }
  EXPECT_NEAR(sum / 400, -2.5, 0.13);  // three deviations of the mean: 3 / sqrt(12) / 20
  EXPECT_GE(low, 1e-4);
  EXPECT_LE(high, 1e-1);
  EXPECT_LT(low, 1.2e-4);
  EXPECT_GT(high, 0.08);
}

TEST_F(Random, ASmallSpaceIsDrawnWithoutRepetition) {
  const results::ManifestAxis axis = expand(random_axis("{" + dim + "}", 3)).manifest.axes[0];
  EXPECT_EQ(std::set<std::string>(axis.labels.begin(), axis.labels.end()), (std::set<std::string>{"8", "16", "32"}));
  expect_words(mistakes(random_axis("{" + dim + "}", 4)), "axes[0].random.count: found 4, but 3 different points were all that could be drawn");
}

TEST_F(Random, Mistakes) {
  for (const auto& [draw, words] : std::vector<std::pair<std::string, std::string>>{
           {R"({"optimizer.lr": {"log_uniform": [0, 1]}})", "axes[0].random.draw.optimizer.lr.log_uniform: found [0,1], expected numbers above 0"},
           {R"({"optimizer.lr": {"uniform": [2, 1]}})", "uniform: found [2,1], expected the lower number first"},
           {R"({"optimizer.lr": {"uniform": [1]}})", "expected the lowest and the highest number in a list"},
           {R"({"optimizer.lr": {"uniform": ["1", 2]}})", "expected the lowest and the highest number in a list"},
           {R"({"optimizer.lr": {"loguniform": [1, 2]}})", "unknown key \"loguniform\", did you mean \"log_uniform\"?"},
           {R"({"optimizer.lr": {"uniform": [1, 2], "choice": [3]}})", "expected one of \"log_uniform\", \"uniform\" or \"choice\""},
           {R"({"optimizer.lr": {"choice": []}})", "expected a list of values with at least one"},
           {R"({"optimizer.lrr": {"uniform": [1, 2]}})", "unknown key \"lrr\", did you mean \"lr\"?"},
           {R"({"run.threads": {"choice": [1, 2]}})", "found run.threads, which is outside a trial's identity"},
           {R"({"model.dim": {"uniform": [1, 2]}})", "expected an integer"},
           {"{}", "axes[0].random.draw: found no path"}}) {
    expect_words(mistakes(random_axis(draw, 2)), words);
  }
  expect_words(mistakes(random_axis("{" + lr + "}", 0)), "axes[0].random.count: found 0, expected an integer 1 to 10000");
  expect_words(mistakes(random_axis("{" + lr + "}", 1, -1)), "axes[0].random.seed: found -1");
  expect_words(mistakes(R"({"name": "a", "role": "row", "random": {"count": 1, "seed": 1, "draw": {)" + lr + "}}}"),
               "axes[0].role: found \"row\" with \"random\", expected \"select\"");
  expect_words(mistakes(R"({"name": "a", "role": "select", "values": [1], "path": "seed", "random": {}})"), "found both \"values\" and \"random\"");
}

}  // namespace
}  // namespace phasor::sweeps
