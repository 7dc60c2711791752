#pragma once

#include "core/ops/delta_rule/chunk_cuda.h"

// Backwards, D the gradient of S_n. First a block runs from the last chunk to the first with 64 columns of values,
//     y = h + P^T dO + X^T B (h + P^T dO),  h = L_n K D,   de = B y,   D_0 = b_n D + (b Q)^T dO - (b K)^T de
// then, for all chunks beside each other,
//     dP = tril(dO U^T) (.) L,  dM = -stril(de U^T) (.) L,  dQ = b dO S_0^T + dP K,
//     dK = (-b de S_0^T + dM K) + (L_n U D^T + dP^T Q + dM^T K),  dbeta_i = y_i . e_i
// In dK the first sum is of paths that end at a step, the second of paths that begin there.

namespace phasor::ops::delta_chunks {

/// y, dv and the gradients of states.
template <int tiles>
__global__ void __launch_bounds__(cuda::chunk_threads, tiles > 2 ? 2 : 3)
    backward_chunks(DeltaRuleBackward a, DeltaRuleChunks c, std::int64_t blocks) {
  constexpr int pieces = 4 * tiles, stride = Operands<tiles>::stride;
  const DeltaRuleSizes& s = a.sizes;
  const Operands<tiles> in;
  __shared__ Gates gates;
  const auto [state_row, block] = cuda::place_of(blockIdx.x, blocks);
  const std::int64_t v = block * edge + cuda::warp_index() * cuda::strip_rows;
  const bool own = v < s.value_width;
  Strip<8 * tiles> slope;
  if (own) load_state(slope, a.d_state.data != nullptr ? row<float>(a.d_state, state_row) : nullptr, s, v);
  for (std::int64_t chunk = c.count() - 1; chunk >= 0; --chunk) {
    const Place at = place_at(s, state_row, chunk);
    Strip<8> y;
    y.clear();
    if (own && a.d_o.data != nullptr) each_value(y, a.d_o, s, at, v, [](float& x, float value, int) { x = value; });
    LeftPiece d_o[4], d_e[4];
    PHASOR_UNROLL
    for (int i = 0; i < 4; ++i) d_o[i] = y.left(i);
    in.stage_chunk(a, at, gates);
    if (!own) continue;
    keep_state(slope, state_of(slope_states(a.slopes, c, at), c, at), c, v);

    y.clear();
    PHASOR_UNROLL
    for (int d = 0; d < pieces; ++d) y.template add<true>(slope.left(d), in.key + 16 * d, stride);
    y.each([&](float& x, int, int i) { x *= gates.until[i]; });
    PHASOR_UNROLL
    for (int i = 0; i < 4; ++i)
      y.template add<false>(d_o[i], in.seen + 16 * i * square_stride, square_stride, 16 * (i + 1));
    PHASOR_UNROLL
    for (int i = 0; i < 4; ++i) d_e[i] = scaled_left(y, i, [&](int j) { return gates.beta[j]; });
    PHASOR_UNROLL
    for (int i = 0; i < 4; ++i)
      y.template add<false>(d_e[i], in.solved + 16 * i * square_stride, square_stride, 16 * (i + 1));
    keep_vectors(y, vectors_of(a.slopes, c, at), c, v, at.count);
    if (a.dv.data != nullptr)
      each_value(y, a.dv, s, at, v,
                 [&](float x, float& to, int i) { to = a.add_v ? to + gates.beta[i] * x : gates.beta[i] * x; });

    const float through = gates.through();
    slope.each([through](float& x, int, int) { x *= through; });
    PHASOR_UNROLL
    for (int i = 0; i < 4; ++i) {
      slope.template add<false>(scaled_again(d_o[i], i, gates.since), in.query + 16 * i * stride, stride);
      slope.template add<false>(scaled_left(y, i, [&](int j) { return -gates.since[j] * gates.beta[j]; }),
                                in.key + 16 * i * stride, stride);
    }
  }
  if (own) store_state(slope, a.dstate_in, state_row, s, v, a.add_state);
}

constexpr unsigned gradient_threads = 256;
constexpr std::size_t gradient_bytes = std::size_t{7 * square} * sizeof(Bf16);

/// dq, dk, dbeta and what the decays' gradients are made of: a block takes a chunk of a head and a tile of keys, value
/// head after value head; of the squares that it makes a warp has 16 rows and 32 columns.
struct Gradients {
  const DeltaRuleBackward& a;
  const DeltaRuleChunks& c;
  const Gates& gates;
  Bf16 *query, *key, *d_o, *error, *slope, *start, *end;
  std::int64_t tile;
  int rows, columns;
  Strip<4> dp, dm, dq, ended, begun;  // ended, begun: the two sums of dk

