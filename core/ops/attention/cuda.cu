#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/reduce.h"
#include "core/cuda/tile.h"
#include "core/ops/attention/kernel.h"
#include "core/ops/attention/library_cuda.h"

// A block makes one tile of one result: of o or dq for some queries, of dk or dv for some keys. It walks over the tiles
// of scores that concern it and makes each anew, so that no block waits for another and no sum depends on an order.
// Results wider than a tile are `parts`, with blocks of their own. Products are those of core/cuda/tile.h: Z is the
// kind of tile, which says whether they are full f32 or f64, or of operands in bf16.

namespace phasor::ops {

namespace {

using cuda::Tile;
using cuda::TileRows;

constexpr unsigned warps = 4;  // of a block, in kernels that work warp by warp

/// What a launch knows beside its args. Memory of the queue holds the batch entries from `first` on.
template <class T, class Args>
struct Pass {
  Args a;
  std::int64_t first, batch;  // entries of this launch
  double* curve;              // [batch][query_heads][keys], see write_curve; null: no bias
  double* sums;               // [batch][query_heads][keys]: of dz over queries; null: not wanted
  T* delta;                   // [batch][query_heads][time]: dO_i . o_i
};

/// One head of one batch entry, the entry counted from the first of the launch.
struct Head {
  std::int64_t entry, index;
};

/// First key of the document of query t; see cpu.cpp.
template <class Args>
__device__ std::int64_t document_of(const Args& a, std::int64_t batch, std::int64_t t) {
  if (a.starts.data == nullptr) return 0;
  const std::int64_t begin = a.sizes.past() + row<const std::int32_t>(a.starts, batch)[t];
  return begin > 0 ? begin : 0;
}

/// Sums along the lanes of a warp that begin anew at marked ones; `carry` is the sum so far, before and after.
__device__ double sum_along(double value, bool begins, double& carry) {
  const unsigned lane = cuda::lane_index();
  const unsigned marks = __ballot_sync(cuda::whole_warp, begins) << (31 - lane);  // of the lanes up to this one
  const unsigned before = marks != 0 ? static_cast<unsigned>(__clz(static_cast<int>(marks))) : lane;
  for (unsigned apart = 1; apart < cuda::warp_size; apart *= 2) {
    const double other = __shfl_up_sync(cuda::whole_warp, value, apart);
    if (apart <= before) value += other;
  }
  if (marks == 0) value += carry;
  carry = __shfl_sync(cuda::whole_warp, value, 31);
  return value;
}

/// The bias of (i, j) is c_i - c_j (see bias_curve in cpu.cpp). A warp takes one head.
template <class T, class Args>
__global__ void write_curve(Pass<T, Args> p) {
  const AttentionSizes& s = p.a.sizes;
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * warps + cuda::warp_index();
  if (at >= p.batch * s.query_heads()) return;
  const std::int64_t batch = p.first + at / s.query_heads(), head = at % s.query_heads();
  const double slope = p.a.slopes.data != nullptr ? row<double>(p.a.slopes, 0)[head] : 0.0;
  double carry = 0.0;
  for (std::int64_t from = 0; from < s.keys; from += cuda::warp_size) {
    const std::int64_t j = from + cuda::lane_index(), t = j - s.past();
    double sum = 0.0;
    if (p.a.log_decay.data != nullptr) {
      const bool there = j < s.keys, begins = there && t >= 0 && document_of(p.a, batch, t) == j;
      const double own = there && !begins ? row<T>(p.a.log_decay, batch * s.keys + j)[head] : 0.0;
      sum = sum_along(own, begins, carry);
    }
    if (j < s.keys) p.curve[at * s.keys + j] = sum - slope * static_cast<double>(j);
  }
}

/// dlog_decay_u = -sum_{u' >= u} (sum_i dz_iu'), over one document. A warp takes one head.
template <class T>
__global__ void close_decay(Pass<T, AttentionBackward> p) {
  const AttentionSizes& s = p.a.sizes;
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * warps + cuda::warp_index();
  if (at >= p.batch * s.query_heads()) return;
  const std::int64_t batch = p.first + at / s.query_heads(), head = at % s.query_heads();
  double carry = 0.0;
  for (std::int64_t from = 0; from < s.keys; from += cuda::warp_size) {
    const std::int64_t u = s.keys - 1 - from - cuda::lane_index(), t = u > s.past() ? u - s.past() : 0;
    const bool there = u >= 0, begins = there && (s.time > 0 ? document_of(p.a, batch, t) : 0) == u;
    const double after = sum_along(there && !begins ? -p.sums[at * s.keys + u] : 0.0, begins, carry);
    if (!there) continue;
    T& to = row<T>(p.a.dlog_decay, batch * s.keys + u)[head];
    to = p.a.add_log_decay ? to + static_cast<T>(after) : static_cast<T>(after);
  }
}

/// A thread takes one query of one head, in the order in which `inner` adds dO V^T, and from the same operands: a query
/// that sees one key has dz = 0.
template <class Z, class T = typename Z::Element>
__global__ void write_delta(Pass<T, AttentionBackward> p) {
  const AttentionSizes& s = p.a.sizes;
  const std::int64_t at = cuda::thread_index();
  if (at >= p.batch * s.query_heads() * s.time) return;
  const std::int64_t head = at / s.time % s.query_heads(), t = at % s.time;
  const std::int64_t query = (p.first + at / s.time / s.query_heads()) * s.time + t;
  const T* x = row<T>(p.a.d_o, query) + head * s.value_width;
  const T* y = row<T>(p.a.o, query) + head * s.value_width;
  T sum(0);
  for (std::int64_t i = 0; i < s.value_width; ++i) sum = std::fma(Z::operand(x[i]), y[i], sum);
  p.delta[at] = sum;
}

/// `width` columns of one head of rows first .. min(first + edge, count) - 1 of a batch entry.
template <class Z, class T = typename Z::Element>
__device__ TileRows<T> rows_of(const View& from, std::int64_t batch, std::int64_t count, std::int64_t first,
                               std::int64_t head, std::int64_t width) {
  const std::int64_t left = count - first;
  return {row<T>(from, batch * count + first) + head * width, from.stride,
          left < Z::edge ? static_cast<int>(left) : Z::edge};
}

/// The keys that the thread's queries see in one tile of scores, counted from its first key.
template <class Z>
struct Seen {
  int begin[std::size_t{Z::rows}], end[std::size_t{Z::rows}];
  __device__ bool operator()(int a, int column) const { return column >= begin[a] && column < end[a]; }
};

/// False: no query of the tile sees a key of it. All threads call it.
template <class Z, class Args>
__device__ bool look(const Args& a, std::int64_t batch, std::int64_t first_query, std::int64_t first_key,
                     Seen<Z>& seen) {
  constexpr std::int64_t edge = Z::edge;
  const AttentionSizes& s = a.sizes;
  const auto in_tile = [&](std::int64_t key) {
    const std::int64_t at = key - first_key;
    return static_cast<int>(at < 0 ? 0 : (at > edge ? edge : at));
  };
  int any = 0;
  PHASOR_UNROLL
  for (int i = 0; i < Z::rows; ++i) {
    const std::int64_t t = first_query + Z::row(i), own = s.past() + t;
    seen.begin[i] = seen.end[i] = 0;
    if (t >= s.time) continue;
    std::int64_t begin = document_of(a, batch, t);
    if (s.window > 0 && begin < own - s.window + 1) begin = own - s.window + 1;
    seen.begin[i] = in_tile(begin);
    seen.end[i] = in_tile(s.causal ? own + 1 : s.keys);
    any |= seen.begin[i] < seen.end[i] ? 1 : 0;
  }
  return __syncthreads_or(any) != 0;
}

/// `curve`: of this head, or null.
template <class Z, class Args>
__device__ void add_bias(const Args& a, const Seen<Z>& seen, const double* curve, std::int64_t first_query,
                         std::int64_t first_key, Z& z) {
  if (curve == nullptr) return;
  PHASOR_UNROLL
  for (int i = 0; i < Z::rows; ++i) {
    if (seen.begin[i] >= seen.end[i]) continue;
    const double own = curve[a.sizes.past() + first_query + Z::row(i)];
    PHASOR_UNROLL
    for (int b = 0; b < Z::columns; ++b) {
      const int j = Z::inner_column(b);
      if (seen(i, j)) z.at[i][b] += static_cast<typename Z::Element>(own - curve[first_key + j]);
    }
  }
}

/// Over the threads that share a row.
template <class Z, class T>
__device__ T row_max(T value) {
  for (int apart = 1; apart < Z::row_threads; apart *= 2) {
    const T other = __shfl_xor_sync(cuda::whole_warp, value, apart);
    value = other > value ? other : value;
  }
  return value;
}
template <class Z, class T>
__device__ T row_sum(T value) {
  for (int apart = 1; apart < Z::row_threads; apart *= 2) value += __shfl_xor_sync(cuda::whole_warp, value, apart);
  return value;
}

/// The running softmax of the thread's queries, as the processor has it; `sum` is of the thread's own columns.
template <class Z>
struct Softmax {
  using T = typename Z::Element;
  T largest[std::size_t{Z::rows}], sum[std::size_t{Z::rows}];

