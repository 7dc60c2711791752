#pragma once

#include "core/cuda/kernels.h"
#include "core/cuda/mma.h"
#include "core/cuda/sdpa.h"
#include "core/cuda/shares.h"
#include "core/ops/attention/kernel.h"

// Attention by a library (core/cuda/sdpa.h): copies of the operands in bf16 for it, and the way back. For cuda.cu.

namespace phasor::ops::attention_library {

/// Two neighbours a thread: rows of f32 to packed bf16.
__global__ inline void pack(View from, std::uint32_t* to, std::int64_t rows, std::int64_t pairs) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), pairs);
  if (r >= rows) return;
  const float* x = row<float>(from, r) + 2 * i;
  to[r * pairs + i] = cuda::bf16_pair(x[0], x[1]);
}

/// And back.
__global__ inline void unpack(const std::uint32_t* from, View to, std::int64_t rows, std::int64_t pairs, bool add) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), pairs);
  if (r >= rows) return;
  const std::uint32_t both = from[r * pairs + i];
  float* y = row<float>(to, r) + 2 * i;
  const float first = cuda::to_float(static_cast<cuda::Bf16>(both)),
              second = cuda::to_float(static_cast<cuda::Bf16>(both >> 16));
  y[0] = add ? y[0] + first : first;
  y[1] = add ? y[1] + second : second;
}

/// The copies in bf16 that a library's attention works on, one behind the other; widths are multiples of 8.
class Copies {
 public:
  Copies(const cuda::Queue& queue, const View& memory, const AttentionSizes& s)
      : queue_(queue), next_(row<std::uint32_t>(memory, 0)), s_(s) {
    PHASOR_CHECK(queue.sdpa != nullptr, "a device with a library for attention");
  }
  cuda::SdpaSizes sizes(double scale) const {
    return {s_.batch,       s_.time,   s_.keys,
            s_.heads,       s_.group,  s_.key_width,
            s_.value_width, s_.causal, static_cast<float>(scale)};
  }
  struct Copy {
    std::uint32_t* data;
    std::int64_t rows, pairs;
  };
  Copy of_queries(std::int64_t width) { return take(s_.batch * s_.time, s_.query_heads() * width); }
  Copy of_keys(std::int64_t width) { return take(s_.batch * s_.keys, s_.heads * width); }
  Copy filled(const Copy& copy, const View& from) const {
    cuda::start_each(queue_, copy.rows * copy.pairs, pack, from, copy.data, copy.rows, copy.pairs);
    return copy;
  }
  void bring(const Copy& copy, const View& to, bool add) const {
    if (to.data != nullptr)
      cuda::start_each(queue_, copy.rows * copy.pairs, unpack, copy.data, to, copy.rows, copy.pairs, add);
  }

 private:
  Copy take(std::int64_t rows, std::int64_t width) {
    const Copy copy{next_, rows, width / 2};
    next_ += rows * width / 2;
    return copy;
  }
  const cuda::Queue& queue_;
  std::uint32_t* next_;
  AttentionSizes s_;
};

inline void run(const cuda::Queue& queue, const AttentionForward& a) {
  const AttentionSizes& s = a.sizes;
  Copies copies(queue, a.copies, s);
  const auto q = copies.filled(copies.of_queries(s.key_width), a.q),
             k = copies.filled(copies.of_keys(s.key_width), a.k);
  const auto v = copies.filled(copies.of_keys(s.value_width), a.v), o = copies.of_queries(s.value_width);
  queue.sdpa->forward(queue, copies.sizes(a.scale),
                      {q.data, k.data, v.data, o.data, a.lse.data, nullptr, nullptr, nullptr, nullptr});
  copies.bring(o, a.o, false);
}

inline void run(const cuda::Queue& queue, const AttentionBackward& a) {
  const AttentionSizes& s = a.sizes;
  Copies copies(queue, a.copies, s);
  const auto q = copies.filled(copies.of_queries(s.key_width), a.q),
             k = copies.filled(copies.of_keys(s.key_width), a.k);
  const auto v = copies.filled(copies.of_keys(s.value_width), a.v),
             o = copies.filled(copies.of_queries(s.value_width), a.o);
  const auto d_o = copies.filled(copies.of_queries(s.value_width), a.d_o), dq = copies.of_queries(s.key_width);
  const auto dk = copies.of_keys(s.key_width), dv = copies.of_keys(s.value_width);
  queue.sdpa->backward(queue, copies.sizes(a.scale),
                       {q.data, k.data, v.data, o.data, a.lse.data, d_o.data, dq.data, dk.data, dv.data});
  copies.bring(dq, a.dq, a.add_q);
  copies.bring(dk, a.dk, a.add_k);
  copies.bring(dv, a.dv, a.add_v);
}

}  // namespace phasor::ops::attention_library
