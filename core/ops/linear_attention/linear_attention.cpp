#include "core/ops/linear_attention/linear_attention.h"

#include "core/graph/place.h"
#include "core/ops/gla/gla.h"
#include "core/ops/linear_attention/kernel.h"

namespace phasor::ops {

namespace {

constexpr double eps = 1e-10;

/// A constant in every place.
Tensor filled(Tape& tape, const Shape& shape, double value) {
  const Tensor y = tape.empty(shape);
  launch(tape.stream(), spread_forward, {{}, {}, y.view(), y.rows(), 1, y.width(), value}, {0.0, moved(y)});
  return y;
}

/// The decay of a head in each of its key channels, as gla wants it: [batch, time, heads, key_width].
Tensor spread_decay(Tape& tape, const Tensor& log_decay, const Shape& keys) {
  if (!log_decay) return filled(tape, keys, 0.0);
  const std::int64_t rows = keys.rows(), heads = keys[2], width = keys[3];
  const bool fixed = log_decay.shape().rank() == 1;
  PHASOR_CHECK(fixed ? log_decay.size() == heads && log_decay.dtype() == Dtype::f64
                     : log_decay.shape() == Shape({keys[0], keys[1], heads}),
               "linear_attention decay " + log_decay.shape().text() + " for keys " + keys.text());
  if (fixed) {
    const Tensor y = tape.empty(keys);
    launch(tape.stream(), spread_forward, {{}, log_decay.view(), y.view(), rows, heads, width, 0.0}, {0.0, moved(y)});
    return y;
  }
  const Tensor y = tape.output(keys, {&log_decay});
  launch(tape.stream(), spread_forward, {log_decay.view(), {}, y.view(), rows, heads, width, 0.0},
         {0.0, moved(log_decay, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, log_decay = place_of(log_decay), y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dfrom = t.gradient(log_decay);
    launch(t.stream(), spread_backward, {dy.view(), dfrom.tensor.view(), rows, heads, width, dfrom.accumulate},
           {0.0, moved(dy, dfrom)});
  });
  return y;
}

/// x / (d + eps), x [batch, time, heads, width], d [batch, time, heads, 1].
Tensor quotient(Tape& tape, const Tensor& x, const Tensor& d) {
  const std::int64_t rows = x.rows(), heads = x.size(2), width = x.size(3);
  const Tensor y = tape.output(x.shape(), {&x, &d});
  launch(tape.stream(), quotient_forward, {x.view(), d.view(), y.view(), rows, heads, width, eps},
         {0.0, moved(x, d, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, x = place_of(x)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    const auto dd = t.gradient(d);
    // d comes from gla just before and goes nowhere else.
    PHASOR_CHECK(!dd.tensor || !dd.accumulate, "the sum of a normaliser has one use");
    const Tensor to = dd.tensor ? dd.tensor : t.empty(d.shape());
    launch(t.stream(), quotient_backward,
           {y.view(), d.view(), dy.view(), dx.tensor.view(), to.view(), rows, heads, width, eps, dx.accumulate},
           {0.0, moved(y, d, dy, dx, to)});
  });
  return y;
}

}  // namespace

LinearAttentionResult linear_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v,
                                       const Tensor& log_decay, double scale, bool normalise, const Tensor& state_in,
                                       const Tensor& sum_in, bool want_state, const Tensor& starts) {
  PHASOR_CHECK(k.shape().rank() == 4,
               "linear_attention wants keys [batch, time, heads, width], not " + k.shape().text());
  const Shape& keys = k.shape();
  const std::int64_t batch = keys[0], time = keys[1], heads = keys[2], width = keys[3];
  PHASOR_CHECK(!sum_in || (normalise && sum_in.shape() == Shape({batch, heads, width})),
               "linear_attention sum " + sum_in.shape().text() + " for keys " + keys.text());
  const Tensor log_gate = spread_decay(tape, log_decay, keys);
  const GlaResult weighted = gla(tape, q, k, v, log_gate, scale, state_in, want_state, 0, starts);
  if (!normalise) return {weighted.o, weighted.state, {}};
  const Tensor one = filled(tape, {batch, time, heads, 1}, 1.0);
  const GlaResult weights = gla(tape, q, k, one, log_gate, scale,
                                sum_in ? sum_in.reshape({batch, heads, width, 1}) : Tensor(), want_state, 0, starts);
  return {quotient(tape, weighted.o, weights.o), weighted.state,
          want_state ? weights.state.reshape({batch, heads, width}) : Tensor()};
}

}  // namespace phasor::ops
