#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "core/ops/attention/kernel.h"
#include "core/ops/tile_product.h"
#include "core/ops/vector_math.h"

// Both passes walk over tiles of 64 queries times 64 keys (docs/attention.md). The operands of a head are first packed
// next to each other: what stands on the right of a product as rows, and transposed where the product needs columns.

namespace phasor::ops {

namespace {

using tile::Into;
using tile::Left;
using tile::Range;
using tile::Rows;

constexpr std::int64_t edge = AttentionSizes::edge;
constexpr std::int64_t score_stride = tile::stride(edge);
constexpr std::int64_t grain = 16;  // keys: whole vectors in every precision
constexpr std::int64_t blocks = (edge + tile::row_block - 1) / tile::row_block;

/// Takes the next `size` elements of scratch.
template <class T>
T* next(T*& at, std::int64_t size) {
  return std::exchange(at, at + size);
}

/// Columns of one head.
template <class T>
Rows<const T> head_of(const View& from, std::int64_t first_row, std::int64_t head, std::int64_t width) {
  return {row<T>(from, first_row) + head * width, from.stride};
}

/// to = factor * from, row by row.
template <class T>
void pack_rows(std::int64_t rows, std::int64_t width, const Rows<const T>& from, T factor, const Rows<T>& to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* x = from.data + r * from.stride;
    T* y = to.data + r * to.stride;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) y[i] = factor * x[i];
    for (std::int64_t i = width; i < to.stride; ++i) y[i] = T(0);
  }
}

/// One tile of keys, transposed, [width][edge]; zeros beyond the last key.
template <class T>
void pack_columns(std::int64_t keys, std::int64_t width, const Rows<const T>& from, T* to) {
  tile::transpose(keys, width, from, Rows<T>{to, score_stride});
  for (std::int64_t c = 0; c < width && keys < edge; ++c) std::fill_n(to + c * score_stride + keys, edge - keys, T(0));
}

template <class T>
void unpack_rows(std::int64_t rows, std::int64_t width, const Rows<const T>& from, T factor, bool add, const Rows<T>& to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* x = from.data + r * from.stride;
    T* y = to.data + r * to.stride;
    if (add) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) y[i] += factor * x[i];
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) y[i] = factor * x[i];
    }
  }
}

std::int64_t vectors_of(std::int64_t width) { return (width + 7) / 8 * 8; }

/// Which keys the queries see. The first key of the document of query t:
template <class Args>
std::int64_t document_of(const Args& a, std::int64_t batch, std::int64_t t) {
  if (a.starts.data == nullptr) return 0;
  return std::max<std::int64_t>(0, a.sizes.past() + row<std::int32_t>(a.starts, batch)[t]);
}

template <class Args>
Range seen_by(const Args& a, std::int64_t batch, std::int64_t t) {
  const AttentionSizes& s = a.sizes;
  const std::int64_t own = s.past() + t;
  Range keys{document_of(a, batch, t), s.causal ? own + 1 : s.keys};
  if (s.window > 0) keys.begin = std::max(keys.begin, own - s.window + 1);
  return keys;
}

/// What one tile of scores holds: for every query the keys that it sees, and for every six queries the whole vectors
/// around them, counted from the first key of the tile.
struct Cover {
  std::array<Range, edge> seen;
  std::array<Range, blocks> around;
  std::int64_t rows = 0;
  bool any = false, whole = true;  // every query sees every key of the tile

  template <class Args>
  Cover(const Args& a, std::int64_t batch, std::int64_t first_query, std::int64_t queries, std::int64_t first_key)
      : rows(queries) {
    const std::int64_t keys = std::min(edge, a.sizes.keys - first_key);
    for (std::int64_t b = 0; b * tile::row_block < rows; ++b) {
      Range all{edge, 0};
      for (std::int64_t i = b * tile::row_block; i < std::min(rows, (b + 1) * tile::row_block); ++i) {
        const Range range = seen_by(a, batch, first_query + i);
        Range& in = seen[static_cast<std::size_t>(i)];
        in = {std::clamp<std::int64_t>(range.begin - first_key, 0, edge),
              std::clamp<std::int64_t>(range.end - first_key, 0, keys)};
        whole = whole && in.begin == 0 && in.end == edge;
        if (in.empty()) continue;
        all = {std::min(all.begin, in.begin / grain * grain), std::max(all.end, (in.end + grain - 1) / grain * grain)};
      }
      any = any || !all.empty();
      around[static_cast<std::size_t>(b)] = all.empty() ? Range{} : all;
    }
  }

