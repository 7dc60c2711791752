#include <algorithm>
#include <cstring>
#include <utility>

#include "core/ops/gla/kernel.h"
#include "core/ops/vector_math.h"

// The recurrence itself, tile by tile: a tile of the state stays in registers while it runs through the steps of a
// chunk (docs/gla.md). The chunk of one head is first copied into blocks of `lanes` neighbouring channels,
// [block][step][lane], padded with zeros, so that a tile reads contiguous memory whatever the widths and the strides of
// the inputs are.

namespace phasor::ops {

namespace {

template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  typedef float Vector __attribute__((vector_size(32)));
};
template <>
struct Lanes<double> {
  typedef double Vector __attribute__((vector_size(32)));
};
template <class T>
using Vector = typename Lanes<T>::Vector;
template <class T>
constexpr std::int64_t lanes = 32 / static_cast<std::int64_t>(sizeof(T));

/// Elements of `count` vectors.
template <class T>
constexpr std::int64_t vectors(std::size_t count) {
  return static_cast<std::int64_t>(count) * lanes<T>;
}

template <class T>
inline Vector<T> load(const T* from) {
  Vector<T> x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}

template <class T>
inline void store(T* to, Vector<T> x) {
  std::memcpy(to, &x, sizeof(x));
}

/// Steps begin .. begin+count-1 of one head: rows first .. of a tensor, columns from `column`.
struct Part {
  std::int64_t first, count, column, width;
};

/// Rows into blocks: to[block][step][lane] = f(x), and zeros beyond the width.
template <class T, class F>
void pack(const View& from, const Part& part, std::int64_t chunk, T* to, F f) {
  constexpr std::int64_t n = lanes<T>;
  const std::int64_t whole = part.width / n, padded = gla_padded(part.width) / n;
  for (std::int64_t t = 0; t < part.count; ++t) {
    const T* x = row<T>(from, part.first + t) + part.column;
    for (std::int64_t b = 0; b < whole; ++b) {
      T* out = to + (b * chunk + t) * n;
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) out[i] = f(x[b * n + i]);
    }
    for (std::int64_t b = whole; b < padded; ++b) {
      T* out = to + (b * chunk + t) * n;
      for (std::int64_t i = 0; i < n; ++i) out[i] = b * n + i < part.width ? f(x[b * n + i]) : T(0);
    }
  }
}

/// The way back: factor * blocks into rows, written or added.
template <class T>
void unpack(const T* from, std::int64_t chunk, T factor, const View& to, const Part& part, bool add) {
  constexpr std::int64_t n = lanes<T>;
  if (to.data == nullptr) return;
  for (std::int64_t t = 0; t < part.count; ++t) {
    T* out = row<T>(to, part.first + t) + part.column;
    for (std::int64_t b = 0; b * n < part.width; ++b) {
      const T* x = from + (b * chunk + t) * n;
      const std::int64_t count = std::min(n, part.width - b * n);
      if (count == n && add) {
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) out[b * n + i] += factor * x[i];
      } else if (count == n) {
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) out[b * n + i] = factor * x[i];
      } else {
        for (std::int64_t i = 0; i < count; ++i) out[b * n + i] = factor * x[i] + (add ? out[b * n + i] : T(0));
      }
    }
  }
}

template <class T>
inline T same(T x) {
  return x;
}

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
        const Vector<T> decayed = s[r][c] * gate[r];
        s[r][c] = decayed + v[c] * key[r];
        o[c] += s[r][c] * query[r];
      }
    for (std::size_t c = 0; c < columns; ++c) store(out + static_cast<std::int64_t>(c) * block, o[c]);
  }
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t c = 0; c < columns; ++c) store(to + place(r, c), s[r][c]);
}

