#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/ops/gla/blocks.h"
#include "core/ops/gla/kernel.h"
#include "core/ops/simd.h"
#include "core/ops/tile_product.h"

// The recurrence itself, tile by tile: a tile of the state stays in registers while it runs through the steps of a
// chunk (docs/gla.md). The chunk of one head is first copied into blocks (blocks.h).

namespace phasor::ops {

namespace {

using namespace blocks;
using simd::lanes;
using simd::load;
using simd::store;
using simd::Vector;

/// Elements of `count` vectors.
template <class T>
constexpr std::int64_t vectors(std::size_t count) {
  return static_cast<std::int64_t>(count) * lanes<T>;
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
                   std::int64_t count, const T* from, T* to, Ahead& ahead) {
  constexpr std::int64_t n = lanes<T>;
  const std::int64_t block = s.block(n);
  for (std::int64_t v = 0; v < s.values();) {
    const bool two = v + 2 * n <= s.values();
    const auto tile = two ? forward_tile<T, 2> : forward_tile<T, 1>;
    const std::int64_t v_at = v / n * block;
    for (std::int64_t k = 0; k < s.keys(); k += 4) {
      const std::int64_t k_at = k / n * block + k % n, corner = k * s.values() + v;
      ahead.some();
      tile(gate + k_at, key + k_at, query + k_at, value + v_at, out + v_at, block, count, from + corner, to + corner,
           s.values());
    }
    v += two ? 2 * n : n;
  }
}

/// Calls of forward_tile in a chunk that is one document.
template <class T>
std::int64_t forward_tiles(const GlaSizes& s) {
  constexpr std::int64_t pair = 2 * lanes<T>;
  return (s.values() + pair - 1) / pair * (s.keys() / 4);
}

/// Where documents begin within a chunk of a row.
struct Documents {
  const std::int32_t* starts;  // of the chunk's steps; null: one document per row
  std::int64_t begin;          // the chunk's first step

