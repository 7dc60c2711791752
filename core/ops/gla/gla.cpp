#include "core/ops/gla/gla.h"

#include <algorithm>

#include "core/graph/place.h"
#include "core/ops/gla/kernel.h"

namespace phasor::ops {

namespace {

GlaSizes sizes_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& log_gate, const Tensor& state_in,
                  const Tensor& starts, std::int64_t chunk) {
  const Shape& keys = k.shape();
  PHASOR_CHECK(q.shape().rank() == 4 && keys.rank() == 4 && v.shape().rank() == 4,
               "gla wants [batch, time, heads, width], not q " + q.shape().text() + ", k " + keys.text() + ", v " +
                   v.shape().text());
  const std::int64_t batch = keys[0], time = keys[1], heads = keys[2], key_width = keys[3], value_width = v.size(-1);
  PHASOR_CHECK(heads > 0 && key_width > 0 && value_width > 0, "gla wants heads with elements: k " + keys.text());
  PHASOR_CHECK(q.shape() == Shape({batch, time, q.size(2), key_width}) && q.size(2) > 0 && q.size(2) % heads == 0,
               "gla queries " + q.shape().text() + " for keys " + keys.text());
  PHASOR_CHECK(v.shape() == Shape({batch, time, heads, value_width}),
               "gla values " + v.shape().text() + " for keys " + keys.text());
  PHASOR_CHECK(log_gate.shape() == keys, "gla gates " + log_gate.shape().text() + " for keys " + keys.text());
  PHASOR_CHECK(!state_in || state_in.shape() == Shape({batch, heads, key_width, value_width}),
               "gla state " + state_in.shape().text() + " for keys " + keys.text());
  PHASOR_CHECK(!starts || (starts.shape() == Shape({batch, time}) && starts.dtype() == Dtype::i32),
               "gla starts " + starts.shape().text() + " " + name_of(starts.dtype()) + " for keys " + keys.text());
  PHASOR_CHECK(chunk >= 0, "gla chunk is negative");
  if (chunk == 0) chunk = 32;  // the tiles of the backward pass stay in the L1 cache
  chunk = std::clamp<std::int64_t>(chunk, 1, std::max<std::int64_t>(time, 1));
  return {batch, time, heads, q.size(2) / heads, key_width, value_width, chunk};
}

}  // namespace

GlaResult gla(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& log_gate, double scale,
              const Tensor& state_in, bool want_state, std::int64_t chunk, const Tensor& starts) {
  GlaSizes s = sizes_of(q, k, v, log_gate, state_in, starts, chunk);
  const Stream& stream = tape.stream();
  const bool in_chunks = stream.device != nullptr && stream.dtype == Dtype::f32 && gla_in_chunks(stream.products, s);
  if (in_chunks) s.chunk = gla_chunk_steps;
  const double work = static_cast<double>(s.batch * s.time * s.heads * s.group * s.key_width * s.value_width);
  const Tensor o = tape.output({s.batch, s.time, s.heads * s.group, s.value_width}, {&q, &k, &v, &log_gate, &state_in});
  Tensor state;
  if (want_state) {
    state = tape.output({s.batch, s.heads, s.key_width, s.value_width}, {&k, &v, &log_gate, &state_in});
  }
  Tensor kept, decays;
  if (in_chunks) {
    kept = tape.empty({s.batch * s.heads, s.half_states()});
  } else if (tape.wants(o)) {
    kept = tape.empty({s.batch * s.heads, s.chunks() * s.state()});
    decays = tape.empty({s.batch * s.heads, s.chunks() * s.blocks(s.keys(), gla_lane / 2)});
  }
  const Tensor scratch = in_chunks ? Tensor() : tape.empty({s.forward_scratch()});
  launch(tape.stream(), gla_forward,
         {.q = q.view(),
          .k = k.view(),
          .v = v.view(),
          .log_gate = log_gate.view(),
          .state_in = state_in.view(),
          .starts = starts.view(),
          .o = o.view(),
          .state_out = state.view(),
          .kept = kept.view(),
          .decays = decays.view(),
          .scratch = scratch.view(),
          .sizes = s,
          .scale = scale,
          .precision = stream.products},
         {5.0 * work, moved(q, k, v, log_gate, state_in, starts, o, state, kept, decays)});
  if (!tape.wants(o)) return {o, state};
  const Tensor gates = in_chunks ? log_gate : Tensor();  // else the decays are kept
  tape.record([=, log_gate = place_of(log_gate), o = place_of(o), state = place_of(state)](Tape& t) {
    const Tensor d_o = t.take(o), d_state = t.take(state);
    if (!d_o && !d_state) return;
    const auto dq = t.gradient(q), dk = t.gradient(k), dv = t.gradient(v), dg = t.gradient(log_gate);
    const auto d_in = t.gradient(state_in);
    const Tensor memory = in_chunks ? Tensor() : t.empty({s.backward_scratch()});
    const Tensor slopes = in_chunks ? t.empty(kept.shape()) : Tensor();
    launch(t.stream(), gla_backward,
           {.q = q.view(),
            .k = k.view(),
            .v = v.view(),
            .starts = starts.view(),
            .kept = kept.view(),
            .decays = decays.view(),
            .log_gate = gates.view(),
            .d_o = d_o.view(),
            .d_state = d_state.view(),
            .scratch = memory.view(),
            .slopes = slopes.view(),
            .dq = dq.tensor.view(),
            .dk = dk.tensor.view(),
            .dv = dv.tensor.view(),
            .dlog_gate = dg.tensor.view(),
            .dstate_in = d_in.tensor.view(),
            .add_q = dq.accumulate,
            .add_k = dk.accumulate,
            .add_v = dv.accumulate,
            .add_log_gate = dg.accumulate,
            .add_state = d_in.accumulate,
            .sizes = s,
            .scale = scale,
            .precision = t.stream().products},
           {14.0 * work, moved(q, k, v, starts, kept, decays, gates, slopes, d_o, d_state, dq, dk, dv, dg, d_in)});
  });
  return {o, state};
}

}  // namespace phasor::ops
