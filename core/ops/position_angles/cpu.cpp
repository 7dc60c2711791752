#include "core/ops/position_angles/kernel.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const PositionAngles& a) {
  const double* frequency = static_cast<const double*>(a.frequencies.data);
  for (std::int64_t b = 0; b < a.rows; ++b) {
    const std::int32_t* starts = a.starts.data != nullptr ? row<std::int32_t>(a.starts, b) : nullptr;
    for (std::int64_t t = 0; t < a.time; ++t) {
      const double position = static_cast<double>(a.offset + t - (starts != nullptr ? starts[t] : 0));
      T* angle = row<T>(a.angle, b * a.time + t);
#pragma omp simd
      for (std::int64_t i = 0; i < a.planes; ++i)
        angle[i] = static_cast<T>(math::reduce_angle(position * frequency[i]));
    }
  }
}

}  // namespace

const Kernel<PositionAngles> position_angles_forward{"position_angles", forward<float>, forward<double>};

}  // namespace phasor::ops
