#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
#include "core/ops/embedding/kernel.h"

// On the way back tokens are sorted by their id, digit by digit from the lowest, and tokens of one id stay in order. Then
// the rows that add to one row of dweight stand side by side: no id looks through all tokens, and the order of every
// sum is given by the sizes alone.

namespace phasor::ops {

namespace {

template <class T>
__global__ void forward_element(EmbeddingForward a) {
  const auto [token, i] = cuda::place_of(cuda::thread_index(), a.dim);
  if (token >= a.batch * a.time) return;
  const std::int32_t id = row<const std::int32_t>(a.ids, token / a.time)[token % a.time];
  row<T>(a.y, token)[i] = id < 0 ? T(0) : row<T>(a.weight, id)[i];
}

/// The id of a token, or the vocabulary where it teaches nothing.
__device__ std::int64_t key_of(const EmbeddingBackward& a, std::int64_t token) {
  const auto [b, t] = cuda::place_of(token, a.time);
  const std::int64_t id = row<const std::int32_t>(a.ids, b)[t];
  return id < 0 || id == a.padding ? a.vocabulary : id;
}

constexpr unsigned digits = 256, digit_bits = 8, stretch = 1024;  // values of a digit; tokens of a block

/// One digit of the keys: a block has a stretch of the tokens, as the digits before have ordered them, and thread d of
/// it those whose digit is d.
struct Sort {
  EmbeddingBackward a;
  const std::int32_t* from;  // tokens in order; null: as they stand
  std::int32_t* to;
  std::int32_t* places;  // [digits][blocks]: how many tokens; then where the first of them goes
  std::int64_t tokens;
  unsigned shift;
};

/// Tokens and digits of the block's stretch; how many there are.
__device__ int read_stretch(const Sort& s, std::int32_t* token, std::int32_t* digit) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * stretch, left = s.tokens - first;
  const int here = left < stretch ? static_cast<int>(left) : static_cast<int>(stretch);
  for (int i = static_cast<int>(threadIdx.x); i < here; i += static_cast<int>(digits)) {
    token[i] = s.from != nullptr ? s.from[first + i] : static_cast<std::int32_t>(first + i);
    digit[i] = static_cast<std::int32_t>(key_of(s.a, token[i]) >> s.shift & (digits - 1));
  }
  __syncthreads();
  return here;
}

__global__ void count_digits(Sort s) {
  __shared__ std::int32_t token[stretch], digit[stretch];
  const int here = read_stretch(s, token, digit), own = static_cast<int>(threadIdx.x);
  std::int32_t count = 0;
  for (int i = 0; i < here; ++i) count += digit[i] == own ? 1 : 0;
  s.places[static_cast<std::int64_t>(threadIdx.x) * gridDim.x + blockIdx.x] = count;
}

__global__ void move_tokens(Sort s) {
  __shared__ std::int32_t token[stretch], digit[stretch];
  const int here = read_stretch(s, token, digit), own = static_cast<int>(threadIdx.x);
  std::int32_t at = s.places[static_cast<std::int64_t>(threadIdx.x) * gridDim.x + blockIdx.x];
  for (int i = 0; i < here; ++i)
    if (digit[i] == own) s.to[at++] = token[i];
}

constexpr unsigned adders = 1024;

/// Of each number the sum of those before it. One block.
__global__ void sum_before(std::int32_t* numbers, std::int64_t count) {
  __shared__ std::int32_t sums[2][adders];
  const std::int64_t each = cuda::divide_up(count, adders), begin = each * threadIdx.x;
  const std::int64_t end = begin + each < count ? begin + each : count;
  std::int32_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) sum += numbers[i];
  unsigned side = 0;
  sums[0][threadIdx.x] = sum;
  for (unsigned apart = 1; apart < adders; apart *= 2, side = 1 - side) {
    __syncthreads();
    const std::int32_t before = threadIdx.x >= apart ? sums[side][threadIdx.x - apart] : 0;
    sums[1 - side][threadIdx.x] = sums[side][threadIdx.x] + before;
  }
  std::int32_t before = sums[side][threadIdx.x] - sum;  // what the thread itself wrote
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int32_t own = numbers[i];
    numbers[i] = before;
    before += own;
  }
}

constexpr unsigned warps = 8, columns = 4, tile = columns * cuda::warp_size;  // columns: of a lane

/// Sorted tokens in pieces. A run is the tokens of one id; its sum inside a piece is added to dweight where the run ends
/// and begins there, otherwise it waits in `heads` (begun before the piece) or `tails` (begun in it), [pieces][dim].
template <class T>
struct Runs {
  EmbeddingBackward a;
  const std::int32_t* tokens;  // sorted
  T *heads, *tails;
  std::int64_t count, piece;
};

template <class T>
__device__ std::int64_t key_at(const Runs<T>& r, std::int64_t place) {
  return place >= 0 && place < r.count ? key_of(r.a, r.tokens[place]) : -1;
}

