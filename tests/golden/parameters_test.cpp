// A module whose parameters are not those of the file has to be refused, not compared in part.

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/golden/pass.h"

namespace phasor::golden {
namespace {

/// A trained matrix and a frozen table.
GoldenFile two_parameters() {
  GoldenFile file;
  file.name = file.unit = "two";
  file.params["layers.0.attn.rotary.proj.weight"] = {{2, 3}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}};
  file.params["temperature"] = {{2}, {1.0, 0.5}};
  file.grads["layers.0.attn.rotary.proj.weight"] = {{2, 3}, std::vector<double>(6)};
  file.cotangents["y"] = {{1}, {1.0}};
  return file;
}

std::string problem_with(Shape weight, bool weight_frozen, bool table_frozen, const std::string& extra = "") {
  ParameterStore store;
  const ParameterScope scope(store, "", 0.02);
  if (weight.size() > 0) scope.add("layers.0.encoding.proj.weight", weight, Init::zeros(), weight_frozen);
  scope.add("temperature", {2}, Init::table({1.0, 0.5}), table_frozen);
  if (!extra.empty()) scope.add(extra, {1}, Init::zeros());
  try {
    fill_parameters(store, two_parameters(), Stream{Dtype::f64});
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(GoldenParameters, AreThoseOfTheFile) {
  EXPECT_EQ(problem_with({2, 3}, false, true), "");
  EXPECT_NE(problem_with({3, 2}, false, true).find("encoding.proj.weight is [3, 2]"), std::string::npos);
  EXPECT_NE(problem_with({2, 3}, true, true).find("is frozen, in the file trained"), std::string::npos);
  EXPECT_NE(problem_with({2, 3}, false, false).find("is trained, in the file frozen"), std::string::npos);
  EXPECT_NE(problem_with({2, 3}, false, true, "gain").find("gain is not in the file"), std::string::npos);
  EXPECT_NE(problem_with({0, 3}, false, true).find("attn.rotary.proj.weight of the file is not ours"),
            std::string::npos);
}

TEST(GoldenParameters, FrozenTablesStartAsInTheFile) {
  for (const double second : {0.5, 0.5 + 1e-9}) {
    ParameterStore store;
    const ParameterScope scope(store, "", 0.02);
    scope.add("layers.0.encoding.proj.weight", {2, 3}, Init::zeros());
    scope.add("temperature", {2}, Init::table({1.0, second}), true);
    const GoldenFile file = two_parameters();
    fill_parameters(store, file, Stream{Dtype::f64});
    if (second == 0.5) {
      check_frozen_start(store, file);
      EXPECT_EQ(read(Stream{}, store.value(store.entries()[0])).values, file.params.begin()->second.values);
    } else {
      EXPECT_THROW(check_frozen_start(store, file), UserError);
    }
  }
}

}  // namespace
}  // namespace phasor::golden
