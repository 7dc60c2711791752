#include <algorithm>
#include <cstring>
#include <utility>

#include "core/ops/gla/kernel.h"
#include "core/ops/simd.h"
#include "core/ops/vector_math.h"

// The recurrence itself, tile by tile: a tile of the state stays in registers while it runs through the steps of a
// chunk (docs/gla.md). The chunk of one head is first copied into blocks of `lanes` neighbouring channels,
// [block][step][lane], padded with zeros, so that a tile reads contiguous memory whatever the widths and the strides of
// the inputs are.

namespace phasor::ops {

namespace {

using simd::lanes;
using simd::load;
using simd::store;
using simd::Vector;

/// Elements of `count` vectors.
template <class T>
constexpr std::int64_t vectors(std::size_t count) {
  return static_cast<std::int64_t>(count) * lanes<T>;
}

/// Steps begin .. begin+count-1 of one head: rows first .. of a tensor, columns from `column`.
struct Part {
  std::int64_t first, count, column, width;
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

/// [rows][columns] of a padded state, filled from a plain one or with zeros; transposed: the state has [columns][rows].
template <class T>
void open_state(const T* from, const GlaSizes& s, bool transposed, T* to) {
  std::fill_n(to, s.state(), T(0));
  if (from == nullptr) return;
  for (std::int64_t i = 0; i < s.key_width; ++i)
    for (std::int64_t j = 0; j < s.value_width; ++j)
      to[transposed ? j * s.keys() + i : i * s.values() + j] = from[i * s.value_width + j];
}

template <class T>
void close_state(const T* from, const GlaSizes& s, bool transposed, bool add, T* to) {
  for (std::int64_t i = 0; i < s.key_width; ++i)
    for (std::int64_t j = 0; j < s.value_width; ++j) {
      const T x = from[transposed ? j * s.keys() + i : i * s.values() + j];
      to[i * s.value_width + j] = x + (add ? to[i * s.value_width + j] : T(0));
    }
}

/// Four key channels times `columns` vectors of value channels, through the steps of a chunk. Layouts: gate, key, query
/// [step][lane]; value, out [column][step][lane]; from, to: rows of a state.
template <class T, std::size_t columns>
void forward_tile(const T* gate, const T* key, const T* query, const T* value, T* out, std::int64_t block,
                  std::int64_t count, const T* from, T* to, std::int64_t stride) {
  constexpr std::int64_t n = lanes<T>;
  const auto place = [=](std::size_t r, std::size_t c) {
    return static_cast<std::int64_t>(r) * stride + vectors<T>(c);
  };
  Vector<T> s[4][columns];
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t c = 0; c < columns; ++c) s[r][c] = load(from + place(r, c));
  for (std::int64_t t = 0; t < count; ++t, gate += n, key += n, query += n, value += n, out += n) {
    Vector<T> v[columns], o[columns];
    for (std::size_t c = 0; c < columns; ++c) {
      v[c] = load(value + static_cast<std::int64_t>(c) * block);
      o[c] = load(out + static_cast<std::int64_t>(c) * block);
    }
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t c = 0; c < columns; ++c) {
        s[r][c] = v[c] * key[r] + s[r][c] * gate[r];  // the product fused into the sum is the first, as in state_tile
        o[c] += s[r][c] * query[r];
      }
    for (std::size_t c = 0; c < columns; ++c) store(out + static_cast<std::int64_t>(c) * block, o[c]);
  }
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t c = 0; c < columns; ++c) store(to + place(r, c), s[r][c]);
}

/// All tiles of one head through the steps of a chunk, or of its part that is one document. The outputs must be zero
/// before.
template <class T>
void forward_chunk(const GlaSizes& s, const T* gate, const T* key, const T* query, const T* value, T* out,
                   std::int64_t count, const T* from, T* to) {
  constexpr std::int64_t n = lanes<T>;
  const std::int64_t block = s.block(n);
  for (std::int64_t v = 0; v < s.values();) {
    const bool two = v + 2 * n <= s.values();
    const auto tile = two ? forward_tile<T, 2> : forward_tile<T, 1>;
    const std::int64_t v_at = v / n * block;
    for (std::int64_t k = 0; k < s.keys(); k += 4) {
      const std::int64_t k_at = k / n * block + k % n, corner = k * s.values() + v;
      tile(gate + k_at, key + k_at, query + k_at, value + v_at, out + v_at, block, count, from + corner, to + corner,
           s.values());
    }
    v += two ? 2 * n : n;
  }
}

