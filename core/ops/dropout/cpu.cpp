#include <array>

#include "core/ops/dropout/kernel.h"

namespace phasor::ops {

namespace {

/// Element i of a row takes word i of the stream of that row (RandomStream::bits32).
template <class T>
void run(const Dropout& a) {
  const T factor = static_cast<T>(a.factor);
  for (std::int64_t b = 0; b < a.batch; ++b) {
    const std::uint64_t step = a.step_at != nullptr ? static_cast<std::uint64_t>(*a.step_at) : 0;
    const std::uint64_t stream = a.stream + (step << 24) + static_cast<std::uint64_t>(b);
    const auto low = static_cast<std::uint32_t>(stream), high = static_cast<std::uint32_t>(stream >> 32);
    std::uint64_t element = 0;
    PhiloxBlock words{};
    for (std::int64_t t = 0; t < a.time; ++t) {
      const T* x = row<T>(a.x, b * a.time + t);
      T* y = row<T>(a.y, b * a.time + t);
      for (std::int64_t i = 0; i < a.dim; ++i, ++element) {
        if (element % 4 == 0)
          words = philox(a.key, {static_cast<std::uint32_t>(element / 4), static_cast<std::uint32_t>(element >> 34), low, high});
        const T kept = words[element % 4] < a.threshold ? T(0) : factor * x[i];
        y[i] = a.accumulate ? y[i] + kept : kept;
      }
    }
  }
}

}  // namespace

const Kernel<Dropout> dropout_kernel{"dropout", run<float>, run<double>};

}  // namespace phasor::ops
