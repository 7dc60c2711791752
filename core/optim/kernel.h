#pragma once

#include <cstdint>

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor {

struct SumSquares {
  View values;
  std::int64_t count;
  double* sum;  // added to, in double, in a fixed order
};

/// What changes from one update to the next. It lies where the parameters do, not in the arguments: a captured step keeps those.
struct UpdateNumbers {
  double grad_norm, clip;  // what ClipFactor finds; the factor of the gradient
  double keep, rate, root; // AdamW: 1 - lr weight_decay; lr / (1 - beta1^t); 1 / sqrt(1 - beta2^t). SGD: -; lr; -
};

/// The norm from the sums of squares of pieces, added in their order, and the factor min(1, limit / (norm + 1e-6)).
struct ClipFactor {
  const double* squares;
  std::int64_t count;
  double limit;  // 0: no clipping
  UpdateNumbers* numbers;
};

/// One run of neighbouring parameters that share the decay.
struct AdamWUpdate {
  View parameter, gradient, first, second;
  std::int64_t begin, count;
  const UpdateNumbers* numbers;
  bool decays;  // else `keep` is 1
  double beta1, beta2, eps;
};

struct SgdUpdate {
  View parameter, gradient, moment;  // moment is absent without momentum
  std::int64_t begin, count;
  const UpdateNumbers* numbers;
  double decay, momentum;
  bool nesterov;
};

/// To the nearest number with the 8 bits of mantissa of bfloat16, in place; the range is that of the type.
struct RoundBf16 {
  View values;
  std::int64_t begin, count;
};

extern const Kernel<SumSquares> sum_squares;
extern const Kernel<ClipFactor> clip_factor;
extern const Kernel<AdamWUpdate> adamw_update;
extern const Kernel<SgdUpdate> sgd_update;
extern const Kernel<RoundBf16> round_bf16;

}  // namespace phasor