  const Range& around_row(std::int64_t i) const { return around[static_cast<std::size_t>(i / tile::row_block)]; }

  /// Queries that see one of the six keys from `key` on.
  Range queries_of(std::int64_t key) const {
    if (whole) return {0, rows};
    Range found{rows, 0};
    for (std::int64_t i = 0; i < rows; ++i) {
      const Range& in = seen[static_cast<std::size_t>(i)];
      if (in.empty() || in.end <= key || in.begin >= key + tile::row_block) continue;
      found = {std::min(found.begin, i), i + 1};
    }
    return found;
  }
};

/// Running sum of the log-decay of a query head minus slope times key index: the bias of (i, j) is c_i - c_j. In double,
/// since the sum may reach thousands while differences of order one matter. It begins anew with every document, so that
/// one does not round otherwise because of what stands before it.
template <class T, class Args>
const double* bias_curve(const Args& a, std::int64_t batch, std::int64_t query_head) {
  if (a.curve.data == nullptr) return nullptr;
  double* c = row<double>(a.curve, 0);
  const double slope = a.slopes.data != nullptr ? row<double>(a.slopes, 0)[query_head] : 0.0;
  double sum = 0.0;
  for (std::int64_t j = 0; j < a.sizes.keys; ++j) {
    if (a.log_decay.data != nullptr) {
      const std::int64_t t = j - a.sizes.past();
      const bool begins = t >= 0 && document_of(a, batch, t) == j;
      sum = begins ? 0.0 : sum + static_cast<double>(row<T>(a.log_decay, batch * a.sizes.keys + j)[query_head]);
    }
    c[j] = sum - slope * static_cast<double>(j);
  }
  return c;
}

/// z_j += c_i - c_j; `curve`: of the first key of the tile, or null.
template <class T>
void add_bias(T* z, const Range& at, double own, const double* curve) {
  if (curve == nullptr) return;
#pragma omp simd
  for (std::int64_t j = at.begin; j < at.end; ++j) z[j] += static_cast<T>(own - curve[j]);
}

/// Whatever stands in place of keys that are not seen becomes `value`.
template <class T>
void fill_unseen(T* z, const Range& around, const Range& seen, T value) {
  for (std::int64_t j = around.begin; j < (seen.empty() ? around.end : seen.begin); ++j) z[j] = value;
  for (std::int64_t j = std::max(around.begin, seen.empty() ? around.end : seen.end); j < around.end; ++j) z[j] = value;
}

/// e^x for x that is not above 0 (but for rounding): half the work of math::exp, and as exact. Below the smallest normal
/// number the result is 0; NaN stays.
template <class T>
inline T weight(T x) {
  using B = math::detail::Bits<T>;
  using U = typename B::Unsigned;
  const T clamped = x < B::exp_low ? B::exp_low : x;
  const T shifted = std::fma(clamped, T(1.4426950408889634), B::round);
  const T n = shifted - B::round;
  const T r = std::fma(n, -B::ln2_low, std::fma(n, -B::ln2_high, clamped));
  T p = math::detail::exp_tail(r);
  const U power = (math::detail::bits(shifted) << B::mantissa) + math::detail::bits(T(1));
  p *= std::bit_cast<T>(power);
  return std::bit_cast<T>(math::detail::bits(p) & ~math::detail::mask<T>(x < B::exp_low));
}

