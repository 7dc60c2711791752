#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/ops/gla/kernel.h"
#include "core/ops/simd.h"
#include "core/ops/vector_math.h"

// The chunk of one head as blocks of `lanes` neighbouring channels, [block][step][lane], padded with zeros: a tile then
// reads contiguous memory, whatever the widths and the strides of the inputs are.

namespace phasor::ops::blocks {

using simd::lanes;

/// Steps begin .. begin+count-1 of one head: rows first .. of a tensor, columns from `column`.
struct Part {
  std::int64_t first, count, column, width;
};

/// A chunk of one query head; `begin` is its first step.
struct Place {
  std::int64_t batch, query_head, begin;

  /// To the chunk that comes after this one when chunks are taken in steps of `step`, forwards or backwards in time,
  /// head after head and row after row; false: there is none.
  bool advance(const GlaSizes& s, std::int64_t step) {
    begin += step;
    if (begin >= 0 && begin < s.time) return true;
    begin = step > 0 ? 0 : (s.chunks() - 1) * s.chunk;
    if (++query_head < s.heads * s.group) return true;
    query_head = 0;
    return ++batch < s.batch;
  }
};

/// What a chunk reads and writes.
struct Parts {
  Part keys, queries, values, outs;

  Parts(const GlaSizes& s, const Place& at) {
    const std::int64_t first = at.batch * s.time + at.begin, count = std::min(s.chunk, s.time - at.begin);
    const std::int64_t head = at.query_head / s.group;
    keys = {first, count, head * s.key_width, s.key_width};
    queries = {first, count, at.query_head * s.key_width, s.key_width};
    values = {first, count, head * s.value_width, s.value_width};
    outs = {first, count, at.query_head * s.value_width, s.value_width};
  }
};

/// Memory that the next chunk will read, asked for a little at a time while the tiles of this one compute. The
/// processor does not foresee it: a row of a narrow head is one or two cache lines, and the next row is far away.
class Ahead {
 public:
  template <class T>
  void rows(const View& view, const Part& part) {
    if (view.data == nullptr) return;
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    add(row<T>(view, part.first) + part.column, view.stride * size, part.count, part.width * size);
  }
  template <class T>
  void elements(const T* from, std::int64_t count) {
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    add(from, line, (bytes + line - 1) / line, line);
  }

  /// Everything shall be asked for within so many calls of `some`.
  void spread(std::int64_t calls) { share_ = (rows_ + calls - 1) / calls; }
  void some() {
    for (std::int64_t left = share_; left > 0 && at_ < used_; --left) {
      Run& run = runs_[at_];
      for (std::int64_t i = 0; i < run.bytes; i += line) __builtin_prefetch(run.data + i);
      run.data += run.stride;
      if (--run.rows == 0) ++at_;
    }
  }

 private:
  static constexpr std::int64_t line = 64;
  struct Run {
    const char* data;
    std::int64_t stride, rows, bytes;  // of a row
  };
  void add(const void* data, std::int64_t stride, std::int64_t rows, std::int64_t bytes) {
    runs_[used_++] = {static_cast<const char*>(data), stride, rows, bytes};
    rows_ += rows;
  }

  Run runs_[6];  // as many as the backward pass reads
  std::size_t used_ = 0, at_ = 0;
  std::int64_t rows_ = 0, share_ = 0;
};

/// Rows into blocks: to[block][step][lane] = f(x), and zeros beyond the width.
template <class T, class F>
void pack(const View& from, const Part& part, std::int64_t block, T* to, F f) {
  constexpr std::int64_t n = lanes<T>;
  const T* begin = row<T>(from, part.first) + part.column;
  for (std::int64_t column = 0; column < gla_padded(part.width); column += n, to += block) {
    const std::int64_t count = std::clamp<std::int64_t>(part.width - column, 0, n);
    const T* x = begin + column;
    T* out = to;
    if (count == n) {
      for (std::int64_t t = 0; t < part.count; ++t, x += from.stride, out += n) {
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
      }
    } else {
      for (std::int64_t t = 0; t < part.count; ++t, x += from.stride, out += n)
        for (std::int64_t i = 0; i < n; ++i) out[i] = i < count ? f(x[i]) : T(0);
    }
  }
}

/// The way back: factor * blocks into rows, written or added.
template <class T, bool add>
void unpack(const T* from, std::int64_t block, T factor, const View& to, const Part& part) {
  constexpr std::int64_t n = lanes<T>;
  T* begin = row<T>(to, part.first) + part.column;
  for (std::int64_t column = 0; column < part.width; column += n, from += block) {
    const std::int64_t count = std::min(n, part.width - column);
    const T* x = from;
    T* out = begin + column;
    if (count == n) {
      for (std::int64_t t = 0; t < part.count; ++t, x += n, out += to.stride) {
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) out[i] = add ? out[i] + factor * x[i] : factor * x[i];
      }
    } else {
      for (std::int64_t t = 0; t < part.count; ++t, x += n, out += to.stride)
        for (std::int64_t i = 0; i < count; ++i) out[i] = add ? out[i] + factor * x[i] : factor * x[i];
    }
  }
}

template <class T>
void unpack(const T* from, std::int64_t block, T factor, const View& to, const Part& part, bool add) {
  if (to.data == nullptr) return;
  add ? unpack<T, true>(from, block, factor, to, part) : unpack<T, false>(from, block, factor, to, part);
}

// Callables with types of their own, so that pack is compiled for each.
constexpr auto same = [](auto x) { return x; };
constexpr auto decay = [](auto x) { return math::exp(x); };

}  // namespace phasor::ops::blocks