/// All tiles of one head and chunk. The outputs must be zero before.
template <class T>
void forward_chunk(const GlaSizes& s, const T* gate, const T* key, const T* query, const T* value, T* out,
                   std::int64_t count, const T* from, T* to) {
  constexpr std::int64_t n = lanes<T>;
  const std::int64_t block = s.chunk * n;
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

template <class T>
void forward_head(const GlaForward& a, std::int64_t batch, std::int64_t query_head) {
  const GlaSizes& s = a.sizes;
  const std::int64_t head = query_head / s.group, keys = s.chunk * s.keys(), values = s.chunk * s.values();
  const bool first = query_head % s.group == 0;  // of those that share the state
  const T scale = static_cast<T>(a.scale);
  T* gate = row<T>(a.scratch, 0);
  T* key = gate + keys;
  T* query = key + keys;
  T* value = query + keys;
  T* out = value + values;
  T* work = out + values;
  T* starts = first && a.starts.data != nullptr ? row<T>(a.starts, batch * s.heads + head) : nullptr;
  const T* state_in = a.state_in.data != nullptr ? row<T>(a.state_in, batch * s.heads + head) : nullptr;
  open_state(state_in, s, false, starts != nullptr && s.time > 0 ? starts : work);
  for (std::int64_t begin = 0; begin < s.time; begin += s.chunk) {
    const std::int64_t count = std::min(s.chunk, s.time - begin), row_at = batch * s.time + begin;
    const Part key_part{row_at, count, head * s.key_width, s.key_width};
    const Part query_part{row_at, count, query_head * s.key_width, s.key_width};
    const Part value_part{row_at, count, head * s.value_width, s.value_width};
    pack(a.log_gate, key_part, s.chunk, gate, math::exp<T>);
    pack(a.k, key_part, s.chunk, key, same<T>);
    pack(a.q, query_part, s.chunk, query, [scale](T x) { return x * scale; });
    pack(a.v, value_part, s.chunk, value, same<T>);
    std::fill_n(out, values, T(0));
    const T* from = starts != nullptr ? starts : work;
    T* to = starts != nullptr && begin + s.chunk < s.time ? starts + s.state() : work;
    forward_chunk(s, gate, key, query, value, out, count, from, to);
    if (starts != nullptr) starts += s.state();
    unpack(out, s.chunk, T(1), a.o, {row_at, count, query_head * s.value_width, s.value_width}, false);
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
  T *gate, *key, *query, *dgate, *dkey, *dquery;  // [block][step][lane]
  T *value, *dout, *dvalue;
  T* decayed;  // [step][value][lane] of one tile: e^{g_t} S_{t-1}
  T* partial;  // [step][value][lane] of one block of values: D_t times k_t, not yet summed over the lanes
  T* slope;    // [values][keys]: D, the gradient of the state after the chunk, transposed
};

template <class T>
Packed<T> carve(const View& scratch, const GlaSizes& s) {
  T* at = row<T>(scratch, 0);
  const auto next = [&at](std::int64_t size) { return std::exchange(at, at + size); };
  const std::int64_t keys = s.chunk * s.keys(), values = s.chunk * s.values(), tile = s.chunk * gla_lane * gla_lane;
  Packed<T> p;
  for (T** place : {&p.gate, &p.key, &p.query, &p.dgate, &p.dkey, &p.dquery}) *place = next(keys);
  for (T** place : {&p.value, &p.dout, &p.dvalue}) *place = next(values);
  p.decayed = next(tile);
  p.partial = next(tile);
  p.slope = next(s.state());
  return p;
}

/// Forwards in time: the state again, from the start of the chunk; keeps e^{g_t} S_{t-1} and gives dq_t += S_t dO_t.
/// A tile is `lanes` value channels (one register each) times `lanes` key channels.
template <class T>
void state_tile(const Packed<T>& p, std::int64_t k_at, std::int64_t v_at, std::int64_t count, const T* start,
                std::int64_t stride) {
  constexpr std::size_t n = static_cast<std::size_t>(lanes<T>);
  const T *gate = p.gate + k_at, *key = p.key + k_at, *value = p.value + v_at, *dout = p.dout + v_at;
  T *dquery = p.dquery + k_at, *decayed = p.decayed;
  T corner[n][n];
  for (std::size_t j = 0; j < n; ++j, start += stride)
    for (std::size_t i = 0; i < n; ++i) corner[i][j] = start[i];
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

/// Backwards in time: D_t and with it dk_t, dg_t and the lanes of dv_t.
template <class T>
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
      store(partial + i * n, load(partial + i * n) + d[i] * k);
      d[i] *= a;
    }
    store(p.dkey + key_at, dk);
    store(p.dgate + key_at, dg);
  }
  for (std::size_t i = 0; i < n; ++i) store(slope + static_cast<std::int64_t>(i) * stride, d[i]);
}