inline float highest(tile::Vector<float> x) {
  const auto larger = [](tile::Vector<float> a, tile::Vector<float> b) { return a > b ? a : b; };
  x = larger(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
  x = larger(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
  return larger(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6))[0];
}

inline double highest(tile::Vector<double> x) {
  const auto larger = [](tile::Vector<double> a, tile::Vector<double> b) { return a > b ? a : b; };
  x = larger(x, __builtin_shufflevector(x, x, 2, 3, 0, 1));
  return larger(x, __builtin_shufflevector(x, x, 1, 0, 3, 2))[0];
}

/// Running softmax of some queries: the largest score of each so far and the sum of e^{score - largest}. It starts from
/// the lowest finite number, so that no infinity is ever subtracted from another.
template <class T>
struct Softmax {
  alignas(64) std::array<T, edge> largest, sum, best, factors;

  Softmax() {
    largest.fill(std::numeric_limits<T>::lowest());
    sum.fill(T(0));
  }

  /// Turns the scores of a tile into weights relative to the new maxima; `factors`: of everything summed before.
  void add(T* scores, const Cover& cover) {
    constexpr std::int64_t n = tile::lanes<T>;
    best = largest;
    for (std::int64_t i = 0; i < cover.rows; ++i) {
      const Range& at = cover.around_row(i);
      if (at.empty()) continue;
      const T* z = scores + i * score_stride;
      tile::Vector<T> top = tile::load(z + at.begin);
      for (std::int64_t j = at.begin + n; j < at.end; j += n) {
        const tile::Vector<T> x = tile::load(z + j);
        top = x > top ? x : top;
      }
      T& so_far = best[static_cast<std::size_t>(i)];
      const T here = highest(top);
      so_far = here > so_far ? here : so_far;
    }
#pragma omp simd
    for (std::size_t i = 0; i < static_cast<std::size_t>(edge); ++i) {
      factors[i] = weight(largest[i] - best[i]);
      largest[i] = best[i];
    }
    for (std::int64_t i = 0; i < cover.rows; ++i) {
      const Range& at = cover.around_row(i);
      T* z = scores + i * score_stride;
      const T zero = largest[static_cast<std::size_t>(i)];
      T total(0);
#pragma omp simd reduction(+ : total)
      for (std::int64_t j = at.begin; j < at.end; ++j) {
        z[j] = weight(z[j] - zero);
        total += z[j];
      }
      T& all = sum[static_cast<std::size_t>(i)];
      all = all * factors[static_cast<std::size_t>(i)] + total;
    }
  }
};

/// Keys and values of one head for the forward pass: tiles one after the other.
template <class T>
struct PackedKeys {
  const T* columns;  // [tile][key_width][edge]
  const T* rows;     // [tile][edge][value_width]
};

template <class T>
PackedKeys<T> pack_keys(const AttentionForward& a, std::int64_t batch, std::int64_t head, T*& scratch) {
  const AttentionSizes& s = a.sizes;
  T* columns = next(scratch, s.key_tiles() * s.columns(s.key_width));
  T* rows = next(scratch, s.key_tiles() * s.rows(s.value_width));
  const PackedKeys<T> packed{columns, rows};
  const std::int64_t value_stride = tile::stride(s.value_width);
  for (std::int64_t j = 0; j < s.keys; j += edge) {
    const std::int64_t count = std::min(edge, s.keys - j), first = batch * s.keys + j;
    pack_columns(count, s.key_width, head_of<T>(a.k, first, head, s.key_width), next(columns, s.columns(s.key_width)));
    T* to = next(rows, s.rows(s.value_width));
    pack_rows(count, s.value_width, head_of<T>(a.v, first, head, s.value_width), T(1), Rows<T>{to, value_stride});
    std::fill_n(to + count * value_stride, (edge - count) * value_stride, T(0));
  }
  return packed;
}

/// Up to `edge` queries of one head against all keys that they see.
template <class T>
void forward_block(const AttentionForward& a, const PackedKeys<T>& packed, const double* curve, std::int64_t batch,
                   std::int64_t query_head, std::int64_t first, T* scratch) {
  const AttentionSizes& s = a.sizes;
  const std::int64_t rows = std::min(edge, s.time - first);
  const std::int64_t key_stride = tile::stride(s.key_width), value_stride = tile::stride(s.value_width);
  T* queries = next(scratch, s.rows(s.key_width));
  T* scores = next(scratch, s.rows(edge));
  T* out = next(scratch, s.rows(s.value_width));
  Softmax<T> softmax;
  pack_rows(rows, s.key_width, head_of<T>(a.q, batch * s.time + first, query_head, s.key_width), static_cast<T>(a.scale),
            Rows<T>{queries, key_stride});
  std::fill_n(out, rows * value_stride, T(0));
  Range keys{s.keys, 0};
  for (std::int64_t i = 0; i < rows; ++i) {
    const Range seen = seen_by(a, batch, first + i);
    keys = {std::min(keys.begin, seen.begin), std::max(keys.end, seen.end)};
  }
  for (std::int64_t t = keys.begin / edge; t * edge < keys.end; ++t) {
    const Cover cover(a, batch, first, rows, t * edge);
    if (!cover.any) continue;
    const auto depth = [&](std::int64_t i, std::int64_t j) {
      const Range& around = cover.around_row(i);
      return j >= around.begin && j < around.end ? Range{0, s.key_width} : Range{};
    };
    tile::product<T, Into::overwrite>(rows, edge, {queries, key_stride, 1},
                                      {packed.columns + t * s.columns(s.key_width), score_stride},
                                      {scores, score_stride}, depth);
    for (std::int64_t i = 0; i < rows; ++i) {
      const Range &around = cover.around_row(i), &seen = cover.seen[static_cast<std::size_t>(i)];
      if (around.empty()) continue;
      T* z = scores + i * score_stride;
      if (curve != nullptr) add_bias(z, seen, curve[s.past() + first + i], curve + t * edge);
      if (!cover.whole) fill_unseen(z, around, seen, -std::numeric_limits<T>::infinity());
    }
    softmax.add(scores, cover);
    tile::product<T, Into::rescale>(rows, vectors_of(s.value_width), {scores, score_stride, 1},
                                    {packed.rows + t * s.rows(s.value_width), value_stride}, {out, value_stride},
                                    [&](std::int64_t i, std::int64_t) { return cover.around_row(i); }, softmax.factors.data());
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    const T sum = softmax.sum[static_cast<std::size_t>(i)];
    const Rows<T> to{row<T>(a.o, batch * s.time + first + i) + query_head * s.value_width, a.o.stride};
    unpack_rows(1, s.value_width, {out + i * value_stride, value_stride}, T(1) / sum, false, to);
    row<T>(a.lse, batch * s.query_heads() + query_head)[first + i] =
        softmax.largest[static_cast<std::size_t>(i)] + math::log(sum);
  }
}

template <class T>
void forward(const AttentionForward& a) {
  const AttentionSizes& s = a.sizes;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t head = 0; head < s.heads; ++head) {
      T* scratch = row<T>(a.scratch, 0);
      const PackedKeys<T> packed = pack_keys<T>(a, b, head, scratch);
      for (std::int64_t h = head * s.group; h < (head + 1) * s.group; ++h) {
        const double* curve = bias_curve<T>(a, b, h);
        for (std::int64_t t = 0; t < s.time; t += edge) forward_block(a, packed, curve, b, h, t, scratch);
      }
    }
}