/// Where documents begin within a chunk of a row.
struct Documents {
  const std::int32_t* starts;  // of the chunk's steps; null: one document per row
  std::int64_t begin;          // the chunk's first step

  Documents(const View& all, std::int64_t batch, std::int64_t first)
      : starts(all.data != nullptr ? row<std::int32_t>(all, batch) + first : nullptr), begin(first) {}
  bool begins(std::int64_t step) const { return starts != nullptr && starts[step] == begin + step; }
};

template <class T>
void forward_head(const GlaForward& a, std::int64_t batch, std::int64_t query_head) {
  const GlaSizes& s = a.sizes;
  const std::int64_t head = query_head / s.group, block = s.block(lanes<T>);
  const std::int64_t keys = s.blocks(s.keys(), lanes<T>), values = s.blocks(s.values(), lanes<T>);
  const bool first = query_head % s.group == 0;  // of those that share the state
  const T scale = static_cast<T>(a.scale);
  T* gate = row<T>(a.scratch, 0);  // where they are not kept
  T* key = gate + keys;
  T* query = key + keys;
  T* value = query + keys;
  T* out = value + values;
  T* work = out + values;
  T* kept = first && a.kept.data != nullptr ? row<T>(a.kept, batch * s.heads + head) : nullptr;
  T* decays = a.decays.data != nullptr ? row<T>(a.decays, batch * s.heads + head) : nullptr;
  const T* state_in = a.state_in.data != nullptr ? row<T>(a.state_in, batch * s.heads + head) : nullptr;
  open_state(state_in, s, false, kept != nullptr && s.time > 0 ? kept : work);
  for (std::int64_t begin = 0; begin < s.time; begin += s.chunk) {
    const std::int64_t count = std::min(s.chunk, s.time - begin), row_at = batch * s.time + begin;
    const Part key_part{row_at, count, head * s.key_width, s.key_width};
    const Part query_part{row_at, count, query_head * s.key_width, s.key_width};
    const Part value_part{row_at, count, head * s.value_width, s.value_width};
    if (decays != nullptr) gate = std::exchange(decays, decays + keys);
    if (first || decays == nullptr) pack(a.log_gate, key_part, block, gate, decay);
    pack(a.k, key_part, block, key, same);
    pack(a.q, query_part, block, query, [scale](T x) { return x * scale; });
    pack(a.v, value_part, block, value, same);
    std::fill_n(out, values, T(0));
    T* from = kept != nullptr ? kept : work;
    T* to = kept != nullptr && begin + s.chunk < s.time ? kept + s.state() : work;
    const Documents documents(a.starts, batch, begin);
    for (std::int64_t t = 0, end = 0; t < count; t = end) {
      while (++end < count && !documents.begins(end)) continue;
      if (documents.begins(t)) std::fill_n(from, s.state(), T(0));
      const std::int64_t at = t * lanes<T>;
      forward_chunk(s, gate + at, key + at, query + at, value + at, out + at, end - t, from, to);
      from = to;
    }
    if (kept != nullptr) kept += s.state();
    unpack(out, block, T(1), a.o, {row_at, count, query_head * s.value_width, s.value_width}, false);
  }
  if (first && a.state_out.data != nullptr)
    close_state(work, s, false, false, row<T>(a.state_out, batch * s.heads + head));
}

template <class T>
void forward(const GlaForward& a) {
  for (std::int64_t b = 0; b < a.sizes.batch; ++b)
    for (std::int64_t h = 0; h < a.sizes.heads * a.sizes.group; ++h) forward_head<T>(a, b, h);
}

/// One head's chunk for the backward pass: operands and gradients in blocks.
template <class T>
struct Packed {
  const T* gate;  // [block][step][lane], as the others
  T *key, *query, *dgate, *dkey, *dquery;
  T *value, *dout, *dvalue;
  T* decayed;  // [step][value][lane] of one tile: e^{g_t} S_{t-1}
  T* partial;  // [step][value][lane] of one block of values: D_t times k_t, not yet summed over the lanes
  T* slope;    // [values][keys]: D, the gradient of the state after the chunk, transposed

  /// The same from a later step on.
  Packed from(std::int64_t step) const {
    Packed p = *this;
    p.gate += step * lanes<T>;
    for (T** place : {&p.key, &p.query, &p.dgate, &p.dkey, &p.dquery, &p.value, &p.dout, &p.dvalue})
      *place += step * lanes<T>;
    return p;
  }
};

