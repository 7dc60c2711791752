#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

enum class Unary : std::uint8_t { sigmoid, silu, exp, abs, softplus, relu, elu_plus_one, log_sigmoid, log_gate, scale, gelu };

struct UnaryForward {
  Unary op;
  View x, y;
  std::int64_t rows, width;
  double factor;  // of log_gate and scale
  double low;     // smallest result of log_gate
};

struct UnaryBackward {
  Unary op;
  View kept;  // the result of sigmoid, exp, relu and elu_plus_one, the operand of the others; of scale any readable row
  View dy, dx;
  std::int64_t rows, width;
  double factor;  // of log_gate and scale
  double low;     // below this operand log_gate is clamped
  bool accumulate;
};

struct Product {
  View a, b, y;
  std::int64_t rows, width;
  bool accumulate;
};

/// The shift has `parts` rows of `width` elements: its own axes, which need not be one contiguous row.
struct AddRowForward {
  View x, shift, y;
  std::int64_t rows, parts, width;
};

struct AddRowBackward {
  View dy, dshift;  // dshift is always accumulated
  std::int64_t rows, parts, width;
};

struct MulGroupsForward {
  View x, gate, y;
  std::int64_t rows, groups, width;
};

struct MulGroupsBackward {
  View x, gate, dy;
  View dx, dgate;  // absent when not wanted
  std::int64_t rows, groups, width;
  bool accumulate, accumulate_gate;
};

extern const Kernel<UnaryForward> unary_forward;
extern const Kernel<UnaryBackward> unary_backward;
extern const Kernel<Product> mul_forward, mul_backward;
extern const Kernel<AddRowForward> add_row_forward;
extern const Kernel<AddRowBackward> add_row_backward;
extern const Kernel<MulGroupsForward> mul_groups_forward;
extern const Kernel<MulGroupsBackward> mul_groups_backward;

}  // namespace phasor::ops
