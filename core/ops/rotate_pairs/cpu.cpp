#include <algorithm>

#include "core/ops/rotate_pairs/kernel.h"
#include "core/ops/prefetch.h"
#include "core/ops/rotation.h"

namespace phasor::ops {

namespace {

/// The rotation of one row: sines and cosines of all its angles.
template <class T>
struct Turn {
  const T *sin, *cos;
  std::int64_t head_step;  // 0 where the heads share them
};

/// Planes (2i, 2i + 1), otherwise as rotation::forward.
template <class T>
inline void rotate_neighbours(const T* sin, const T* cos, std::int64_t planes, const T* from, T* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < planes; ++i) {
    const T x = from[2 * i], y = from[2 * i + 1];
    to[2 * i] = x * cos[i] - y * sin[i];
    to[2 * i + 1] = x * sin[i] + y * cos[i];
  }
}

template <bool accumulate, class T>
inline void rotate_neighbours_back(const T* sin, const T* cos, std::int64_t planes, const T* from, T* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < planes; ++i) {
    const T x = from[2 * i], y = from[2 * i + 1];
    const T back_x = x * cos[i] + y * sin[i], back_y = y * cos[i] - x * sin[i];
    to[2 * i] = accumulate ? to[2 * i] + back_x : back_x;
    to[2 * i + 1] = accumulate ? to[2 * i + 1] + back_y : back_y;
  }
}

template <class T>
inline void add_slope_of_neighbours(const T* rotated, const T* drotated, std::int64_t planes, T* dangle) {
#pragma omp simd
  for (std::int64_t i = 0; i < planes; ++i)
    dangle[i] += drotated[2 * i + 1] * rotated[2 * i] - drotated[2 * i] * rotated[2 * i + 1];
}

/// One row of q or k, all heads; components that do not rotate pass through.
template <bool interleaved, class T>
void rotate_row(const RotatePairsShape& s, const Turn<T>& turn, std::int64_t heads, const T* from, T* to) {
  for (std::int64_t h = 0; h < heads; ++h, from += s.width, to += s.width) {
    const T* sin = turn.sin + h * turn.head_step;
    const T* cos = turn.cos + h * turn.head_step;
    if constexpr (interleaved)
      rotate_neighbours(sin, cos, s.planes, from, to);
    else
      rotation::forward(sin, cos, s.planes, from, to);
    for (std::int64_t i = 2 * s.planes; i < s.width; ++i) to[i] = from[i];
  }
}

template <bool interleaved, bool accumulate, class T>
void rotate_row_back(const RotatePairsShape& s, const Turn<T>& turn, std::int64_t heads, const T* from, T* to) {
  for (std::int64_t h = 0; h < heads; ++h, from += s.width, to += s.width) {
    const T* sin = turn.sin + h * turn.head_step;
    const T* cos = turn.cos + h * turn.head_step;
    if constexpr (interleaved)
      rotate_neighbours_back<accumulate>(sin, cos, s.planes, from, to);
    else
      rotation::backward<accumulate>(sin, cos, s.planes, from, to);
    for (std::int64_t i = 2 * s.planes; i < s.width; ++i) to[i] = accumulate ? to[i] + from[i] : from[i];
  }
}

/// Calls body(turn, row) for every row. The trigonometry of a few rows is done ahead, and angles that the batch shares
/// are then used by all of its rows.
template <class T, class Body>
void for_rows(const RotatePairsShape& s, const View& angle, const View& turns, std::int64_t heads, Body body) {
  const std::int64_t angles = s.by_time ? s.time : s.batch * s.time, repeats = s.by_time ? s.batch : 1;
  const std::int64_t width = s.shared ? s.planes : heads * s.planes, step = s.shared ? 0 : s.planes;
  for (std::int64_t first = 0; first < angles; first += rotate_pairs_ahead) {
    const std::int64_t count = std::min(rotate_pairs_ahead, angles - first);
    for (std::int64_t j = 0; j < count; ++j)
      rotation::turn(row<T>(angle, first + j), width, row<T>(turns, 2 * j), row<T>(turns, 2 * j + 1));
    for (std::int64_t b = 0; b < repeats; ++b)
      for (std::int64_t j = 0; j < count; ++j)
        body(Turn<T>{row<T>(turns, 2 * j), row<T>(turns, 2 * j + 1), step}, b * s.time + first + j);
  }
}

