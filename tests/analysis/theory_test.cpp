#include "analysis/theory/theory.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <set>

namespace phasor::analysis::theory {
namespace {

TEST(Theory, EveryStatementHolds) {
  std::set<std::string> statements;
  for (const Check& check : all_checks()) {
    EXPECT_TRUE(check.holds()) << check.statement << ": " << check.quantity << ": " << check.found << ", expected "
                               << check.expected << " +- " << check.tolerance;
    statements.insert(check.statement);
  }
  EXPECT_EQ(statements.size(), 12u);
}

TEST(Theory, ACheckCanFail) {
  EXPECT_TRUE((Check{"", "", 1.0, 1.1, 0.11}).holds());
  EXPECT_FALSE((Check{"", "", 1.0, 1.1, 0.09}).holds());
  EXPECT_FALSE((Check{"", "", 1.0, std::numeric_limits<double>::quiet_NaN(), 1.0}).holds());
}

TEST(Theory, TolerancesAreThoseOfTheKnownDigits) {
  for (const Check& check : all_checks()) {
    if (check.expected == 0.0) {
      EXPECT_LE(check.tolerance, 1e-11) << check.quantity;
    } else {
      EXPECT_LE(check.tolerance, 0.08 * std::fabs(check.expected)) << check.quantity;  // two digits at least
    }
  }
}

TEST(Theory, ASpectrumHoldsAllEnergyAndPeaksAtTheSine) {
  const Spectrum s = spectrum(window(Window::hann, 200), 10.0, 100.0);
  double sum = 0.0;
  std::size_t peak = 0;
  for (std::size_t k = 0; k < s.energy.size(); ++k) {
    sum += s.energy[k];
    if (s.energy[k] > s.energy[peak]) peak = k;
  }
  EXPECT_NEAR(sum, 1.0, 1e-12);
  EXPECT_DOUBLE_EQ(s.frequency[peak], 10.0);
  EXPECT_NEAR(s.energy[peak], 2.0 / 3.0, 1e-9);  // Hann: amplitudes 1/4, 1/2, 1/4
}

}  // namespace
}  // namespace phasor::analysis::theory