  Documents(const View& all, std::int64_t batch, std::int64_t first)
      : starts(all.data != nullptr ? row<std::int32_t>(all, batch) + first : nullptr), begin(first) {}
  bool begins(std::int64_t step) const { return starts != nullptr && starts[step] == begin + step; }
};

/// What the next chunk will read.
template <class T>
Ahead forward_ahead(const GlaForward& a, Place place) {
  const GlaSizes& s = a.sizes;
  Ahead ahead;
  if (!place.advance(s, s.chunk)) return ahead;
  const Parts next(s, place);
  ahead.rows<T>(a.log_gate, next.keys);
  ahead.rows<T>(a.k, next.keys);
  ahead.rows<T>(a.q, next.queries);
  ahead.rows<T>(a.v, next.values);
  ahead.spread(forward_tiles<T>(s));
  return ahead;
}

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
    const Parts parts(s, {batch, query_head, begin});
    const std::int64_t count = parts.keys.count;
    if (decays != nullptr) gate = std::exchange(decays, decays + keys);
    if (first || decays == nullptr) pack(a.log_gate, parts.keys, block, gate, decay);
    pack(a.k, parts.keys, block, key, same);
    pack(a.q, parts.queries, block, query, [scale](T x) { return x * scale; });
    pack(a.v, parts.values, block, value, same);
    std::fill_n(out, values, T(0));
    T* from = kept != nullptr ? kept : work;
    T* to = kept != nullptr && begin + s.chunk < s.time ? kept + s.state() : work;
    Ahead ahead = forward_ahead<T>(a, {batch, query_head, begin});
    const Documents documents(a.starts, batch, begin);
    for (std::int64_t t = 0, end = 0; t < count; t = end) {
      while (++end < count && !documents.begins(end)) continue;
      if (documents.begins(t)) std::fill_n(from, s.state(), T(0));
      const std::int64_t at = t * lanes<T>;
      forward_chunk(s, gate + at, key + at, query + at, value + at, out + at, end - t, from, to, ahead);
      from = to;
    }
    if (kept != nullptr) kept += s.state();
    unpack(out, block, T(1), a.o, parts.outs, false);
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
  constexpr std::int64_t n = lanes<T>;
  const T* __restrict gate = p.gate + k_at;
  const T* __restrict key = p.key + k_at;
  const T* __restrict value = p.value + v_at;
  const T* __restrict dout = p.dout + v_at;
  T* __restrict dquery = p.dquery + k_at;
  T* __restrict decayed = p.decayed;
  if (start == nullptr)
    std::fill_n(decayed, n * n, T(0));
  else
    tile::transpose_block(start, stride, decayed, n);
  Vector<T> s[std::size_t{n}];
  for (std::int64_t i = 0; i < n; ++i) s[i] = load(decayed + i * n);
  do {
    const Vector<T> a = load(gate), k = load(key);
    Vector<T> dq = load(dquery);
    for (std::int64_t i = 0; i < n; ++i) {
      const Vector<T> old = s[i] * a;
      store(decayed + i * n, old);
      s[i] = old + k * value[i];
      dq += s[i] * dout[i];
    }
    store(dquery, dq);
    gate += n, key += n, value += n, dout += n, dquery += n, decayed += n * n;
  } while (--count > 0);
}

/// Backwards in time: D_t and with it dk_t, dg_t and the lanes of dv_t, which the first block of keys writes and the
/// others add to.
template <class T, bool first>
void slope_tile(const Packed<T>& p, std::int64_t k_at, std::int64_t v_at, std::int64_t count, T* slope,
                std::int64_t stride) {
  constexpr std::int64_t n = lanes<T>;
  const std::int64_t key_at = k_at + (count - 1) * n, value_at = v_at + (count - 1) * n, tile_at = (count - 1) * n * n;
  const T* __restrict gate = p.gate + key_at;
  const T* __restrict key = p.key + key_at;
  const T* __restrict query = p.query + key_at;
  const T* __restrict value = p.value + value_at;
  const T* __restrict dout = p.dout + value_at;
  const T* __restrict decayed = p.decayed + tile_at;
  T* __restrict dkey = p.dkey + key_at;
  T* __restrict dgate = p.dgate + key_at;
  T* __restrict partial = p.partial + tile_at;
  Vector<T> d[std::size_t{n}];
  for (std::int64_t i = 0; i < n; ++i) d[i] = load(slope + i * stride);
  do {
    const Vector<T> a = load(gate), k = load(key), q = load(query);
    Vector<T> dk = load(dkey), dg = load(dgate);
    for (std::int64_t i = 0; i < n; ++i) {
      d[i] += q * dout[i];
      dk += d[i] * value[i];
      dg += d[i] * load(decayed + i * n);
      store(partial + i * n, first ? d[i] * k : load(partial + i * n) + d[i] * k);
      d[i] *= a;
    }
    store(dkey, dk);
    store(dgate, dg);
    gate -= n, key -= n, query -= n, value -= n, dout -= n, dkey -= n, dgate -= n, decayed -= n * n, partial -= n * n;
  } while (--count > 0);
  for (std::int64_t i = 0; i < n; ++i) store(slope + i * stride, d[i]);
}

/// Sums of the lanes of eight (four) neighbouring vectors, as one vector. Every step adds halves of its two inputs that
/// it has brought side by side, with a blend where that will do: two of the four units shuffle, all of them blend.
inline Vector<float> sum_lanes(const float* from) {
  const auto halves = [from](std::int64_t at) {  // vectors at and at + 2
    const Vector<float> a = load(from + 8 * at), b = load(from + 8 * at + 16);
    return __builtin_shufflevector(a, b, 0, 1, 10, 11, 4, 5, 14, 15) +
           __builtin_shufflevector(a, b, 2, 3, 8, 9, 6, 7, 12, 13);
  };
  const auto quarters = [&halves](std::int64_t at) {
    const Vector<float> a = halves(at), b = halves(at + 1);
    const Vector<float> other = __builtin_shufflevector(b, a, 0, 9, 2, 11, 4, 13, 6, 15);
    return __builtin_shufflevector(a, b, 0, 9, 2, 11, 4, 13, 6, 15) +
           __builtin_shufflevector(other, other, 1, 0, 3, 2, 5, 4, 7, 6);
  };
  const Vector<float> a = quarters(0), b = quarters(4);
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 12, 13, 14, 15) +
         __builtin_shufflevector(a, b, 4, 5, 6, 7, 8, 9, 10, 11);
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
void backward_chunk(const GlaSizes& s, const Packed<T>& p, std::int64_t count, const T* start, Ahead& ahead) {
  constexpr std::int64_t n = lanes<T>;
  const std::int64_t block = s.block(n);
  for (std::int64_t v = 0; v < s.values(); v += n) {
    const std::int64_t v_at = v / n * block;
    for (std::int64_t k = 0; k < s.keys(); k += n) {
      const std::int64_t k_at = k / n * block;
      ahead.some();
      state_tile(p, k_at, v_at, count, start != nullptr ? start + k * s.values() + v : nullptr, s.values());
      ahead.some();
      const auto tile = k == 0 ? slope_tile<T, true> : slope_tile<T, false>;
      tile(p, k_at, v_at, count, p.slope + v * s.keys() + k, s.keys());
    }
    for (std::int64_t t = 0; t < count; ++t) store(p.dvalue + v_at + t * n, sum_lanes(p.partial + t * n * n));
  }
}

/// A chunk, document by document from the last to the first. The gradient of a state ends where its document began.
template <class T>
void backward_documents(const GlaSizes& s, const Packed<T>& p, const Documents& documents, std::int64_t count,
                        const T* state, Ahead& ahead) {
  for (std::int64_t end = count, t = count; end > 0; end = t) {
    while (--t > 0 && !documents.begins(t)) continue;
    const bool fresh = documents.begins(t);
    backward_chunk(s, p.from(t), end - t, fresh ? nullptr : state, ahead);
    if (fresh) std::fill_n(p.slope, s.state(), T(0));
  }
}

template <class T>
Ahead backward_ahead(const GlaBackward& a, Place place) {
  const GlaSizes& s = a.sizes;
  Ahead ahead;
  if (!place.advance(s, -s.chunk)) return ahead;
  constexpr std::int64_t n = lanes<T>;
  const Parts next(s, place);
  ahead.rows<T>(a.k, next.keys);
  ahead.rows<T>(a.q, next.queries);
  ahead.rows<T>(a.v, next.values);
  ahead.rows<T>(a.d_o, next.outs);
  const std::int64_t state_row = place.batch * s.heads + place.query_head / s.group, chunk = place.begin / s.chunk;
  const std::int64_t decays = s.blocks(s.keys(), n);
  ahead.elements(row<T>(a.decays, state_row) + chunk * decays, decays);
  ahead.elements(row<T>(a.kept, state_row) + chunk * s.state(), s.state());
  ahead.spread(2 * (s.keys() / n) * (s.values() / n));  // two calls per tile
  return ahead;
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
    const std::int64_t begin = c * s.chunk;
    const Parts parts(s, {batch, query_head, begin});
    p.gate = decays + c * s.blocks(s.keys(), lanes<T>);
    pack(a.k, parts.keys, block, p.key, same);
    pack(a.q, parts.queries, block, p.query, [scale](T x) { return x * scale; });
    pack(a.v, parts.values, block, p.value, same);
    if (a.d_o.data != nullptr)
      pack(a.d_o, parts.outs, block, p.dout, same);
    else
      std::fill_n(p.dout, s.blocks(s.values(), lanes<T>), T(0));
    std::fill_n(p.dgate, 3 * s.blocks(s.keys(), lanes<T>), T(0));  // and dkey, dquery
    Ahead ahead = backward_ahead<T>(a, {batch, query_head, begin});
    backward_documents(s, p, Documents(a.starts, batch, begin), parts.keys.count,
                       row<T>(a.kept, state_row) + c * s.state(), ahead);
    unpack(p.dquery, block, scale, a.dq, parts.queries, a.add_q);
    unpack(p.dkey, block, T(1), a.dk, parts.keys, a.add_k || !first);
    unpack(p.dvalue, block, T(1), a.dv, parts.values, a.add_v || !first);
    unpack(p.dgate, block, T(1), a.dlog_gate, parts.keys, a.add_log_gate || !first);
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