/// What the backward pass holds of one query head, and of one tile of keys.
template <class T>
struct Packed {
  T *query, *dquery;  // [time][key_width], queries times scale
  T* dout;            // [time][value_width]
  T *lse, *delta;     // [time]; delta_i = dO_i . o_i
  T *key_columns, *value_columns, *key, *dkey, *dvalue;
  T *weights, *slopes;  // of one tile: p and dz
  T* sums;              // [edge]: of dz over the queries of a tile
};

template <class T>
Packed<T> carve(const AttentionBackward& a) {
  const AttentionSizes& s = a.sizes;
  T* at = row<T>(a.scratch, 0);
  Packed<T> p{};
  p.query = next(at, s.query_tiles() * s.rows(s.key_width));
  p.dquery = next(at, s.query_tiles() * s.rows(s.key_width));
  p.dout = next(at, s.query_tiles() * s.rows(s.value_width));
  p.lse = next(at, s.query_tiles() * edge);
  p.delta = next(at, s.query_tiles() * edge);
  p.key_columns = next(at, s.columns(s.key_width));
  p.value_columns = next(at, s.columns(s.value_width));
  p.key = next(at, s.rows(s.key_width));
  p.dkey = next(at, s.rows(s.key_width));
  p.dvalue = next(at, s.rows(s.value_width));
  p.weights = next(at, s.rows(edge));
  p.slopes = next(at, s.rows(edge));
  p.sums = next(at, edge);
  return p;
}

template <class T>
void open_head(const AttentionBackward& a, std::int64_t batch, std::int64_t query_head, const Packed<T>& p) {
  const AttentionSizes& s = a.sizes;
  const std::int64_t key_stride = tile::stride(s.key_width), value_stride = tile::stride(s.value_width);
  const Rows<const T> d_o = head_of<T>(a.d_o, batch * s.time, query_head, s.value_width);
  const Rows<const T> o = head_of<T>(a.o, batch * s.time, query_head, s.value_width);
  pack_rows(s.time, s.key_width, head_of<T>(a.q, batch * s.time, query_head, s.key_width), static_cast<T>(a.scale),
            Rows<T>{p.query, key_stride});
  pack_rows(s.time, s.value_width, d_o, T(1), Rows<T>{p.dout, value_stride});
  std::fill_n(p.dquery, s.time * key_stride, T(0));
  std::copy_n(row<T>(a.lse, batch * s.query_heads() + query_head), s.time, p.lse);
  for (std::int64_t t = 0; t < s.time; ++t) {
    const T *x = d_o.data + t * d_o.stride, *y = o.data + t * o.stride;
    T sum(0);
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < s.value_width; ++i) sum += x[i] * y[i];
    p.delta[t] = sum;
  }
}

