#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor {

struct SumSquares {
  View values;
  std::int64_t count;
  double* sum;  // added to, in double, in a fixed order
};

/// One run of neighbouring parameters that share the decay.
struct AdamWUpdate {
  View parameter, gradient, first, second;
  std::int64_t begin, count;
  double clip, keep;                  // gradient factor; 1 - lr * weight_decay, or 1
  double beta1, beta2, eps;
  double rate, root;                  // lr / (1 - beta1^t); 1 / sqrt(1 - beta2^t)
};

struct SgdUpdate {
  View parameter, gradient, moment;  // moment is absent without momentum
  std::int64_t begin, count;
  double clip, decay, momentum, lr;
  bool nesterov;
};

/// To the nearest number with the 8 bits of mantissa of bfloat16, in place; the range is that of the type.
struct RoundBf16 {
  View values;
  std::int64_t begin, count;
};

extern const Kernel<SumSquares> sum_squares;
extern const Kernel<AdamWUpdate> adamw_update;
extern const Kernel<SgdUpdate> sgd_update;
extern const Kernel<RoundBf16> round_bf16;

}  // namespace phasor
