#include "core/ops/delta_rule/delta_rule.h"

#include <algorithm>

#include "core/graph/place.h"
#include "core/ops/delta_rule/kernel.h"

namespace phasor::ops {

namespace {

DeltaRuleSizes sizes_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& log_decay,
                        const Tensor& state_in, const Tensor& starts, std::int64_t chunk, bool tensor_cores) {
  const Shape& keys = k.shape();
  PHASOR_CHECK(q.shape().rank() == 4 && keys.rank() == 4 && v.shape().rank() == 4,
               "delta_rule wants [batch, time, heads, width], not q " + q.shape().text() + ", k " + keys.text() +
                   ", v " + v.shape().text());
  const std::int64_t batch = keys[0], time = keys[1], heads = keys[2], key_width = keys[3];
  const std::int64_t value_heads = v.size(2), value_width = v.size(3);
  PHASOR_CHECK(heads > 0 && key_width > 0 && value_width > 0, "delta_rule wants heads with elements: k " + keys.text());
  PHASOR_CHECK(q.shape() == keys, "delta_rule queries " + q.shape().text() + " for keys " + keys.text());
  PHASOR_CHECK(
      v.shape() == Shape({batch, time, value_heads, value_width}) && value_heads > 0 && value_heads % heads == 0,
      "delta_rule values " + v.shape().text() + " for keys " + keys.text());
  const Shape steps{batch, time, value_heads};
  PHASOR_CHECK(!beta || beta.shape() == steps,
               "delta_rule beta " + beta.shape().text() + " for values " + v.shape().text());
  PHASOR_CHECK(!log_decay || log_decay.shape() == steps,
               "delta_rule decays " + log_decay.shape().text() + " for values " + v.shape().text());
  PHASOR_CHECK(
      !state_in || state_in.shape() == Shape({batch, value_heads, key_width, value_width}),
      "delta_rule state " + state_in.shape().text() + " for keys " + keys.text() + ", values " + v.shape().text());
  PHASOR_CHECK(
      !starts || (starts.shape() == Shape({batch, time}) && starts.dtype() == Dtype::i32),
      "delta_rule starts " + starts.shape().text() + " " + name_of(starts.dtype()) + " for keys " + keys.text());
  PHASOR_CHECK(chunk >= 0, "delta_rule chunk is negative");
  if (tensor_cores) chunk = DeltaRuleChunks::steps;
  if (chunk == 0) chunk = std::max(key_width, value_width) <= 32 ? 16 : 32;  // docs/delta.md
  chunk = std::clamp<std::int64_t>(chunk, 1, std::max<std::int64_t>(time, 1));
  return {batch, time, heads, value_heads / heads, key_width, value_width, chunk};
}

/// Operations of all heads and tokens (an addition and a multiplication each): `states` products with a state, and
/// `pairs` products with a triangle of scores for keys and for values.
double work_of(const DeltaRuleSizes& s, double states, double pairs) {
  const auto key = static_cast<double>(s.key_width), value = static_cast<double>(s.value_width);
  return 2.0 * static_cast<double>(s.batch * s.time * s.value_heads()) *
         (states * key * value + pairs * 0.5 * static_cast<double>(s.chunk) * (key + value));
}

/// Whether a device takes the chunkwise form, which has chunks and memory of its own. Few steps (decoding) would be
/// padded to a whole chunk: they stay with the recurrence, in f32.
bool on_tensor_cores(const Stream& stream, std::int64_t time) {
  constexpr std::int64_t few = 16;
  return stream.device != nullptr && stream.dtype == Dtype::f32 && stream.products == ProductPrecision::bf16 &&
         time > few;
}

}  // namespace