  __device__ Gradients(const DeltaRuleBackward& args, const DeltaRuleChunks& chunks, const Gates& of,
                       std::int64_t own_tile)
      : a(args), c(chunks), gates(of), query(cuda::shared_memory<Bf16>()), tile(own_tile) {
    key = query + square, d_o = key + square, error = d_o + square, slope = error + square;
    start = slope + square, end = start + square;
    rows = static_cast<int>(cuda::warp_index()) % cuda::chunk_warps * cuda::strip_rows;
    columns = static_cast<int>(cuda::warp_index()) / cuda::chunk_warps * (edge / 2);
  }

  /// Products with values. What <S_0, D> gets from the elements that the calling thread has brought.
  __device__ float values(const Place& at) {
    const DeltaRuleSizes& s = a.sizes;
    const Bf16* states = state_of(row<float>(a.kept, at.state_row), c, at) + tile * edge;
    const Bf16* slopes = state_of(slope_states(a.slopes, c, at), c, at) + tile * edge;
    const Bf16 *e = vectors_of(a.errors, c, at), *y = vectors_of(a.slopes, c, at);
    dp.clear(), dm.clear(), dq.clear(), ended.clear(), begun.clear();
    float product = 0.0f;
    for (std::int64_t v = 0; v < s.value_width; v += edge) {
      const int given = a.d_o.data != nullptr ? at.count : 0;
      const float* from = given > 0 ? row<float>(a.d_o, at.first) + at.value_head * s.value_width + v : nullptr;
      __syncthreads();
      stage<edge, gradient_threads>(d_o, from, a.d_o.stride, given, s.value_width - v, 1.0f);
      copy_square<gradient_threads>(error, e + v, c.values, at.count, c.values - v);
      __syncwarp();  // not all loads at once
      copy_square<gradient_threads>(slope, y + v, c.values, at.count, c.values - v);
      copy_square<gradient_threads>(start, states + v * c.keys, c.keys, c.values - v, c.keys - tile * edge);
      __syncwarp();
      copy_square<gradient_threads>(end, slopes + v * c.keys, c.keys, c.values - v, c.keys - tile * edge);
      __syncthreads();
      if (a.dlog_decay.data != nullptr) product += own_products();
      PHASOR_ONE_BY_ONE
      for (int k = 0; k < edge; k += 16) {
        const int below = rows + 16 - columns;  // columns of the triangle
        const Bf16 *const right = error + columns * square_stride + k, *const state =
                                                                           start + k * square_stride + columns;
        const LeftPiece of_o = cuda::left_piece<false>(d_o + rows * square_stride + k, square_stride);
        if (below > 0) dp.add<true>(of_o, right, square_stride, below);
        dq.add<false>(of_o, state, square_stride);
        const LeftPiece of_y = cuda::left_piece<false>(slope + rows * square_stride + k, square_stride);
        if (below > 0) dm.add<true>(of_y, right, square_stride, below);
        ended.add<false>(of_y, state, square_stride);
        const LeftPiece of_e = cuda::left_piece<false>(error + rows * square_stride + k, square_stride);
        begun.add<false>(of_e, end + k * square_stride + columns, square_stride);
      }
    }
    return product;
  }
  __device__ float own_products() const {
    float sum = 0.0f;
    for (int e = static_cast<int>(threadIdx.x); e < edge * edge / 2; e += static_cast<int>(gradient_threads)) {
      const int place = e / (edge / 2) * square_stride + 2 * (e % (edge / 2));
      sum += cuda::to_float(start[place]) * cuda::to_float(end[place]) +
             cuda::to_float(start[place + 1]) * cuda::to_float(end[place + 1]);
    }
    return sum;
  }

