#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "core/graph/tape.h"

// What an op room says about itself for the conformance tests (tests/conformance/ops_test.cpp). Only tests include this.

namespace phasor::ops {

/// Plain numbers with a shape: what references work on.
struct Array {
  Shape shape;
  std::vector<double> values;
};

struct CaseInput {
  std::string name;
  Shape shape;
  double low = -1.0, high = 1.0;   // values are uniform in [low, high)
  std::int64_t indices = 0;        // > 0: integers 0 .. indices-1 instead (i32, no gradient); see also `ignored`
  bool ignored = false;            // some of the indices are -1 (not scored)
  bool differentiable = true;
  bool always_f64 = false;         // carried phases, which are f64 in both precisions
};

/// One op at one set of options and shapes. The harness checks, in both precisions, with dense and with strided inputs,
/// on memory filled with NaN: the forward pass against `reference`, the pullback against central differences of
/// `reference`, gradients added to what is already there, and the same bits twice.
struct OpCase {
  std::string name;
  std::vector<CaseInput> inputs;
  std::function<std::vector<Tensor>(Tape&, std::span<const Tensor>)> run;
  /// The formula written down plainly, in double, without sharing code with the kernel.
  std::function<std::vector<Array>(std::span<const Array>)> reference;
  double tolerance = 2e-5;      // f32, relative to the largest value of the tensor
  double step = 1e-4;           // of the differences
  std::function<void(std::vector<Array>&)> prepare;  // optional: adjusts the random inputs (e.g. away from a kink)
};

/// Starts of packed rows for cases (SequenceContext::starts): documents of 1, 2, 4, 8, 16, 1, .. tokens, in row b from the
/// b-th length on. In odd rows the first one began b tokens before the piece.
inline CaseInput packed_starts(std::int64_t batch, std::int64_t time) {
  return {"starts", {batch, time}, 0.0, 0.0, 1};
}
inline void prepare_starts(Array& starts) {
  const std::int64_t batch = starts.shape[0], time = starts.shape[1];
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t first = b % 2 == 0 ? 0 : -b, next = std::int64_t{1} << b % 5;
    for (std::int64_t t = 0, document = b; t < time; ++t) {
      if (t == next) {
        first = t;
        next += std::int64_t{1} << ++document % 5;
      }
      starts.values[static_cast<std::size_t>(b * time + t)] = static_cast<double>(first);
    }
  }
}
/// The first time of the document of (b, t), for references; far before the piece when there are no starts.
inline std::int64_t document_start(const Array* starts, std::int64_t b, std::int64_t t) {
  if (starts == nullptr || starts->shape[1] == 0) return -(std::int64_t{1} << 40);
  return static_cast<std::int64_t>(starts->values[static_cast<std::size_t>(b * starts->shape[1] + t)]);
}

inline void PrintTo(const OpCase& op, std::ostream* out) { *out << op.name; }

}  // namespace phasor::ops