template <class T>
Packed<T> carve(const View& scratch, const GlaSizes& s) {
  T* at = row<T>(scratch, 0);
  const auto next = [&at](std::int64_t size) { return std::exchange(at, at + size); };
  const std::int64_t keys = s.blocks(s.keys(), lanes<T>), values = s.blocks(s.values(), lanes<T>);
  const std::int64_t tile = s.chunk * lanes<T> * lanes<T>;
  Packed<T> p;
  for (T** place : {&p.key, &p.query, &p.dgate, &p.dkey, &p.dquery}) *place = next(keys);
  for (T** place : {&p.value, &p.dout, &p.dvalue}) *place = next(values);
  p.decayed = next(tile);
  p.partial = next(tile);
  p.slope = next(s.state());
  return p;
}

/// Forwards in time: the state again, from `start` (null: zeros); keeps e^{g_t} S_{t-1} and gives dq_t += S_t dO_t.
/// A tile is `lanes` value channels (one register each) times `lanes` key channels.
template <class T>
void state_tile(const Packed<T>& p, std::int64_t k_at, std::int64_t v_at, std::int64_t count, const T* start,
                std::int64_t stride) {
  constexpr std::size_t n = static_cast<std::size_t>(lanes<T>);
  const T *gate = p.gate + k_at, *key = p.key + k_at, *value = p.value + v_at, *dout = p.dout + v_at;
  T *dquery = p.dquery + k_at, *decayed = p.decayed;
  T corner[n][n];
  if (start == nullptr) {
    std::fill_n(&corner[0][0], n * n, T(0));
  } else {
    for (std::size_t j = 0; j < n; ++j, start += stride)
      for (std::size_t i = 0; i < n; ++i) corner[i][j] = start[i];
  }
  Vector<T> s[n];
  for (std::size_t i = 0; i < n; ++i) s[i] = load(corner[i]);
  for (std::int64_t t = 0; t < count; ++t, gate += n, key += n, value += n, dout += n, dquery += n) {
    const Vector<T> a = load(gate), k = load(key);
    Vector<T> dq = load(dquery);
    for (std::size_t i = 0; i < n; ++i, decayed += n) {
      const Vector<T> old = s[i] * a;
      store(decayed, old);
      s[i] = old + k * value[i];
      dq += s[i] * dout[i];
    }
    store(dquery, dq);
  }
}

/// Backwards in time: D_t and with it dk_t, dg_t and the lanes of dv_t, which the first block of keys writes and the
/// others add to.
template <class T, bool first>
void slope_tile(const Packed<T>& p, std::int64_t k_at, std::int64_t v_at, std::int64_t count, T* slope,
                std::int64_t stride) {
  constexpr std::size_t n = static_cast<std::size_t>(lanes<T>);
  Vector<T> d[n];
  for (std::size_t i = 0; i < n; ++i) d[i] = load(slope + static_cast<std::int64_t>(i) * stride);
  for (std::int64_t t = count - 1; t >= 0; --t) {
    const std::int64_t key_at = k_at + t * lanes<T>, value_at = v_at + t * lanes<T>, tile_at = t * lanes<T> * lanes<T>;
    const T *value = p.value + value_at, *dout = p.dout + value_at, *decayed = p.decayed + tile_at;
    T* partial = p.partial + tile_at;
    const Vector<T> a = load(p.gate + key_at), k = load(p.key + key_at), q = load(p.query + key_at);
    Vector<T> dk = load(p.dkey + key_at), dg = load(p.dgate + key_at);
    for (std::size_t i = 0; i < n; ++i) {
      d[i] += q * dout[i];
      dk += d[i] * value[i];
      dg += d[i] * load(decayed + i * n);
      store(partial + i * n, first ? d[i] * k : load(partial + i * n) + d[i] * k);
      d[i] *= a;
    }
    store(p.dkey + key_at, dk);
    store(p.dgate + key_at, dg);
  }
  for (std::size_t i = 0; i < n; ++i) store(slope + static_cast<std::int64_t>(i) * stride, d[i]);
}

/// Sums of the lanes of eight (four) neighbouring vectors, as one vector. Every step adds halves of its two inputs that
/// it has brought side by side.
inline Vector<float> sum_lanes(const float* from) {
  const auto quarters = [from](std::int64_t at) {
    const Vector<float> a = load(from + 8 * at), b = load(from + 8 * at + 8);
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13) +
           __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  };
  const auto halves = [&quarters](std::int64_t at) {
    const Vector<float> a = quarters(at), b = quarters(at + 2);
    return __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) +
           __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  };
  const Vector<float> a = halves(0), b = halves(4);
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
         __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}

inline Vector<double> sum_lanes(const double* from) {
  const auto halves = [from](std::int64_t at) {
    const Vector<double> a = load(from + 4 * at), b = load(from + 4 * at + 4);
    return __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
  };
  const Vector<double> a = halves(0), b = halves(2);
  return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
}

