#include <algorithm>

#include "core/ops/rotate_pairs/kernel.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

constexpr std::int64_t block = 64;  // planes worked on together

/// Sine and cosine of planes first .. first+count-1 of one row of angles; computed once, used by q and k of all heads.
template <class T>
struct Turn {
  std::int64_t first = 0, count = 0;
  T sin[block], cos[block];

  void load(const T* angle, std::int64_t from, std::int64_t planes) {
    first = from;
    count = std::min(block, planes - from);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const math::SinCos<T> at = math::sincos(angle[from + i]);
      sin[i] = at.sin;
      cos[i] = at.cos;
    }
  }
};

/// Where the two components of the first plane of a block stand, and the step from plane to plane.
template <bool interleaved>
struct Place {
  std::int64_t a, b;
  static constexpr std::int64_t step = interleaved ? 2 : 1;

  Place(std::int64_t first, std::int64_t planes)
      : a(interleaved ? 2 * first : first), b(interleaved ? a + 1 : first + planes) {}
};

template <bool interleaved, class T>
inline void rotate(const Turn<T>& turn, std::int64_t planes, const T* from, T* to) {
  const Place<interleaved> place(turn.first, planes);
  constexpr std::int64_t step = place.step;
  const T* a = from + place.a;
  const T* b = from + place.b;
  T* to_a = to + place.a;
  T* to_b = to + place.b;
#pragma omp simd
  for (std::int64_t i = 0; i < turn.count; ++i) {
    const T x = a[step * i], y = b[step * i];
    to_a[step * i] = x * turn.cos[i] - y * turn.sin[i];
    to_b[step * i] = x * turn.sin[i] + y * turn.cos[i];
  }
}

template <bool interleaved, bool accumulate, class T>
inline void rotate_back(const Turn<T>& turn, std::int64_t planes, const T* from, T* to) {
  const Place<interleaved> place(turn.first, planes);
  constexpr std::int64_t step = place.step;
  const T* a = from + place.a;
  const T* b = from + place.b;
  T* to_a = to + place.a;
  T* to_b = to + place.b;
#pragma omp simd
  for (std::int64_t i = 0; i < turn.count; ++i) {
    const T x = a[step * i], y = b[step * i];
    const T back_x = x * turn.cos[i] + y * turn.sin[i], back_y = y * turn.cos[i] - x * turn.sin[i];
    to_a[step * i] = accumulate ? to_a[step * i] + back_x : back_x;
    to_b[step * i] = accumulate ? to_b[step * i] + back_y : back_y;
  }
}

/// dangle += db' a' - da' b'.
template <bool interleaved, class T>
inline void add_slope(const Turn<T>& turn, std::int64_t planes, const T* rotated, const T* drotated, T* slope) {
  const Place<interleaved> place(turn.first, planes);
  constexpr std::int64_t step = place.step;
  const T* a = rotated + place.a;
  const T* b = rotated + place.b;
  const T* da = drotated + place.a;
  const T* db = drotated + place.b;
#pragma omp simd
  for (std::int64_t i = 0; i < turn.count; ++i) slope[i] += db[step * i] * a[step * i] - da[step * i] * b[step * i];
}

/// Components that do not rotate.
template <class T>
void pass_through(const RotatePairsShape& s, const View& from, const View& to, std::int64_t heads, bool accumulate) {
  const std::int64_t begin = 2 * s.planes;
  if (begin == s.width || from.data == nullptr || to.data == nullptr) return;
  for (std::int64_t r = 0; r < s.batch * s.time; ++r)
    for (std::int64_t h = 0; h < heads; ++h) {
      const T* x = row<T>(from, r) + h * s.width;
      T* y = row<T>(to, r) + h * s.width;
#pragma omp simd
      for (std::int64_t i = begin; i < s.width; ++i) y[i] = accumulate ? y[i] + x[i] : x[i];
    }
}

