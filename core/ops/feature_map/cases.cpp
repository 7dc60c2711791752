#include <cmath>
#include <numbers>

#include "core/ops/case.h"
#include "core/ops/feature_map/feature_map.h"

namespace phasor::ops {

namespace {

std::size_t place(std::int64_t at) { return static_cast<std::size_t>(at); }

OpCase positive(const std::string& name, Shape x, std::int64_t features, double size = 1.0) {
  OpCase op;
  op.name = "feature_map_positive_" + name;
  op.inputs = {{"z", x.with_row({x[2], features}), -2.0 * size, 2.0 * size}, {"x", x, -size, size}};
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{positive_features(tape, in[0], in[1])}; };
  op.reference = [=](std::span<const Array> in) {
    Array y = in[0];
    for (std::int64_t v = 0; v < x.rows() * x[2]; ++v) {
      double square = 0.0;
      for (std::int64_t i = 0; i < x[3]; ++i) square += std::pow(in[1].values[place(v * x[3] + i)], 2);
      for (std::int64_t j = 0; j < features; ++j) {
        double& value = y.values[place(v * features + j)];
        value = std::exp(value - square / 2.0) / std::sqrt(static_cast<double>(features));
      }
    }
    return std::vector{y};
  };
  return op;
}

OpCase fourier(const std::string& name, Shape z, double size = 4.0) {
  OpCase op;
  op.name = "feature_map_fourier_" + name;
  op.inputs = {{"z", z, -size, size}};
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{fourier_features(tape, in[0])}; };
  op.reference = [=](std::span<const Array> in) {
    Array y{z.with_row({z[2], 2 * z[3]}), {}};
    for (std::int64_t v = 0; v < z.rows() * z[2]; ++v)
      for (const bool sine : {true, false})
        for (std::int64_t j = 0; j < z[3]; ++j) {
          const double at = in[0].values[place(v * z[3] + j)];
          y.values.push_back((sine ? std::sin(at) : std::cos(at)) / std::sqrt(static_cast<double>(z[3])));
        }
    return std::vector{y};
  };
  return op;
}

OpCase cosine(const std::string& name, Shape x, std::int64_t max_length, std::int64_t offset, bool packed = false) {
  OpCase op;
  op.name = "feature_map_cosine_" + name;
  op.inputs = {{"x", x}};
  if (packed) op.inputs.push_back(packed_starts(x[0], x[1]));
  op.prepare = [=](std::vector<Array>& in) {
    for (double& value : in[0].values)  // away from the kink
      if (std::abs(value) < 0.01) value = value < 0.0 ? -0.125 : 0.125;
    if (packed) prepare_starts(in[1]);
  };
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    return std::vector{cosine_features(tape, in[0], max_length, offset, packed ? in[1] : Tensor())};
  };
  op.reference = [=](std::span<const Array> in) {
    Array y{x.with_row({x[2], 2 * x[3]}), {}};
    for (std::int64_t v = 0; v < x.rows() * x[2]; ++v) {
      const std::int64_t b = v / x[2] / x[1], t = v / x[2] % x[1];
      const std::int64_t position = packed ? t - document_start(&in[1], b, t) : offset + t;
      const double turn = std::numbers::pi * static_cast<double>(position) / (2.0 * static_cast<double>(max_length));
      for (const bool second : {false, true})
        for (std::int64_t i = 0; i < x[3]; ++i)
          y.values.push_back(std::max(in[0].values[place(v * x[3] + i)], 0.0) *
                             (second ? std::sin(turn) : std::cos(turn)));
    }
    return std::vector{y};
  };
  return op;
}

OpCase without_gradient_of(std::size_t input, OpCase op) {
  op.name += "_constant_" + op.inputs[input].name;
  op.inputs[input].differentiable = false;
  return op;
}

}  // namespace

std::vector<OpCase> feature_map_cases() {
  return {positive("no_rows", {0, 3, 2, 4}, 5),
          positive("one", {1, 1, 1, 1}, 1),
          positive("odd", {2, 7, 3, 5}, 65),
          positive("even", {1, 3, 2, 64}, 7, 0.5),
          without_gradient_of(0, positive("some", {2, 3, 2, 5}, 6)),
          without_gradient_of(1, positive("some", {2, 3, 2, 5}, 6)),
          fourier("no_rows", {0, 3, 2, 4}),
          fourier("one", {1, 1, 1, 1}),
          fourier("odd", {2, 7, 3, 65}),
          fourier("far", {1, 3, 2, 8}, 40.0),
          cosine("no_rows", {0, 3, 2, 4}, 5, 0),
          cosine("one", {1, 1, 1, 1}, 1, 0),
          cosine("odd", {2, 7, 3, 5}, 7, 0),
          cosine("offset", {1, 9, 2, 64}, 70, 40),
          cosine("packed", {3, 20, 2, 5}, 25, 0, true)};
}

}  // namespace phasor::ops
