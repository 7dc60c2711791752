#include "core/ops/dropout/dropout.h"

#include "core/base/hash.h"
#include "core/graph/place.h"
#include "core/ops/dropout/kernel.h"

namespace phasor::ops {

Tensor dropout(Tape& tape, const Tensor& x, double rate, const DropoutKey& key, std::string_view site) {
  PHASOR_CHECK(x.shape().rank() == 3, "dropout of " + x.shape().text() + ", expected [batch, time, dim]");
  PHASOR_CHECK(rate >= 0.0 && rate < 1.0, "dropout with rate " + std::to_string(rate));
  if (rate == 0.0) return x;
  const Purpose purpose{mix64(static_cast<std::uint64_t>(Purpose::dropout) ^ hash64(site))};
  const std::uint64_t stream = static_cast<std::uint64_t>(key.step) << 24 | static_cast<std::uint64_t>(key.first_row);
  const Tensor y = tape.output(x.shape(), {&x});
  Dropout args{x.view(), y.view(), x.size(0), x.size(1), x.size(2), philox_key(key.seed, purpose), stream, key.step_at,
               static_cast<std::uint32_t>(rate * 0x1p32), 1.0 / (1.0 - rate), false};
  launch(tape.stream(), dropout_kernel, args, {0.0, moved(x, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, x = place_of(x), y = place_of(y)](Tape& t) mutable {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    args.x = dy.view();
    args.y = dx.tensor.view();
    args.accumulate = dx.accumulate;
    launch(t.stream(), dropout_kernel, args, {0.0, moved(dy, dx)});
  });
  return y;
}

}  // namespace phasor::ops
