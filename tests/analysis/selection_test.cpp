#include "analysis/selection/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace phasor::analysis {
namespace {

const Direction up = Direction::maximise;
const Direction down = Direction::minimise;
const double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Choose, TheBestInItsDirection) {
  const std::vector<Contestant> three = {{{1}, true, 0.5, {}}, {{2}, true, 0.7, {}}, {{3}, true, 0.6, {}}};
  EXPECT_EQ(choose(three, up, {}).chosen, 1u);
  EXPECT_EQ(choose(three, down, {}).chosen, 0u);
  EXPECT_EQ(choose(three, up, {}).tied, 1);
}

TEST(Choose, ARealZeroCanWin) {
  EXPECT_EQ(choose({{{1}, true, 0.5, {}}, {{2}, true, 0.0, {}}}, down, {}).chosen, 1u);
}

TEST(Choose, OneThatLacksAReplicateRanksBelowEveryWholeOne) {
  EXPECT_EQ(choose({{{1}, false, 0.99, {}}, {{2}, true, 0.1, {}}}, up, {}).chosen, 1u);
}

TEST(Choose, NothingIsChosenWhenNoneIsWhole) {
  EXPECT_FALSE(choose({{{1}, false, 0.99, {}}, {{2}, false, 0.1, {}}}, up, {}).chosen.has_value());
  EXPECT_FALSE(choose({}, up, {}).chosen.has_value());
  EXPECT_EQ(choose({{{1}, false, 0.99, {}}}, up, {}).tied, 0);
}

TEST(Choose, TiesGoToTheTieScoreThenTheLowestValue) {
  // Three tie on the score; the third has a lower loss than the first two.
  const std::vector<Contestant> losses = {
      {{1}, true, 0.9, {0.4}}, {{2}, true, 0.9, {0.4}}, {{3}, true, 0.9, {0.3}}, {{0}, true, 0.8, {0.1}}};
  EXPECT_EQ(choose(losses, up, {down}).chosen, 2u);
  EXPECT_EQ(choose(losses, up, {down}).tied, 3);
  EXPECT_EQ(choose(losses, up, {}).chosen, 0u);
  EXPECT_EQ(choose({{{2}, true, 0.9, {0.4}}, {{1}, true, 0.9, {0.4}}}, up, {down}).chosen, 1u);
  // Two select axes: the first counts first.
  EXPECT_EQ(choose({{{1, 9}, true, 1, {}}, {{2, 0}, true, 1, {}}, {{1, 8}, true, 1, {}}}, up, {}).chosen, 2u);
}

TEST(Choose, ScoresWithinRoundingAreEqual) {
  const double a = (0.99 + 0.10 + 0.20) / 3, b = (0.20 + 0.10 + 0.99) / 3 + 1e-16;
  EXPECT_EQ(choose({{{2}, true, std::max(a, b), {}}, {{1}, true, std::min(a, b), {}}}, up, {}).chosen, 1u);
  EXPECT_EQ(choose({{{2}, true, 0.5000001, {}}, {{1}, true, 0.5, {}}}, up, {}).chosen, 0u);
}

TEST(Choose, ATieScoreThatWasNotMeasuredLosesToOneThatWas) {
  EXPECT_EQ(choose({{{1}, true, 0.9, {nan}}, {{2}, true, 0.9, {0.4}}}, up, {down}).chosen, 1u);
  EXPECT_EQ(choose({{{1}, true, 0.9, {nan}}, {{2}, true, 0.9, {nan}}}, up, {down}).chosen, 0u);
}

TEST(Choose, TheOrderOfTheContestantsDoesNotMatter) {
  std::vector<Contestant> five = {{{1}, true, 0.9, {0.4}},
                                  {{2}, true, 0.9, {0.3}},
                                  {{3}, true, 0.9, {0.3}},
                                  {{4}, false, 1.0, {0.0}},
                                  {{5}, true, 0.1, {0.0}}};
  std::vector<std::size_t> order = {0, 1, 2, 3, 4};
  do {
    std::vector<Contestant> shuffled;
    for (const std::size_t i : order) shuffled.push_back(five[i]);
    EXPECT_EQ(shuffled[*choose(shuffled, up, {down}).chosen].order.front(), 2);
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace phasor::analysis