  __device__ void clear() {
    PHASOR_UNROLL
    for (int i = 0; i < Z::rows; ++i) {
      largest[i] = sizeof(T) == 4 ? T(-3.4028234663852886e38) : T(-1.7976931348623157e308);  // no infinity from itself
      sum[i] = T(0);
    }
  }
  /// Scores become weights; `out` gets the new maximum too.
  __device__ void add(const Seen<Z>& seen, Z& z, Z& out) {
    PHASOR_UNROLL
    for (int i = 0; i < Z::rows; ++i) {
      T top = largest[i];
      PHASOR_UNROLL
      for (int b = 0; b < Z::columns; ++b)
        if (seen(i, Z::inner_column(b)) && z.at[i][b] > top) top = z.at[i][b];
      top = row_max<Z>(top);
      const T factor = std::exp(largest[i] - top);
      largest[i] = top;
      sum[i] *= factor;
      PHASOR_UNROLL
      for (int b = 0; b < Z::columns; ++b) {
        z.at[i][b] = seen(i, Z::inner_column(b)) ? std::exp(z.at[i][b] - top) : T(0);
        sum[i] += z.at[i][b];
        out.at[i][b] *= factor;
      }
    }
  }
};

/// What a block makes: the longest tiles come first in a causal grid when `backwards`, for queries.
struct Place {
  std::int64_t tile, part;
  Head head;
};
__device__ Place own_place(std::int64_t tiles, std::int64_t heads, std::int64_t parts, bool backwards) {
  const std::int64_t rest = gridDim.x / tiles, tile = blockIdx.x / rest, at = blockIdx.x % rest;
  return {backwards ? tiles - 1 - tile : tile, at % parts, {at / parts / heads, at / parts % heads}};
}

/// First and last tile of keys that concern a tile of queries.
struct Tiles {
  std::int64_t begin, end;
};
template <class Z>
__device__ Tiles keys_for(const AttentionSizes& s, std::int64_t first) {
  constexpr std::int64_t edge = Z::edge;
  const std::int64_t last = s.past() + (first + edge < s.time ? first + edge : s.time);
  const std::int64_t begin = s.window > 0 ? s.past() + first - s.window + 1 : 0;
  return {begin > 0 ? begin / edge : 0, cuda::divide_up(s.causal ? last : s.keys, edge)};
}
/// And the other way round.
template <class Z>
__device__ Tiles queries_for(const AttentionSizes& s, std::int64_t first) {
  constexpr std::int64_t edge = Z::edge;
  const std::int64_t begin = s.causal ? first - s.past() : 0;
  std::int64_t end = s.window > 0 ? first + edge - 1 - s.past() + s.window : s.time;
  if (end > s.time) end = s.time;
  return {begin > 0 ? begin / edge : 0, end > 0 ? cuda::divide_up(end, edge) : 0};
}

template <class Z, class T = typename Z::Element>
__global__ void __launch_bounds__(cuda::tile_threads, 2) forward_tile(Pass<T, AttentionForward> p, std::int64_t parts) {
  constexpr std::int64_t edge = Z::edge;
  const AttentionForward& a = p.a;
  const AttentionSizes& s = a.sizes;
  auto* stage = cuda::shared_memory<typename Z::Operand>();
  auto* kept = stage + Z::stage;
  const Place at = own_place(cuda::divide_up(s.time, edge), s.query_heads(), parts, true);
  const std::int64_t batch = p.first + at.head.entry, head = at.head.index, first = at.tile * edge;
  const std::int64_t row_of_head = at.head.entry * s.query_heads() + head;
  const double* curve = p.curve != nullptr ? p.curve + row_of_head * s.keys : nullptr;
  const TileRows<T> q = rows_of<Z>(a.q, batch, s.time, first, head, s.key_width);
  Z z, out;
  Softmax<Z> softmax;
  Seen<Z> seen;
  out.clear();
  softmax.clear();
  const Tiles tiles = keys_for<Z>(s, first);
  for (std::int64_t j = tiles.begin * edge; j < tiles.end * edge; j += edge) {
    if (!look(a, batch, first, j, seen)) continue;
    inner(z, q, rows_of<Z>(a.k, batch, s.keys, j, head / s.group, s.key_width), s.key_width, stage,
          static_cast<T>(a.scale));
    add_bias(a, seen, curve, first, j, z);
    softmax.add(seen, z, out);
    cuda::keep<false>(z, kept);
    outer(out, kept, rows_of<Z>(a.v, batch, s.keys, j, head / s.group, s.value_width), at.part * edge, s.value_width,
          stage);
  }
  PHASOR_UNROLL
  for (int i = 0; i < Z::rows; ++i) {
    const T sum = row_sum<Z>(softmax.sum[i]);
    if (Z::row(i) >= q.rows) continue;
    const std::int64_t t = first + Z::row(i);
    T* o = row<T>(a.o, batch * s.time + t) + head * s.value_width;
    PHASOR_UNROLL
    for (int b = 0; b < Z::columns; ++b) {
      const std::int64_t column = at.part * edge + Z::outer_column(b);
      if (column < s.value_width) o[column] = out.at[i][b] / sum;
    }
    if (at.part == 0 && threadIdx.x % Z::row_threads == 0)
      row<T>(a.lse, batch * s.query_heads() + head)[t] = softmax.largest[i] + std::log(sum);
  }
}

/// The weights p of a tile in place of its products, and dz in place of dO V^T when it is there.
template <class Z, class T = typename Z::Element>
__device__ void weigh(const Pass<T, AttentionBackward>& p, const Head& head, std::int64_t first_query,
                      std::int64_t first_key, const Seen<Z>& seen, Z& z, Z* dz) {
  const AttentionSizes& s = p.a.sizes;
  const std::int64_t at = head.entry * s.query_heads() + head.index;
  add_bias(p.a, seen, p.curve != nullptr ? p.curve + at * s.keys : nullptr, first_query, first_key, z);
  const T* lse = row<T>(p.a.lse, p.first * s.query_heads() + at) + first_query;
  const T* delta = p.delta + at * s.time + first_query;
  PHASOR_UNROLL
  for (int i = 0; i < Z::rows; ++i) {
    const bool some = seen.begin[i] < seen.end[i];
    const T own = some ? lse[Z::row(i)] : T(0), mean = some && dz != nullptr ? delta[Z::row(i)] : T(0);
    PHASOR_UNROLL
    for (int b = 0; b < Z::columns; ++b) {
      const bool there = seen(i, Z::inner_column(b));
      z.at[i][b] = there ? std::exp(z.at[i][b] - own) : T(0);
      if (dz != nullptr) dz->at[i][b] = there ? z.at[i][b] * (dz->at[i][b] - mean) : T(0);
    }
  }
}

/// Columns of a tile made by `outer` into a gradient.
template <class Z, class T = typename Z::Element>
__device__ void write(const Z& from, T factor, const View& to, std::int64_t first_row, std::int64_t rows,
                      std::int64_t head, std::int64_t part, std::int64_t width, bool add) {
  PHASOR_UNROLL
  for (int i = 0; i < Z::rows; ++i) {
    if (Z::row(i) >= rows) continue;
    T* at = row<T>(to, first_row + Z::row(i)) + head * width;
    PHASOR_UNROLL
    for (int b = 0; b < Z::columns; ++b) {
      const std::int64_t column = part * Z::edge + Z::outer_column(b);
      if (column >= width) continue;
      const T value = factor * from.at[i][b];
      at[column] = add ? at[column] + value : value;
    }
  }
}

template <class Z, class T = typename Z::Element>
__global__ void __launch_bounds__(cuda::tile_threads, 2) query_tile(Pass<T, AttentionBackward> p, std::int64_t parts) {
  constexpr std::int64_t edge = Z::edge;
  const AttentionBackward& a = p.a;
  const AttentionSizes& s = a.sizes;
  auto* stage = cuda::shared_memory<typename Z::Operand>();
  auto* kept = stage + Z::stage;
  const Place at = own_place(cuda::divide_up(s.time, edge), s.query_heads(), parts, true);
  const std::int64_t batch = p.first + at.head.entry, head = at.head.index, first = at.tile * edge;
  const TileRows<T> q = rows_of<Z>(a.q, batch, s.time, first, head, s.key_width);
  const TileRows<T> d_o = rows_of<Z>(a.d_o, batch, s.time, first, head, s.value_width);
  Z z, dz, out;
  Seen<Z> seen;
  out.clear();
  const Tiles tiles = keys_for<Z>(s, first);
  for (std::int64_t j = tiles.begin * edge; j < tiles.end * edge; j += edge) {
    if (!look(a, batch, first, j, seen)) continue;
    const TileRows<T> k = rows_of<Z>(a.k, batch, s.keys, j, head / s.group, s.key_width);
    inner(z, q, k, s.key_width, stage, static_cast<T>(a.scale));
    inner(dz, d_o, rows_of<Z>(a.v, batch, s.keys, j, head / s.group, s.value_width), s.value_width, stage);
    weigh(p, at.head, first, j, seen, z, &dz);
    cuda::keep<false>(dz, kept);
    outer(out, kept, k, at.part * edge, s.key_width, stage);
  }
  write(out, static_cast<T>(a.scale), a.dq, batch * s.time + first, q.rows, head, at.part, s.key_width, a.add_q);
}

/// dk and, of the first part, the sums of dz for the decay; or dv when `values`.
template <class Z, bool values, class T = typename Z::Element>
__global__ void __launch_bounds__(cuda::tile_threads, 2) key_tile(Pass<T, AttentionBackward> p, std::int64_t parts) {
  constexpr std::int64_t edge = Z::edge;
  const AttentionBackward& a = p.a;
  const AttentionSizes& s = a.sizes;
  auto* stage = cuda::shared_memory<typename Z::Operand>();
  auto* kept = stage + Z::stage;
  const Place at = own_place(cuda::divide_up(s.keys, edge), s.heads, parts, false);
  const std::int64_t batch = p.first + at.head.entry, first = at.tile * edge;
  const TileRows<T> k = rows_of<Z>(a.k, batch, s.keys, first, at.head.index, s.key_width);
  const TileRows<T> v = rows_of<Z>(a.v, batch, s.keys, first, at.head.index, s.value_width);
  const Tiles tiles = queries_for<Z>(s, first);
  const int own = static_cast<int>(threadIdx.x);
  Z z, dz, out;
  Seen<Z> seen;
  out.clear();
  for (std::int64_t g = 0; g < s.group; ++g) {
    const Head head{at.head.entry, at.head.index * s.group + g};
    double sum = 0.0;  // of column threadIdx.x of dz
    for (std::int64_t t = tiles.begin * edge; t < tiles.end * edge; t += edge) {
      if (!look(a, batch, t, first, seen)) continue;
      const TileRows<T> q = rows_of<Z>(a.q, batch, s.time, t, head.index, s.key_width);
      const TileRows<T> d_o = rows_of<Z>(a.d_o, batch, s.time, t, head.index, s.value_width);
      inner(z, q, k, s.key_width, stage, static_cast<T>(a.scale));
      if constexpr (!values) inner(dz, d_o, v, s.value_width, stage);
      weigh(p, head, t, first, seen, z, values ? nullptr : &dz);
      cuda::keep<true>(values ? z : dz, kept);
      outer(out, kept, values ? d_o : q, at.part * edge, values ? s.value_width : s.key_width, stage);
      if (values || p.sums == nullptr || own >= Z::edge) continue;
      T here(0);
      for (int i = 0; i < Z::edge; ++i) here += Z::kept(kept[own * Z::stride + i]);
      sum += static_cast<double>(here);
    }
    if (!values && p.sums != nullptr && at.part == 0 && own < k.rows)
      p.sums[(head.entry * s.query_heads() + head.index) * s.keys + first + own] = sum;
  }
  if constexpr (values)
    write(out, T(1), a.dv, batch * s.keys + first, k.rows, at.head.index, at.part, s.value_width, a.add_v);
  else if (a.dk.data != nullptr)
    write(out, static_cast<T>(a.scale), a.dk, batch * s.keys + first, k.rows, at.head.index, at.part, s.key_width,
          a.add_k);
}

/// Calls `run` with `batch` entries at a time, as many as `doubles` elements of scratch memory for each allow.
template <class T, class Args, class Run>
void in_pieces(const cuda::Queue& queue, const Args& a, std::int64_t doubles, Run run) {
  const auto most = static_cast<std::int64_t>((queue.scratch_bytes - cuda::sums_bytes) / sizeof(double));
  const std::int64_t piece = doubles > 0 && doubles <= most ? most / doubles : a.sizes.batch;
  for (std::int64_t first = 0; first < a.sizes.batch; first += piece) {
    const std::int64_t batch = a.sizes.batch - first < piece ? a.sizes.batch - first : piece;
    double* memory = cuda::scratch<double>(queue, batch * doubles);
    run(Pass<T, Args>{a, first, batch, nullptr, nullptr, nullptr}, memory);
  }
}

template <class Z, class... Parameters, class... Args>
void start_tiles(const cuda::Queue& queue, std::int64_t rows, std::int64_t heads, std::int64_t width,
                 void (*kernel)(Parameters...), const Args&... args) {
  const std::int64_t parts = cuda::divide_up(width, Z::edge), tiles = cuda::divide_up(rows, Z::edge);
  cuda::start(queue, dim3(static_cast<unsigned>(tiles * heads * parts)), dim3(cuda::tile_threads),
              (Z::stage + Z::size) * sizeof(typename Z::Operand), kernel, args..., parts);
}

template <class... Parameters, class... Args>
void start_warps(const cuda::Queue& queue, std::int64_t count, void (*kernel)(Parameters...), const Args&... args) {
  cuda::start(queue, dim3(static_cast<unsigned>(cuda::divide_up(count, warps))), dim3(warps * cuda::warp_size), 0,
              kernel, args...);
}

template <class Args>
std::int64_t bias_size(const Args& a) {
  return a.curve.data != nullptr ? a.sizes.query_heads() * a.sizes.keys : 0;
}

template <class Z>
void run(const cuda::Queue& queue, const AttentionForward& a) {
  using T = typename Z::Element;
  const AttentionSizes& s = a.sizes;
  in_pieces<T>(queue, a, bias_size(a), [&](Pass<T, AttentionForward> p, double* memory) {
    if (a.curve.data != nullptr) {
      p.curve = memory;
      start_warps(queue, p.batch * s.query_heads(), write_curve<T, AttentionForward>, p);
    }
    start_tiles<Z>(queue, s.time, p.batch * s.query_heads(), s.value_width, forward_tile<Z>, p);
  });
}

template <class Z>
void run(const cuda::Queue& queue, const AttentionBackward& a) {
  using T = typename Z::Element;
  const AttentionSizes& s = a.sizes;
  const bool decays = a.dlog_decay.data != nullptr;
  const std::int64_t sums_size = decays ? s.query_heads() * s.keys : 0, delta_size = s.query_heads() * s.time;
  in_pieces<T>(queue, a, bias_size(a) + sums_size + delta_size, [&](Pass<T, AttentionBackward> p, double* memory) {
    const std::int64_t heads = p.batch * s.query_heads();
    if (a.curve.data != nullptr) p.curve = memory;
    if (decays) p.sums = memory + p.batch * bias_size(a);
    p.delta = reinterpret_cast<T*>(memory + p.batch * (bias_size(a) + sums_size));
    if (a.curve.data != nullptr) start_warps(queue, heads, write_curve<T, AttentionBackward>, p);
    cuda::start_each(queue, heads * s.time, write_delta<Z>, p);
    if (a.dq.data != nullptr) start_tiles<Z>(queue, s.time, heads, s.key_width, query_tile<Z>, p);
    if (a.dk.data != nullptr || decays)
      start_tiles<Z>(queue, s.keys, p.batch * s.heads, s.key_width, key_tile<Z, false>, p);
    if (a.dv.data != nullptr) start_tiles<Z>(queue, s.keys, p.batch * s.heads, s.value_width, key_tile<Z, true>, p);
    if (decays) start_warps(queue, heads, close_decay<T>, p);
  });
}

template <class Args>
void in_f32(const cuda::Queue& queue, const Args& a) {
  if (a.copies.data != nullptr) return attention_library::run(queue, a);
  a.precision == ProductPrecision::bf16 ? run<cuda::TensorTile>(queue, a) : run<Tile<float>>(queue, a);
}

}  // namespace

void attention_cuda(cuda::Kernels& kernels) {
  kernels.add(attention_forward, in_f32<AttentionForward>, run<Tile<double>>);
  kernels.add(attention_backward, in_f32<AttentionBackward>, run<Tile<double>>);
}

}  // namespace phasor::ops
