#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct ShortConvShape {
  std::int64_t batch, time, channels, window;
  bool silu;
};

struct ShortConvForward {
  ShortConvShape shape;
  View x, weight, bias, state_in;  // bias and state_in may be absent
  View starts;                     // i32 rows [batch] of [time]; absent: one document per row
  View y, state_out;               // state_out may be absent
  View taps;                       // scratch [window + 1, channels]: weight transposed, then the bias
  View history;                    // scratch [window + 1, channels]: inputs before the first one, then a row of zeros
};

struct ShortConvBackward {
  ShortConvShape shape;
  View x, weight, bias, state_in, starts;
  View dy, dstate_out;  // dstate_out may be absent
  View dx, dstate_in;   // absent when not wanted
  View dweight, dbias;  // absent when not wanted; always accumulated
  View taps, history;   // as above
  View dtaps;           // scratch [window + 1, channels]
  View dz;              // scratch [window + 2, channels]: a ring of rows, a spare row, a row of zeros
  bool accumulate_dx, accumulate_dstate_in;
};

extern const Kernel<ShortConvForward> short_conv_forward;
extern const Kernel<ShortConvBackward> short_conv_backward;

}  // namespace phasor::ops
