#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct RotatePairsShape {
  std::int64_t batch, time, width, planes;  // width of a head
  bool interleaved;
  bool shared;   // by the heads: angle [time, planes], or [batch * time, planes]; otherwise [.., heads * planes]
  bool by_time;  // and by the batch: [time, planes]
};

/// Rows of angles whose trigonometry is done at once.
inline constexpr std::int64_t rotate_pairs_ahead = 8;

struct RotatePairsForward {
  RotatePairsShape shape;
  View q, k, angle;
  View rotated_q, rotated_k;
  View turns;  // scratch [2 * rotate_pairs_ahead, width of a row of angles]
  std::int64_t q_heads, k_heads;
};

/// Either side may be absent: no gradient arrived, or it comes in a launch of its own.
struct RotatePairsBackward {
  RotatePairsShape shape;
  View angle;
  View rotated_q, rotated_k;  // read for dangle only
  View drotated_q, drotated_k;
  View dq, dk;  // absent when not wanted
  View dangle;  // absent when not wanted
  View turns;   // scratch [2 * rotate_pairs_ahead, width of a row of angles]
  std::int64_t q_heads, k_heads;
  bool accumulate_q, accumulate_k, accumulate_angle;
};

extern const Kernel<RotatePairsForward> rotate_pairs_forward;
extern const Kernel<RotatePairsBackward> rotate_pairs_backward;

}  // namespace phasor::ops
