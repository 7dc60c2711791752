#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct CrossEntropyForward {
  View logits, targets, loss;
  View correct;  // i32, absent when not wanted
  View kept;     // [rows, 2]: maximum m and 1 / s, written for scored rows only; absent when nothing is recorded
  std::int64_t rows, vocabulary;
};

/// The softmax is recomputed from m and 1 / s. (Not from log s + m: rounded at |z| = 400, it would cost four digits.)
struct CrossEntropyBackward {
  View logits, targets, kept, dloss, dlogits;
  std::int64_t rows, vocabulary;
  bool accumulate;
};

extern const Kernel<CrossEntropyForward> cross_entropy_forward;
extern const Kernel<CrossEntropyBackward> cross_entropy_backward;

}  // namespace phasor::ops
