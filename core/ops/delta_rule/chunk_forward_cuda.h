#pragma once

#include "core/ops/delta_rule/chunk_cuda.h"

// Forwards. In a chunk, with L_ij the decay from step j to step i, b_i that from before the chunk to i, B = diag(beta)
// and Q times scale,
//     P = tril(Q K^T (.) L),  M = stril(K K^T (.) L),  X = -M (I + B M)^-1,  r = V - b K S_0,
//     e = (I + M B)^-1 r = r + X B r,  u = B e,  O = b Q S_0 + P u,  S_n = b_n S_0 + (L_n K)^T u
// P and X are made for all chunks beside each other; then a block runs through the chunks of 64 columns of values.

namespace phasor::ops::delta_chunks {

/// Shared memory of write_scores: queries and keys, and in their place M^T and X in f32.
constexpr int column_stride = steps + 4;  // of M^T: eight rows fall into all banks
constexpr std::size_t scores_bytes = std::size_t{steps * column_stride + steps * steps} * sizeof(float);
static_assert(scores_bytes >= std::size_t{2 * square} * sizeof(Bf16));

/// A thread makes column j of X, (I + M B) X = -M, 16 rows at a time: first what the rows before bring, then what they
/// do to each other. `m`: M^T, zeros where there is no row below; rows of X are 64.
__device__ inline void solve_column(const float* m, const float* beta, float* x, int j) {
  constexpr int block = 16;
  for (int first = 0; first < steps; first += block) {
    float own[std::size_t{block}];
    PHASOR_UNROLL
    for (int r = 0; r < block; ++r) own[r] = -m[j * column_stride + first + r];
    for (int l = j / static_cast<int>(cuda::warp_size) * static_cast<int>(cuda::warp_size); l < first; ++l) {
      const float factor = beta[l] * x[l * steps + j];
      PHASOR_UNROLL
      for (int r = 0; r < block; ++r) own[r] -= m[l * column_stride + first + r] * factor;
    }
    PHASOR_UNROLL
    for (int l = 0; l < block; ++l) {
      x[(first + l) * steps + j] = own[l];
      const float factor = beta[first + l] * own[l];
      PHASOR_UNROLL
      for (int r = l + 1; r < block; ++r) own[r] -= m[(first + l) * column_stride + first + r] * factor;
    }
  }
}

/// P and X. A block takes a chunk of a value head, a warp 16 of its steps.
template <class Args>
__global__ void __launch_bounds__(cuda::chunk_threads, 4) write_scores(Args a, DeltaRuleChunks c) {
  const DeltaRuleSizes& s = a.sizes;
  __shared__ Gates gates;
  Bf16* query = cuda::shared_memory<Bf16>();
  Bf16* key = query + square;
  float* m = cuda::shared_memory<float>();
  float* x = m + steps * column_stride;
  const auto [state_row, chunk] = cuda::place_of(blockIdx.x, c.count());
  const Place at = place_at(s, state_row, chunk);
  const int warp = static_cast<int>(cuda::warp_index()), rows = warp * cuda::strip_rows;
  if (warp == 0) gates.read(a, at);
  Strip<8> seen, keys;
  seen.clear();
  keys.clear();
  for (std::int64_t tile = 0; tile < s.key_width; tile += edge) {
    const std::int64_t column = at.head * s.key_width + tile;
    __syncthreads();
    stage<edge, cuda::chunk_threads>(query, row<float>(a.q, at.first) + column, a.q.stride, at.count,
                                     s.key_width - tile, static_cast<float>(a.scale));
    stage<edge, cuda::chunk_threads>(key, row<float>(a.k, at.first) + column, a.k.stride, at.count, s.key_width - tile,
                                     1.0f);
    __syncthreads();
    seen.add<false, true>(query + rows * square_stride, square_stride, key, square_stride, edge, rows + 16);
    keys.add<false, true>(key + rows * square_stride, square_stride, key, square_stride, edge, rows + 16);
  }
  __syncthreads();
  PHASOR_UNROLL
  for (int n = 0; n < 8; ++n) {
    PHASOR_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int i = rows + Strip<8>::row(e), j = Strip<8>::column(n, e);
      const float decay = j <= i ? gates.between(i, j) : 0.0f;
      seen.at[n][e] *= decay;
      m[j * column_stride + i] = j < i ? keys.at[n][e] * decay : 0.0f;
    }
  }
  Bf16* to = scores_of(a.scores, at);
  seen.keep<false>(to + rows * steps, steps);
  __syncthreads();
  if (threadIdx.x < steps) solve_column(m, gates.beta, x, static_cast<int>(threadIdx.x));
  __syncthreads();
  auto* pairs = reinterpret_cast<std::uint32_t*>(to + steps * steps);
  for (int e = static_cast<int>(threadIdx.x); e < steps * steps / 2; e += static_cast<int>(cuda::chunk_threads))
    pairs[e] = cuda::bf16_pair(x[2 * e], x[2 * e + 1]);
}