DeltaRuleResult delta_rule(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta,
                           const Tensor& log_decay, double scale, const Tensor& state_in, bool want_state,
                           std::int64_t chunk, const Tensor& starts) {
  const bool tensor_cores = on_tensor_cores(tape.stream(), k.shape().rank() == 4 ? k.size(1) : 0);
  const DeltaRuleSizes s = sizes_of(q, k, v, beta, log_decay, state_in, starts, chunk, tensor_cores);
  const DeltaRuleChunks c(s);
  const std::int64_t rows = s.batch * s.value_heads();
  const Tensor o =
      tape.output({s.batch, s.time, s.value_heads(), s.value_width}, {&q, &k, &v, &beta, &log_decay, &state_in});
  Tensor state;
  if (want_state) {
    state = tape.output({s.batch, s.value_heads(), s.key_width, s.value_width}, {&k, &v, &beta, &log_decay, &state_in});
  }
  Tensor kept, errors;
  if (tape.wants(o)) {
    kept = tape.empty({rows, tensor_cores ? c.states() : s.chunks() * s.state()});
    errors = tape.empty({rows, tensor_cores ? c.vectors() : s.values(s.time)});
  }
  const Tensor scores = tensor_cores ? tape.empty({rows, c.scores()}) : Tensor();
  const Tensor scratch = tape.empty({s.forward_scratch()});
  launch(tape.stream(), delta_rule_forward,
         {.q = q.view(),
          .k = k.view(),
          .v = v.view(),
          .beta = beta.view(),
          .log_decay = log_decay.view(),
          .state_in = state_in.view(),
          .starts = starts.view(),
          .o = o.view(),
          .state_out = state.view(),
          .kept = kept.view(),
          .errors = errors.view(),
          .scratch = scratch.view(),
          .scores = scores.view(),
          .sizes = s,
          .scale = scale,
          .precision = tensor_cores ? ProductPrecision::bf16 : ProductPrecision::full},
         {work_of(s, 3.0, 2.0), moved(q, k, v, beta, log_decay, state_in, starts, o, state, kept, errors, scores)});
  if (!tape.wants(o)) return {o, state};
  tape.record([=, o = place_of(o), state = place_of(state)](Tape& t) {
    const Tensor d_o = t.take(o), d_state = t.take(state);
    if (!d_o && !d_state) return;
    const auto dq = t.gradient(q), dk = t.gradient(k), dv = t.gradient(v), db = t.gradient(beta),
               dg = t.gradient(log_decay);
    const auto d_in = t.gradient(state_in);
    const Tensor memory = t.empty({s.backward_scratch()});
    const bool device = t.stream().device != nullptr;
    const Tensor slopes = device ? t.empty({rows, tensor_cores ? c.slopes() : s.device_slopes()}) : Tensor();
    launch(t.stream(), delta_rule_backward,
           {.q = q.view(),
            .k = k.view(),
            .beta = beta.view(),
            .log_decay = log_decay.view(),
            .starts = starts.view(),
            .kept = kept.view(),
            .errors = errors.view(),
            .d_o = d_o.view(),
            .d_state = d_state.view(),
            .scratch = memory.view(),
            .slopes = slopes.view(),
            .scores = scores.view(),
            .dq = dq.tensor.view(),
            .dk = dk.tensor.view(),
            .dv = dv.tensor.view(),
            .dbeta = db.tensor.view(),
            .dlog_decay = dg.tensor.view(),
            .dstate_in = d_in.tensor.view(),
            .add_q = dq.accumulate,
            .add_k = dk.accumulate,
            .add_v = dv.accumulate,
            .add_beta = db.accumulate,
            .add_log_decay = dg.accumulate,
            .add_state = d_in.accumulate,
            .sizes = s,
            .scale = scale,
            .precision = tensor_cores ? ProductPrecision::bf16 : ProductPrecision::full},
           {work_of(s, 6.0, 5.0),
            moved(q, k, beta, log_decay, starts, kept, errors, scores, d_o, d_state, dq, dk, dv, db, dg, d_in)});
  });
  return {o, state};
}

}  // namespace phasor::ops