  /// Decays and beta; dbeta on the way. What comes into the chunk, of the calling thread.
  __device__ float decay(const Place& at) {
    float before = 0.0f;
    PHASOR_UNROLL
    for (int n = 0; n < 4; ++n) {
      PHASOR_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int i = rows + Strip<4>::row(e), j = columns + Strip<4>::column(n, e);
        const float decay = j <= i ? gates.between(i, j) * gates.beta[j] : 0.0f;
        if (i == j && i < at.count && tile == 0 && a.dbeta.data != nullptr) {
          float& to = row<float>(a.dbeta, at.first + i)[at.value_head];
          to = a.add_beta ? to + dm.at[n][e] : dm.at[n][e];
        }
        dp.at[n][e] *= decay;
        dm.at[n][e] *= j < i ? -decay * gates.beta[i] : 0.0f;
        dq.at[n][e] *= gates.since[i];
        ended.at[n][e] *= -gates.since[i] * gates.beta[i];
        begun.at[n][e] *= gates.until[i] * gates.beta[i];
        before += element(query, i, j) * dq.at[n][e] + element(key, i, j) * ended.at[n][e];
      }
    }
    return before;
  }
  __device__ static float element(const Bf16* of, int i, int j) { return cuda::to_float(of[i * square_stride + j]); }

  /// Products with scores, which take the place of dO and e.
  __device__ void scores() {
    __syncthreads();
    dp.keep<false>(d_o + rows * square_stride + columns, square_stride);
    dm.keep<false>(error + rows * square_stride + columns, square_stride);
    __syncthreads();
    for (int j = 0; j <= rows; j += 16) {
      dq.add<false>(cuda::left_piece<false>(d_o + rows * square_stride + j, square_stride),
                    key + j * square_stride + columns, square_stride);
      ended.add<false>(cuda::left_piece<false>(error + rows * square_stride + j, square_stride),
                       key + j * square_stride + columns, square_stride);
    }
    for (int i = rows; i < edge; i += 16) {
      begun.add<false>(cuda::left_piece<true>(d_o + i * square_stride + rows, square_stride),
                       query + i * square_stride + columns, square_stride);
      begun.add<false>(cuda::left_piece<true>(error + i * square_stride + rows, square_stride),
                       key + i * square_stride + columns, square_stride);
    }
  }

  __device__ void write(const Place& at, bool more) const {
    const DeltaRuleSizes& s = a.sizes;
    const std::int64_t k = tile * edge + columns + Strip<4>::column(0, 0), column = at.head * s.key_width + k;
    PHASOR_UNROLL
    for (int e = 0; e < 4; e += 2) {
      const int i = rows + Strip<4>::row(e);
      if (i >= at.count) return;
      float* to_q = a.dq.data != nullptr ? row<float>(a.dq, at.first + i) + column : nullptr;
      float* to_k = a.dk.data != nullptr ? row<float>(a.dk, at.first + i) + column : nullptr;
      PHASOR_UNROLL
      for (int n = 0; n < 4; ++n) {
        PHASOR_UNROLL
        for (int j = 0; j < 2; ++j) {
          if (k + 8 * n + j >= s.key_width) continue;
          const float q = static_cast<float>(a.scale) * dq.at[n][e + j], keys = ended.at[n][e + j] + begun.at[n][e + j];
          if (to_q != nullptr) to_q[8 * n + j] = a.add_q || more ? to_q[8 * n + j] + q : q;
          if (to_k != nullptr) to_k[8 * n + j] = a.add_k || more ? to_k[8 * n + j] + keys : keys;
        }
      }
    }
  }

  /// By how much the gradient of step i + 1's log decay differs from that of step i, and that of the first: a path
  /// counts for every step that it passes, so k . (begun) - q . dq - k . (ended) for the paths that begin and end at i.
  __device__ void parts(const Place& at, float before) {
    __shared__ float halves[2][steps], shared[cuda::warp_size];
    float sums[2] = {0.0f, 0.0f};  // of the two rows of a thread
    PHASOR_UNROLL
    for (int n = 0; n < 4; ++n) {
      PHASOR_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int i = rows + Strip<4>::row(e), k = columns + Strip<4>::column(n, e);
        sums[e / 2] += element(key, i, k) * (begun.at[n][e] - ended.at[n][e]) - element(query, i, k) * dq.at[n][e];
      }
    }
    PHASOR_UNROLL
    for (int half = 0; half < 2; ++half) {
      for (int apart = 1; apart < 4; apart *= 2) sums[half] += __shfl_xor_sync(cuda::whole_warp, sums[half], apart);
      if (cuda::lane_index() % 4 == 0) halves[columns > 0 ? 1 : 0][rows + Strip<4>::row(2 * half)] = sums[half];
    }
    const float all = cuda::block_sum(before, shared);
    __syncthreads();
    float* to = slope_parts(a.slopes, c, at.state_row);
    const int i = static_cast<int>(threadIdx.x);
    if (i < at.count) to[tile * c.time + std::int64_t{at.chunk} * steps + i] = halves[0][i] + halves[1][i];
    if (i == 0) to[c.tiles * c.time + tile * c.count() + at.chunk] = all;
  }
};

