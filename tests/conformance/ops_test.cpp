#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/ops/case.h"
#include "core/ops/gemm.h"
#include "tests/conformance/all_cases.h"
#include "tests/conformance/check_case.h"

namespace phasor::ops {
namespace {

class Ops : public testing::TestWithParam<OpCase> {};

TEST_P(Ops, HoldsItsPromises) {
  use_one_thread_for_gemm();
  const std::vector<std::string> faults = check_case(GetParam());
  for (const std::string& fault : faults) ADD_FAILURE() << GetParam().name << ": " << fault;
}

INSTANTIATE_TEST_SUITE_P(All, Ops, testing::ValuesIn(all_cases()),
                         [](const testing::TestParamInfo<OpCase>& at) { return at.param.name; });

}  // namespace
}  // namespace phasor::ops