/// p and dz of one tile, in place of z and dp; p and dz of keys that are not seen become 0.
template <class T>
void weigh(const Packed<T>& p, const Cover& cover, std::int64_t first, const double* own, const double* curve) {
  for (std::int64_t i = 0; i < cover.rows; ++i) {
    const Range& seen = cover.seen[static_cast<std::size_t>(i)];
    T *z = p.weights + i * score_stride, *dz = p.slopes + i * score_stride;
    if (curve != nullptr) add_bias(z, seen, own[i], curve);
    const T lse = p.lse[first + i], delta = p.delta[first + i];
    if (cover.whole) {
#pragma omp simd
      for (std::int64_t j = 0; j < edge; ++j) {
        z[j] = weight(z[j] - lse);
        dz[j] = z[j] * (dz[j] - delta);
      }
      continue;
    }
#pragma omp simd
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      z[j] = weight(z[j] - lse);
      dz[j] = z[j] * (dz[j] - delta);
    }
    fill_unseen(z, {0, edge}, seen, T(0));
    fill_unseen(dz, {0, edge}, seen, T(0));
  }
}

/// One tile of scores: everything that it adds to the gradients.
template <class T>
void backward_tile(const AttentionBackward& a, const Packed<T>& p, const Cover& cover, std::int64_t first,
                   std::int64_t keys, const double* own, const double* curve) {
  const AttentionSizes& s = a.sizes;
  const std::int64_t rows = cover.rows, key_stride = tile::stride(s.key_width), value_stride = tile::stride(s.value_width);
  const T *query = p.query + first * key_stride, *dout = p.dout + first * value_stride;
  const auto scored = [&](std::int64_t width) {
    return [&cover, width](std::int64_t i, std::int64_t j) {
      const Range& around = cover.around_row(i);
      return j >= around.begin && j < around.end ? Range{0, width} : Range{};
    };
  };
  tile::product<T, Into::overwrite>(rows, edge, {query, key_stride, 1}, {p.key_columns, score_stride},
                                    {p.weights, score_stride}, scored(s.key_width));
  tile::product<T, Into::overwrite>(rows, edge, {dout, value_stride, 1}, {p.value_columns, score_stride},
                                    {p.slopes, score_stride}, scored(s.value_width));
  weigh(p, cover, first, own, curve);

  std::array<Range, blocks> queries;
  for (std::int64_t j = 0; j < keys; j += tile::row_block)
    queries[static_cast<std::size_t>(j / tile::row_block)] = cover.queries_of(j);
  const auto of_key = [&](std::int64_t j, std::int64_t) { return queries[static_cast<std::size_t>(j / tile::row_block)]; };
  if (a.dq.data != nullptr)
    tile::product<T, Into::add>(rows, vectors_of(s.key_width), {p.slopes, score_stride, 1}, {p.key, key_stride},
                                {p.dquery + first * key_stride, key_stride},
                                [&](std::int64_t i, std::int64_t) { return cover.around_row(i); });
  if (a.dv.data != nullptr)
    tile::product<T, Into::add>(keys, vectors_of(s.value_width), {p.weights, 1, score_stride}, {dout, value_stride},
                                {p.dvalue, value_stride}, of_key);
  if (a.dk.data != nullptr)
    tile::product<T, Into::add>(keys, vectors_of(s.key_width), {p.slopes, 1, score_stride}, {query, key_stride},
                                {p.dkey, key_stride}, of_key);
}

/// Sums of dz over queries, for the gradient of the log-decay.
template <class T>
void add_sums(const Packed<T>& p, const Cover& cover, std::int64_t keys, double* sums) {
  std::fill_n(p.sums, edge, T(0));
  for (std::int64_t i = 0; i < cover.rows; ++i) {
    const T* dz = p.slopes + i * score_stride;
#pragma omp simd
    for (std::int64_t j = 0; j < edge; ++j) p.sums[j] += dz[j];
  }
  for (std::int64_t j = 0; j < keys; ++j) sums[j] += static_cast<double>(p.sums[j]);
}