/// Block (piece / warps, columns / tile): a warp has a piece.
template <class T>
__global__ void add_runs(Runs<T> r) {
  const std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * warps + cuda::warp_index(), begin = p * r.piece;
  const std::int64_t end = begin + r.piece < r.count ? begin + r.piece : r.count;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * tile + cuda::lane_index();
  if (begin >= end) return;
  std::int64_t key = key_at(r, begin);
  bool older = key_at(r, begin - 1) == key;
  T sum[columns] = {};
  const auto close = [&](bool goes_on) {
    if (key == r.a.vocabulary) return;
    T* to = older ? r.heads + p * r.a.dim : (goes_on ? r.tails + p * r.a.dim : row<T>(r.a.dweight, key));
    for (unsigned k = 0; k < columns; ++k) {
      const std::int64_t column = first + k * cuda::warp_size;
      if (column < r.a.dim) to[column] = older || goes_on ? sum[k] : to[column] + sum[k];
    }
  };
  for (std::int64_t start = begin; start < end; start += cuda::in_flight) {
    T values[cuda::in_flight][columns] = {};  // read before the first is added
    std::int64_t keys[cuda::in_flight];
    for (unsigned n = 0; n < cuda::in_flight; ++n) {
      keys[n] = start + n < end ? key_at(r, start + n) : -1;
      if (keys[n] < 0) continue;
      const T* dy = row<T>(r.a.dy, r.tokens[start + n]);
      for (unsigned k = 0; k < columns; ++k)
        if (first + k * cuda::warp_size < r.a.dim) values[n][k] = dy[first + k * cuda::warp_size];
    }
    for (unsigned n = 0; n < cuda::in_flight && keys[n] >= 0; ++n) {
      if (keys[n] != key) {
        close(false);
        key = keys[n];
        older = false;
        for (T& column : sum) column = T(0);
      }
      for (unsigned k = 0; k < columns; ++k) sum[k] += values[n][k];
    }
  }
  close(key_at(r, end) == key);
}

/// For a piece in which a run begins that does not end there: its sums in all pieces, in order.
template <class T>
__global__ void close_runs(Runs<T> r) {
  const std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * warps + cuda::warp_index(), begin = p * r.piece;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * tile + cuda::lane_index();
  std::int64_t end = begin + r.piece;
  if (end >= r.count) return;
  const std::int64_t key = key_at(r, end - 1);
  const bool begins = key_at(r, begin) != key || key_at(r, begin - 1) != key;
  if (!begins || key_at(r, end) != key || key == r.a.vocabulary) return;
  T sum[columns] = {};
  const auto add = [&](const T* from) {
    for (unsigned k = 0; k < columns; ++k)
      if (first + k * cuda::warp_size < r.a.dim) sum[k] += from[first + k * cuda::warp_size];
  };
  add(r.tails + p * r.a.dim);
  for (std::int64_t next = p + 1; key_at(r, end) == key; ++next, end += r.piece) add(r.heads + next * r.a.dim);
  T* to = row<T>(r.a.dweight, key);
  for (unsigned k = 0; k < columns; ++k)
    if (first + k * cuda::warp_size < r.a.dim) to[first + k * cuda::warp_size] += sum[k];
}

template <class T>
void forward(const cuda::Queue& queue, const EmbeddingForward& a) {
  cuda::start_each(queue, a.batch * a.time * a.dim, forward_element<T>, a);
}

/// The tokens in order of their keys; `memory` has room for them twice, and for the places.
const std::int32_t* sorted(const cuda::Queue& queue, const EmbeddingBackward& a, std::int32_t* memory) {
  const std::int64_t tokens = a.batch * a.time, blocks = cuda::divide_up(tokens, stretch);
  Sort s{a, nullptr, memory, memory + 2 * tokens, tokens, 0};
  for (; s.shift == 0 || a.vocabulary >> s.shift > 0; s.shift += digit_bits) {
    const auto grid = dim3(static_cast<unsigned>(blocks));
    cuda::start(queue, grid, dim3(digits), 0, count_digits, s);
    cuda::start(queue, dim3(1), dim3(adders), 0, sum_before, s.places, blocks * digits);
    cuda::start(queue, grid, dim3(digits), 0, move_tokens, s);
    s.from = s.to;
    s.to = s.to == memory ? memory + tokens : memory;
  }
  return s.from;
}

template <class T>
void backward(const cuda::Queue& queue, const EmbeddingBackward& a) {
  const std::int64_t tokens = a.batch * a.time;
  if (tokens == 0 || a.dim == 0) return;
  const std::int64_t numbers = 2 * tokens + cuda::divide_up(tokens, stretch) * digits;
  const std::int64_t whole = cuda::divide_up(numbers * 4, static_cast<std::int64_t>(sizeof(T)));  // in elements
  const auto room = static_cast<std::int64_t>((queue.scratch_bytes - cuda::sums_bytes) / sizeof(T));
  std::int64_t piece = 32;
  const auto sums = [&] { return 2 * cuda::divide_up(tokens, piece) * a.dim; };
  while (whole + sums() > room && piece < tokens) piece *= 2;
  T* memory = cuda::scratch<T>(queue, whole + sums());
  const std::int64_t pieces = cuda::divide_up(tokens, piece);
  const std::int32_t* order = sorted(queue, a, reinterpret_cast<std::int32_t*>(memory + sums()));
  const Runs<T> runs{a, order, memory, memory + pieces * a.dim, tokens, piece};
  const dim3 grid(static_cast<unsigned>(cuda::divide_up(pieces, warps)),
                  static_cast<unsigned>(cuda::divide_up(a.dim, tile)));
  cuda::start(queue, grid, dim3(warps * cuda::warp_size), 0, add_runs<T>, runs);
  cuda::start(queue, grid, dim3(warps * cuda::warp_size), 0, close_runs<T>, runs);
}

}  // namespace

void embedding_cuda(cuda::Kernels& kernels) {
  kernels.add(embedding_forward, forward<float>, forward<double>);
  kernels.add(embedding_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