/// to[row] = sum of the lanes of a row, for count rows.
template <class T>
void sum_lanes(const T* from, std::int64_t count, T* to) {
  constexpr std::int64_t n = lanes<T>;
  for (std::int64_t r = 0; r < count; ++r, from += n) {
    T sum(0);
    for (std::int64_t i = 0; i < n; ++i) sum += from[i];
    to[r] = sum;
  }
}

/// All tiles of one head and chunk; gradients of keys must be zero before.
template <class T>
void backward_chunk(const GlaSizes& s, const Packed<T>& p, std::int64_t count, const T* start) {
  constexpr std::int64_t n = lanes<T>;
  for (std::int64_t v = 0; v < s.values(); v += n) {
    const std::int64_t v_at = v * s.chunk;
    std::fill_n(p.partial, count * n * n, T(0));
    for (std::int64_t k = 0; k < s.keys(); k += n) {
      state_tile(p, k * s.chunk, v_at, count, start + k * s.values() + v, s.values());
      slope_tile(p, k * s.chunk, v_at, count, p.slope + v * s.keys() + k, s.keys());
    }
    sum_lanes(p.partial, count * n, p.dvalue + v_at);
  }
}

template <class T>
void backward_head(const GlaBackward& a, std::int64_t batch, std::int64_t query_head) {
  const GlaSizes& s = a.sizes;
  const std::int64_t head = query_head / s.group, state_row = batch * s.heads + head;
  const bool first = query_head % s.group == 0;  // of those that share the state: the others add to its gradients
  const T scale = static_cast<T>(a.scale);
  const Packed<T> p = carve<T>(a.scratch, s);
  open_state(first && a.dstate_out.data != nullptr ? row<T>(a.dstate_out, state_row) : nullptr, s, true, p.slope);
  for (std::int64_t c = s.chunks() - 1; c >= 0; --c) {
    const std::int64_t begin = c * s.chunk, count = std::min(s.chunk, s.time - begin), row_at = batch * s.time + begin;
    const Part keys{row_at, count, head * s.key_width, s.key_width};
    const Part queries{row_at, count, query_head * s.key_width, s.key_width};
    const Part values{row_at, count, head * s.value_width, s.value_width};
    const Part outs{row_at, count, query_head * s.value_width, s.value_width};
    pack(a.log_gate, keys, s.chunk, p.gate, math::exp<T>);
    pack(a.k, keys, s.chunk, p.key, same<T>);
    pack(a.q, queries, s.chunk, p.query, [scale](T x) { return x * scale; });
    pack(a.v, values, s.chunk, p.value, same<T>);
    if (a.do_.data != nullptr)
      pack(a.do_, outs, s.chunk, p.dout, same<T>);
    else
      std::fill_n(p.dout, s.chunk * s.values(), T(0));
    std::fill_n(p.dgate, 3 * s.chunk * s.keys(), T(0));  // and dkey, dquery
    backward_chunk(s, p, count, row<T>(a.starts, state_row) + c * s.state());
    unpack(p.dquery, s.chunk, scale, a.dq, queries, a.add_q);
    unpack(p.dkey, s.chunk, T(1), a.dk, keys, a.add_k || !first);
    unpack(p.dvalue, s.chunk, T(1), a.dv, values, a.add_v || !first);
    unpack(p.dgate, s.chunk, T(1), a.dlog_gate, keys, a.add_log_gate || !first);
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