constexpr std::int64_t soon = 4;  // rows from the one at work to the one asked for

template <class T, bool interleaved>
void forward_layout(const RotatePairsForward& a) {
  const RotatePairsShape& s = a.shape;
  const std::int64_t rows = s.batch * s.time;
  const auto side = [&](const Turn<T>& turn, std::int64_t r, const View& from, const View& to, std::int64_t heads) {
    prefetch_row<false, T>(from, r + soon, rows, heads * s.width);
    prefetch_row<true, T>(to, r + soon, rows, heads * s.width);
    rotate_row<interleaved>(s, turn, heads, row<T>(from, r), row<T>(to, r));
  };
  for_rows<T>(s, a.angle, a.turns, a.q_heads, [&](const Turn<T>& turn, std::int64_t r) {
    side(turn, r, a.q, a.rotated_q, a.q_heads);
    side(turn, r, a.k, a.rotated_k, a.k_heads);
  });
}

/// One of q and k in the backward pass.
struct Side {
  View rotated, drotated, dx;
  std::int64_t heads;
  bool accumulate;
};

template <class T>
void prefetch_side(const RotatePairsShape& s, const Side& side, std::int64_t r, bool slope) {
  const std::int64_t rows = s.batch * s.time, width = side.heads * s.width;
  prefetch_row<false, T>(side.drotated, r, rows, width);
  if (slope) prefetch_row<false, T>(side.rotated, r, rows, width);
  prefetch_row<true, T>(side.dx, r, rows, width);
}

template <bool interleaved, class T>
void pull(const RotatePairsShape& s, const Turn<T>& turn, const Side& side, std::int64_t r, T* dangle) {
  if (side.drotated.data == nullptr) return;
  prefetch_side<T>(s, side, r + soon, dangle != nullptr);
  const T* d = row<T>(side.drotated, r);
  for (std::int64_t h = 0; dangle != nullptr && h < side.heads; ++h) {
    const T* rotated = row<T>(side.rotated, r) + h * s.width;
    if constexpr (interleaved)
      add_slope_of_neighbours(rotated, d + h * s.width, s.planes, dangle + h * s.planes);
    else
      rotation::add_slope(rotated, d + h * s.width, s.planes, dangle + h * s.planes);
  }
  if (side.dx.data == nullptr) return;
  if (side.accumulate)
    rotate_row_back<interleaved, true>(s, turn, side.heads, d, row<T>(side.dx, r));
  else
    rotate_row_back<interleaved, false>(s, turn, side.heads, d, row<T>(side.dx, r));
}

template <class T, bool interleaved>
void backward_layout(const RotatePairsBackward& a) {
  const RotatePairsShape& s = a.shape;
  const Side q{a.rotated_q, a.drotated_q, a.dq, a.q_heads, a.accumulate_q};
  const Side k{a.rotated_k, a.drotated_k, a.dk, a.k_heads, a.accumulate_k};
  for_rows<T>(s, a.angle, a.turns, a.q_heads, [&](const Turn<T>& turn, std::int64_t r) {
    T* dangle = a.dangle.data != nullptr ? row<T>(a.dangle, r) : nullptr;
    if (dangle != nullptr && !a.accumulate_angle) std::fill_n(dangle, a.q_heads * s.planes, T(0));
    pull<interleaved>(s, turn, q, r, dangle);
    pull<interleaved>(s, turn, k, r, dangle);
  });
}

template <class T>
void forward(const RotatePairsForward& a) {
  a.shape.interleaved ? forward_layout<T, true>(a) : forward_layout<T, false>(a);
}

template <class T>
void backward(const RotatePairsBackward& a) {
  a.shape.interleaved ? backward_layout<T, true>(a) : backward_layout<T, false>(a);
}

}  // namespace

const Kernel<RotatePairsForward> rotate_pairs_forward{"rotate_pairs.forward", forward<float>, forward<double>};
const Kernel<RotatePairsBackward> rotate_pairs_backward{"rotate_pairs.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