/// += left right^T over steps 16 c .. 16 c + 15 of the right operand's columns, whose rows before 16 c are zeros there.
__device__ inline void add_from(Strip<8>& to, const LeftPiece& left, const Bf16* right, int c) {
  PHASOR_UNROLL
  for (int n = 2 * c; n < 8; n += 2) {
    const int lane = static_cast<int>(cuda::lane_index());
    std::uint32_t words[4];
    cuda::load_matrices<false>(right + (8 * n + lane % 8 + lane / 16 * 8) * square_stride + 16 * c + lane / 8 % 2 * 8,
                               words);
    const std::uint32_t first[2] = {words[0], words[1]}, second[2] = {words[2], words[3]};
    cuda::mma_bf16(to.at[n], left.word, first);
    cuda::mma_bf16(to.at[n + 1], left.word, second);
  }
}

/// o, e and states: a block runs through the chunks of a value head with 64 columns of values.
template <int tiles>
__global__ void __launch_bounds__(cuda::chunk_threads, tiles > 1 ? 2 : 3)
    forward_chunks(DeltaRuleForward a, DeltaRuleChunks c, std::int64_t blocks) {
  constexpr int pieces = 4 * tiles, stride = Operands<tiles>::stride;
  const DeltaRuleSizes& s = a.sizes;
  const Operands<tiles> in;
  __shared__ Gates gates;
  const auto [state_row, block] = cuda::place_of(blockIdx.x, blocks);
  const std::int64_t v = block * edge + cuda::warp_index() * cuda::strip_rows;
  const bool own = v < s.value_width;
  Strip<8 * tiles> state;
  if (own) load_state(state, a.state_in.data != nullptr ? row<float>(a.state_in, state_row) : nullptr, s, v);
  for (std::int64_t chunk = 0; chunk < c.count(); ++chunk) {
    const Place at = place_at(s, state_row, chunk);
    Strip<8> e;
    e.clear();
    if (own) each_value(e, a.v, s, at, v, [](float& x, float value, int) { x = value; });
    in.stage_chunk(a, at, gates);
    if (!own) continue;
    if (a.kept.data != nullptr) keep_state(state, state_of(row<float>(a.kept, state_row), c, at), c, v);

    Strip<8> sums;
    sums.clear();
    PHASOR_UNROLL
    for (int d = 0; d < pieces; ++d) sums.template add<true>(state.left(d), in.key + 16 * d, stride);
    PHASOR_UNROLL
    for (int n = 0; n < 8; ++n) {
      PHASOR_UNROLL
      for (int i = 0; i < 4; ++i) e.at[n][i] -= gates.since[Strip<8>::column(n, i)] * sums.at[n][i];
    }
    LeftPiece write[4];
    PHASOR_UNROLL
    for (int j = 0; j < 4; ++j) write[j] = scaled_left(e, j, [&](int i) { return gates.beta[i]; });
    PHASOR_UNROLL
    for (int j = 0; j < 4; ++j) add_from(e, write[j], in.solved, j);
    if (a.errors.data != nullptr) keep_vectors(e, vectors_of(a.errors, c, at), c, v, at.count);

    PHASOR_UNROLL
    for (int j = 0; j < 4; ++j) write[j] = scaled_left(e, j, [&](int i) { return gates.beta[i]; });
    __syncwarp();  // what follows is not begun before: it would cost registers
    sums.clear();
    PHASOR_UNROLL
    for (int d = 0; d < pieces; ++d) sums.template add<true>(state.left(d), in.query + 16 * d, stride);
    sums.each([&](float& x, int, int i) { x *= gates.since[i]; });
    PHASOR_UNROLL
    for (int j = 0; j < 4; ++j) add_from(sums, write[j], in.seen, j);
    each_value(sums, a.o, s, at, v, [](float x, float& to, int) { to = x; });

    __syncwarp();
    const float through = gates.through();
    state.each([through](float& x, int, int) { x *= through; });
    PHASOR_UNROLL
    for (int j = 0; j < 4; ++j)
      state.template add<false>(scaled_again(write[j], j, gates.until), in.key + 16 * j * stride, stride);
  }
  if (own) store_state(state, a.state_out, state_row, s, v, false);
}

template <int tiles>
void start_forward(const cuda::Queue& queue, const DeltaRuleForward& a) {
  const DeltaRuleSizes& s = a.sizes;
  const DeltaRuleChunks c(s);
  const std::int64_t rows = s.batch * s.value_heads(), blocks = cuda::divide_up(s.value_width, edge);
  cuda::start(queue, dim3(static_cast<unsigned>(rows * c.count())), dim3(cuda::chunk_threads), scores_bytes,
              write_scores<DeltaRuleForward>, a, c);
  cuda::start(queue, dim3(static_cast<unsigned>(rows * blocks)), dim3(cuda::chunk_threads), Operands<tiles>::bytes,
              forward_chunks<tiles>, a, c, blocks);
}

}  // namespace phasor::ops::delta_chunks