/// All tiles of one head and chunk, or of its part that is one document; gradients of keys must be zero before.
template <class T>
void backward_chunk(const GlaSizes& s, const Packed<T>& p, std::int64_t count, const T* start) {
  constexpr std::int64_t n = lanes<T>;
  const std::int64_t block = s.block(n);
  for (std::int64_t v = 0; v < s.values(); v += n) {
    const std::int64_t v_at = v / n * block;
    for (std::int64_t k = 0; k < s.keys(); k += n) {
      const std::int64_t k_at = k / n * block;
      state_tile(p, k_at, v_at, count, start != nullptr ? start + k * s.values() + v : nullptr, s.values());
      const auto tile = k == 0 ? slope_tile<T, true> : slope_tile<T, false>;
      tile(p, k_at, v_at, count, p.slope + v * s.keys() + k, s.keys());
    }
    for (std::int64_t t = 0; t < count; ++t) store(p.dvalue + v_at + t * n, sum_lanes(p.partial + t * n * n));
  }
}

/// A chunk, document by document from the last to the first. The gradient of a state ends where its document began.
template <class T>
void backward_documents(const GlaSizes& s, const Packed<T>& p, const Documents& documents, std::int64_t count,
                        const T* state) {
  for (std::int64_t end = count, t = count; end > 0; end = t) {
    while (--t > 0 && !documents.begins(t)) continue;
    const bool fresh = documents.begins(t);
    backward_chunk(s, p.from(t), end - t, fresh ? nullptr : state);
    if (fresh) std::fill_n(p.slope, s.state(), T(0));
  }
}

template <class T>
void backward_head(const GlaBackward& a, std::int64_t batch, std::int64_t query_head) {
  const GlaSizes& s = a.sizes;
  const std::int64_t head = query_head / s.group, state_row = batch * s.heads + head;
  const bool first = query_head % s.group == 0;  // of those that share the state: the others add to its gradients
  const std::int64_t block = s.block(lanes<T>);
  const T scale = static_cast<T>(a.scale);
  Packed<T> p = carve<T>(a.scratch, s);
  const T* decays = row<T>(a.decays, state_row);
  open_state(first && a.d_state.data != nullptr ? row<T>(a.d_state, state_row) : nullptr, s, true, p.slope);
  for (std::int64_t c = s.chunks() - 1; c >= 0; --c) {
    const std::int64_t begin = c * s.chunk, count = std::min(s.chunk, s.time - begin), row_at = batch * s.time + begin;
    const Part keys{row_at, count, head * s.key_width, s.key_width};
    const Part queries{row_at, count, query_head * s.key_width, s.key_width};
    const Part values{row_at, count, head * s.value_width, s.value_width};
    const Part outs{row_at, count, query_head * s.value_width, s.value_width};
    p.gate = decays + c * s.blocks(s.keys(), lanes<T>);
    pack(a.k, keys, block, p.key, same);
    pack(a.q, queries, block, p.query, [scale](T x) { return x * scale; });
    pack(a.v, values, block, p.value, same);
    if (a.d_o.data != nullptr)
      pack(a.d_o, outs, block, p.dout, same);
    else
      std::fill_n(p.dout, s.blocks(s.values(), lanes<T>), T(0));
    std::fill_n(p.dgate, 3 * s.blocks(s.keys(), lanes<T>), T(0));  // and dkey, dquery
    backward_documents(s, p, Documents(a.starts, batch, begin), count, row<T>(a.kept, state_row) + c * s.state());
    unpack(p.dquery, block, scale, a.dq, queries, a.add_q);
    unpack(p.dkey, block, T(1), a.dk, keys, a.add_k || !first);
    unpack(p.dvalue, block, T(1), a.dv, values, a.add_v || !first);
    unpack(p.dgate, block, T(1), a.dlog_gate, keys, a.add_log_gate || !first);
  }
  if (a.dstate_in.data != nullptr) close_state(p.slope, s, true, a.add_state || !first, row<T>(a.dstate_in, state_row));
}

template <class T>
void backward(const GlaBackward& a) {
  for (std::int64_t b = 0; b < a.sizes.batch; ++b)
    for (std::int64_t h = 0; h < a.sizes.heads * a.sizes.group; ++h) backward_head<T>(a, b, h);
}

}  // namespace

const Kernel<GlaForward> gla_forward{"gla.forward", forward<float>, forward<double>};
const Kernel<GlaBackward> gla_backward{"gla.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