/// dlog_decay_u = sum_{t >= u} (sum_j dz_tj - sum_i dz_it) over one document; the first sum is zero for every t.
template <class T>
void close_decay(const AttentionBackward& a, std::int64_t batch, std::int64_t query_head, const double* sums) {
  const AttentionSizes& s = a.sizes;
  double after = 0.0;
  std::int64_t document = 0;
  for (std::int64_t u = s.keys - 1; u >= 0; --u) {
    if (u >= s.past()) document = document_of(a, batch, u - s.past());
    after = u == document ? 0.0 : after - sums[u];  // no pair goes across the start of a document
    T& to = row<T>(a.dlog_decay, batch * s.keys + u)[query_head];
    to = a.add_log_decay ? to + static_cast<T>(after) : static_cast<T>(after);
  }
}

template <class T>
void backward_head(const AttentionBackward& a, const Packed<T>& p, std::int64_t batch, std::int64_t query_head) {
  const AttentionSizes& s = a.sizes;
  const std::int64_t head = query_head / s.group;
  const bool first_head = query_head % s.group == 0;  // of those that share keys: the others add to their gradients
  const std::int64_t key_stride = tile::stride(s.key_width), value_stride = tile::stride(s.value_width);
  const double* curve = bias_curve<T>(a, batch, query_head);
  double* sums = a.dlog_decay.data != nullptr ? row<double>(a.curve, 0) + s.keys : nullptr;
  if (sums != nullptr) std::fill_n(sums, s.keys, 0.0);
  open_head(a, batch, query_head, p);
  for (std::int64_t j = 0; j < s.keys; j += edge) {
    const std::int64_t keys = std::min(edge, s.keys - j), at = batch * s.keys + j;
    const Rows<const T> k = head_of<T>(a.k, at, head, s.key_width), v = head_of<T>(a.v, at, head, s.value_width);
    pack_columns(keys, s.key_width, k, p.key_columns);
    pack_columns(keys, s.value_width, v, p.value_columns);
    pack_rows(keys, s.key_width, k, T(1), Rows<T>{p.key, key_stride});
    std::fill_n(p.key + keys * key_stride, (edge - keys) * key_stride, T(0));
    std::fill_n(p.dkey, edge * key_stride, T(0));
    std::fill_n(p.dvalue, edge * value_stride, T(0));
    const std::int64_t from = s.causal ? std::max<std::int64_t>(0, j - s.past()) / edge * edge : 0;
    for (std::int64_t t = from; t < s.time; t += edge) {
      const Cover cover(a, batch, t, std::min(edge, s.time - t), j);
      if (!cover.any) continue;
      const double* own = curve != nullptr ? curve + s.past() + t : nullptr;
      backward_tile(a, p, cover, t, keys, own, curve != nullptr ? curve + j : nullptr);
      if (sums != nullptr) add_sums(p, cover, keys, sums + j);
    }
    if (a.dk.data != nullptr)
      unpack_rows(keys, s.key_width, {p.dkey, key_stride}, T(1), a.add_k || !first_head,
                  Rows<T>{row<T>(a.dk, at) + head * s.key_width, a.dk.stride});
    if (a.dv.data != nullptr)
      unpack_rows(keys, s.value_width, {p.dvalue, value_stride}, T(1), a.add_v || !first_head,
                  Rows<T>{row<T>(a.dv, at) + head * s.value_width, a.dv.stride});
  }
  if (a.dq.data != nullptr)
    unpack_rows(s.time, s.key_width, {p.dquery, key_stride}, static_cast<T>(a.scale), a.add_q,
                Rows<T>{row<T>(a.dq, batch * s.time) + query_head * s.key_width, a.dq.stride});
  if (sums != nullptr) close_decay<T>(a, batch, query_head, sums);
}

template <class T>
void backward(const AttentionBackward& a) {
  const Packed<T> p = carve<T>(a);
  for (std::int64_t b = 0; b < a.sizes.batch; ++b)
    for (std::int64_t h = 0; h < a.sizes.query_heads(); ++h) backward_head(a, p, b, h);
}

}  // namespace

const Kernel<AttentionForward> attention_forward{"attention.forward", forward<float>, forward<double>};
const Kernel<AttentionBackward> attention_backward{"attention.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
