#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct PositiveFeaturesForward {
  View z, x, y;
  std::int64_t rows, heads, width, features;
};

struct PositiveFeaturesBackward {
  View x, y, dy;
  View dz, dx;  // absent when not wanted
  std::int64_t rows, heads, width, features;
  bool accumulate_z, accumulate_x;
};

struct FourierFeaturesForward {
  View z, y;
  std::int64_t rows, heads, features;
};

struct FourierFeaturesBackward {
  View y, dy, dz;
  std::int64_t rows, heads, features;
  bool accumulate;
};

/// Both passes: forward from x to y, backward from dy to dx.
struct CosineFeatures {
  View x, starts;  // starts i32 rows [batch] of [time]; absent: one document per row
  View y, dy, dx;
  std::int64_t batch, time, heads, width, max_length, offset;
  bool accumulate;
};

extern const Kernel<PositiveFeaturesForward> positive_features_forward;
extern const Kernel<PositiveFeaturesBackward> positive_features_backward;
extern const Kernel<FourierFeaturesForward> fourier_features_forward;
extern const Kernel<FourierFeaturesBackward> fourier_features_backward;
extern const Kernel<CosineFeatures> cosine_features_forward;
extern const Kernel<CosineFeatures> cosine_features_backward;

}  // namespace phasor::ops