template <class Args>
__global__ void __launch_bounds__(gradient_threads, 2) chunk_gradients(Args a, DeltaRuleChunks c) {
  const DeltaRuleSizes& s = a.sizes;
  __shared__ Gates gates;
  const auto [chunk_row, tile] = cuda::place_of(blockIdx.x, c.tiles);
  const auto [head_row, chunk] = cuda::place_of(chunk_row, c.count());
  const std::int64_t batch = head_row / s.heads, head = head_row % s.heads;
  Gradients of(a, c, gates, tile);
  for (std::int64_t g = 0; g < s.group; ++g) {
    const Place at = place_at(s, batch * s.value_heads() + head * s.group + g, chunk);
    const std::int64_t column = head * s.key_width + tile * edge, left = s.key_width - tile * edge;
    __syncthreads();
    if (cuda::warp_index() == 0) gates.read(a, at);
    if (g == 0) {
      stage<edge, gradient_threads>(of.query, row<float>(a.q, at.first) + column, a.q.stride, at.count, left,
                                    static_cast<float>(a.scale));
      stage<edge, gradient_threads>(of.key, row<float>(a.k, at.first) + column, a.k.stride, at.count, left, 1.0f);
    }
    const float product = of.values(at);
    const float before = of.decay(at) + gates.through() * product;
    of.scores();
    of.write(at, g > 0);
    if (a.dlog_decay.data != nullptr) of.parts(at, before);
  }
}

/// The gradients of the decays of a chunk. Nothing passes a cut, and not even a rounding error shall.
template <class Args>
__global__ void close_decays(Args a, DeltaRuleChunks c) {
  const DeltaRuleSizes& s = a.sizes;
  const auto [state_row, chunk] = cuda::place_of(cuda::thread_index(), c.count());
  if (state_row >= s.batch * s.value_heads()) return;
  const Place at = place_at(s, state_row, chunk);
  const float* parts = slope_parts(a.slopes, c, state_row);
  float passing = 0.0f;
  for (std::int64_t tile = 0; tile < c.tiles; ++tile) passing += parts[c.tiles * c.time + tile * c.count() + chunk];
  for (int i = 0; i < at.count; ++i) {
    if (decay_at(a, at, i).cut) passing = 0.0f;
    float& to = row<float>(a.dlog_decay, at.first + i)[at.value_head];
    to = a.add_log_decay ? to + passing : passing;
    for (std::int64_t tile = 0; tile < c.tiles; ++tile) passing += parts[tile * c.time + chunk * steps + i];
  }
}

template <int tiles>
void start_backward(const cuda::Queue& queue, const DeltaRuleBackward& a) {
  const DeltaRuleSizes& s = a.sizes;
  const DeltaRuleChunks c(s);
  const std::int64_t rows = s.batch * s.value_heads(), blocks = cuda::divide_up(s.value_width, edge);
  cuda::start(queue, dim3(static_cast<unsigned>(rows * blocks)), dim3(cuda::chunk_threads), Operands<tiles>::bytes,
              backward_chunks<tiles>, a, c, blocks);
  if (a.dq.data == nullptr && a.dk.data == nullptr && a.dbeta.data == nullptr && a.dlog_decay.data == nullptr) return;
  cuda::start(queue, dim3(static_cast<unsigned>(s.batch * s.heads * c.count() * c.tiles)), dim3(gradient_threads),
              gradient_bytes, chunk_gradients<DeltaRuleBackward>, a, c);
  if (a.dlog_decay.data != nullptr) cuda::start_each(queue, rows * c.count(), close_decays<DeltaRuleBackward>, a, c);
}

}  // namespace phasor::ops::delta_chunks
