#include "core/ops/attention/attention.h"

#include <algorithm>

#include "core/ops/attention/kernel.h"

namespace phasor::ops {

namespace {

AttentionSizes sizes_of(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                        const Tensor& log_decay, const Tensor& starts) {
  const Shape& keys = k.shape();
  const auto found = [&] { return "q " + q.shape().text() + ", k " + keys.text() + ", v " + v.shape().text(); };
  PHASOR_CHECK(q.shape().rank() == 4 && keys.rank() == 4 && v.shape().rank() == 4,
               "attention wants [batch, time, heads, width], not " + found());
  const std::int64_t batch = q.size(0), time = q.size(1), heads = keys[2];
  PHASOR_CHECK(heads > 0 && keys[3] > 0 && v.size(3) > 0, "attention wants heads with elements: " + found());
  PHASOR_CHECK(keys[0] == batch && keys[1] >= time && keys[3] == q.size(3) && q.size(2) > 0 && q.size(2) % heads == 0,
               "attention queries and keys do not fit: " + found());
  PHASOR_CHECK(v.shape() == Shape({batch, keys[1], heads, v.size(3)}), "attention values do not fit: " + found());
  PHASOR_CHECK(options.window >= 0, "attention window is negative");
  PHASOR_CHECK(!options.slopes || (options.slopes.shape() == Shape({q.size(2)}) && options.slopes.dtype() == Dtype::f64),
               "attention slopes " + options.slopes.shape().text() + " " + name_of(options.slopes.dtype()) + " for " + found());
  PHASOR_CHECK(!log_decay || log_decay.shape() == Shape({batch, keys[1], q.size(2)}),
               "attention log_decay " + log_decay.shape().text() + " for " + found());
  PHASOR_CHECK(!starts || (starts.shape() == Shape({batch, time}) && starts.dtype() == Dtype::i32),
               "attention starts " + starts.shape().text() + " " + name_of(starts.dtype()) + " for " + found());
  PHASOR_CHECK(options.causal || (!options.slopes && !log_decay && !starts),
               "attention with biases or packed rows is causal");
  return {batch, time, keys[1], heads, q.size(2) / heads, keys[3], v.size(3), options.window, options.causal};
}

/// Multiply-adds of one product of all scores with vectors of one element.
double pairs(const AttentionSizes& s) {
  const double time = static_cast<double>(s.time), past = static_cast<double>(s.past());
  double seen = s.causal ? time * past + 0.5 * time * (time + 1.0) : time * static_cast<double>(s.keys);
  if (s.window > 0) seen = std::min(seen, time * static_cast<double>(s.window));
  return seen * static_cast<double>(s.batch * s.query_heads());
}

/// What a library's attention can do, and is asked to.
bool by_library(const Stream& stream, const AttentionSizes& s, bool plain) {
  const auto fits = [](std::int64_t width) { return width % 8 == 0 && width <= 256; };
  return stream.library_attention && stream.device != nullptr && stream.dtype == Dtype::f32 &&
         stream.products == ProductPrecision::bf16 && plain && s.window == 0 && fits(s.key_width) && fits(s.value_width) &&
         (!s.causal || s.keys == s.time) && s.batch > 0 && s.time > 0;
}

/// Memory for `count` elements in bf16.
Tensor copies_of(Tape& tape, bool wanted, std::int64_t count) {
  return wanted ? tape.empty({count / 2}, Dtype::f32) : Tensor();
}

}  // namespace

Tensor attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                 const Tensor& log_decay, const Tensor& starts) {
  const AttentionSizes s = sizes_of(q, k, v, options, log_decay, starts);
  const Tensor o = tape.output({s.batch, s.time, s.query_heads(), s.value_width}, {&q, &k, &v, &log_decay});
  const Tensor lse = tape.empty({s.batch * s.query_heads(), s.time});
  const Tensor slopes = options.slopes;
  const bool biased = log_decay || slopes, library = by_library(tape.stream(), s, !biased && !starts);
  {
    const Tensor scratch = tape.empty({s.forward_scratch()});
    const Tensor curve = biased ? tape.empty({s.keys}, Dtype::f64) : Tensor();
    const Tensor copies = copies_of(tape, library, s.copies());
    launch(tape.stream(), attention_forward,
           {.q = q.view(),
            .k = k.view(),
            .v = v.view(),
            .log_decay = log_decay.view(),
            .slopes = slopes.view(),
            .starts = starts.view(),
            .o = o.view(),
            .lse = lse.view(),
            .scratch = scratch.view(),
            .curve = curve.view(),
            .copies = copies.view(),
            .sizes = s,
            .scale = options.scale,
            .precision = tape.stream().products},
           {2.0 * pairs(s) * static_cast<double>(s.key_width + s.value_width),
            moved(q, k, v, log_decay, slopes, starts, o, lse)});
  }
  if (!tape.wants(o)) return o;
  tape.record([=, scale = options.scale](Tape& t) {
    const Tensor d_o = t.take(o);
    if (!d_o) return;
    const auto dq = t.gradient(q), dk = t.gradient(k), dv = t.gradient(v), dlog_decay = t.gradient(log_decay);
    const Tensor scratch = t.empty({s.backward_scratch()});
    const Tensor curve = biased ? t.empty({2 * s.keys}, Dtype::f64) : Tensor();
    const Tensor copies = copies_of(t, library, 2 * s.copies());
    launch(t.stream(), attention_backward,
           {.q = q.view(),
            .k = k.view(),
            .v = v.view(),
            .log_decay = log_decay.view(),
            .slopes = slopes.view(),
            .starts = starts.view(),
            .o = o.view(),
            .lse = lse.view(),
            .d_o = d_o.view(),
            .scratch = scratch.view(),
            .curve = curve.view(),
            .copies = copies.view(),
            .dq = dq.tensor.view(),
            .dk = dk.tensor.view(),
            .dv = dv.tensor.view(),
            .dlog_decay = dlog_decay.tensor.view(),
            .add_q = dq.accumulate,
            .add_k = dk.accumulate,
            .add_v = dv.accumulate,
            .add_log_decay = dlog_decay.accumulate,
            .sizes = s,
            .scale = scale,
            .precision = t.stream().products},
           {2.0 * pairs(s) * static_cast<double>(3 * s.key_width + 2 * s.value_width),
            moved(q, k, v, log_decay, slopes, starts, o, lse, d_o, dq, dk, dv, dlog_decay)});
  });
  return o;
}

}  // namespace phasor::ops