/// Calls body(turn, row, first head, last head of q, last head of k) for every block of planes of every row of angles.
template <class T, class Body>
void for_turns(const RotatePairsShape& s, const View& angle, std::int64_t q_heads, std::int64_t k_heads, Body body) {
  Turn<T> turn;
  if (s.by_time) {
    for (std::int64_t t = 0; t < s.time; ++t)
      for (std::int64_t first = 0; first < s.planes; first += block) {
        turn.load(row<T>(angle, t), first, s.planes);
        for (std::int64_t b = 0; b < s.batch; ++b) body(turn, b * s.time + t, std::int64_t{0}, q_heads, k_heads);
      }
    return;
  }
  if (s.shared) {
    for (std::int64_t r = 0; r < s.batch * s.time; ++r)
      for (std::int64_t first = 0; first < s.planes; first += block) {
        turn.load(row<T>(angle, r), first, s.planes);
        body(turn, r, std::int64_t{0}, q_heads, k_heads);
      }
    return;
  }
  for (std::int64_t r = 0; r < s.batch * s.time; ++r)
    for (std::int64_t h = 0; h < q_heads; ++h)
      for (std::int64_t first = 0; first < s.planes; first += block) {
        turn.load(row<T>(angle, r) + h * s.planes, first, s.planes);
        body(turn, r, h, h + 1, h + 1);
      }
}

template <class T, bool interleaved>
void forward_layout(const RotatePairsForward& a) {
  const RotatePairsShape& s = a.shape;
  for_turns<T>(s, a.angle, a.q_heads, a.k_heads,
               [&](const Turn<T>& turn, std::int64_t r, std::int64_t first, std::int64_t q_last, std::int64_t k_last) {
                 const T* q = row<T>(a.q, r);
                 const T* k = row<T>(a.k, r);
                 T* to_q = row<T>(a.rotated_q, r);
                 T* to_k = row<T>(a.rotated_k, r);
                 for (std::int64_t h = first; h < q_last; ++h)
                   rotate<interleaved>(turn, s.planes, q + h * s.width, to_q + h * s.width);
                 for (std::int64_t h = first; h < k_last; ++h)
                   rotate<interleaved>(turn, s.planes, k + h * s.width, to_k + h * s.width);
               });
  pass_through<T>(s, a.q, a.rotated_q, a.q_heads, false);
  pass_through<T>(s, a.k, a.rotated_k, a.k_heads, false);
}

/// One of q and k in the backward pass.
struct Side {
  View rotated, drotated, dx;
  bool accumulate;
};

template <class T, bool interleaved>
void backward_layout(const RotatePairsBackward& a) {
  const RotatePairsShape& s = a.shape;
  const Side q{a.rotated_q, a.drotated_q, a.dq, a.accumulate_q}, k{a.rotated_k, a.drotated_k, a.dk, a.accumulate_k};
  for_turns<T>(s, a.angle, a.q_heads, a.k_heads,
               [&](const Turn<T>& turn, std::int64_t r, std::int64_t first, std::int64_t q_last, std::int64_t k_last) {
                 T slope[block] = {};
                 const auto pull = [&](const Side& side, std::int64_t last) {
                   if (side.drotated.data == nullptr) return;
                   for (std::int64_t h = first; h < last; ++h) {
                     const T* d = row<T>(side.drotated, r) + h * s.width;
                     if (a.dangle.data != nullptr)
                       add_slope<interleaved>(turn, s.planes, row<T>(side.rotated, r) + h * s.width, d, slope);
                     if (side.dx.data == nullptr) continue;
                     T* dx = row<T>(side.dx, r) + h * s.width;
                     if (side.accumulate)
                       rotate_back<interleaved, true>(turn, s.planes, d, dx);
                     else
                       rotate_back<interleaved, false>(turn, s.planes, d, dx);
                   }
                 };
                 pull(q, q_last);
                 pull(k, k_last);
                 if (a.dangle.data == nullptr) return;
                 T* dangle = row<T>(a.dangle, r) + first * s.planes + turn.first;
#pragma omp simd
                 for (std::int64_t i = 0; i < turn.count; ++i)
                   dangle[i] = a.accumulate_angle ? dangle[i] + slope[i] : slope[i];
               });
  pass_through<T>(s, a.drotated_q, a.dq, a.q_heads, a.accumulate_q);
  pass_through<T>(s, a.drotated_k, a.dk, a.k_heads, a.accumulate_k);
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
