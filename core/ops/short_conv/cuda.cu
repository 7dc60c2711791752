#include <algorithm>

#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/reduce.h"
#include "core/ops/short_conv/kernel.h"

namespace phasor::ops {

namespace {

/// The first time that belongs to the document of time t.
__device__ std::int64_t document_start(const ShortConvShape& s, const View& starts, std::int64_t b, std::int64_t t) {
  return starts.data != nullptr && s.time > 0 ? row<std::int32_t>(starts, b)[t] : -s.window;
}

/// The input at time t >= -window, or zero when it lies before `first`.
template <class T, class Args>
__device__ T input_at(const Args& a, std::int64_t b, std::int64_t t, std::int64_t c, std::int64_t first) {
  const ShortConvShape& s = a.shape;
  if (t < first) return T(0);
  if (t >= 0) return row<T>(a.x, b * s.time + t)[c];
  return a.state_in.data != nullptr ? row<T>(a.state_in, b * s.channels + c)[t + s.window] : T(0);
}

/// z_t: the sum before the activation.
template <class T, class Args>
__device__ T sum_at(const Args& a, std::int64_t b, std::int64_t t, std::int64_t c) {
  const ShortConvShape& s = a.shape;
  const std::int64_t first = document_start(s, a.starts, b, t);
  const T* weight = row<T>(a.weight, c);
  T sum = a.bias.data != nullptr ? static_cast<const T*>(a.bias.data)[c] : T(0);
  for (std::int64_t j = 0; j < s.window; ++j) sum += weight[j] * input_at<T>(a, b, t - (s.window - 1) + j, c, first);
  return sum;
}

template <class T>
__global__ void forward_element(ShortConvForward a) {
  const auto [r, c] = cuda::place_of(cuda::thread_index(), a.shape.channels);
  if (r >= a.shape.batch * a.shape.time) return;
  const auto [b, t] = cuda::place_of(r, a.shape.time);
  const T z = sum_at<T>(a, b, t, c);
  row<T>(a.y, r)[c] = a.shape.silu ? cuda::silu(z) : z;
}

/// The last `window` inputs of the last document.
template <class T>
__global__ void state_element(ShortConvForward a) {
  const ShortConvShape& s = a.shape;
  const auto [state_row, j] = cuda::place_of(cuda::thread_index(), s.window);
  if (state_row >= s.batch * s.channels) return;
  const auto [b, c] = cuda::place_of(state_row, s.channels);
  const std::int64_t first = document_start(s, a.starts, b, s.time - 1);
  row<T>(a.state_out, state_row)[j] = input_at<T>(a, b, s.time - s.window + j, c, first);
}

template <class T>
__device__ T sum_slope(const ShortConvBackward& a, std::int64_t b, std::int64_t t, std::int64_t c) {
  const T dy = row<T>(a.dy, b * a.shape.time + t)[c];
  return a.shape.silu ? dy * cuda::silu_slope(sum_at<T>(a, b, t, c)) : dy;
}

/// What comes to the input at time t straight through the outgoing state.
template <class T>
__device__ T state_slope(const ShortConvBackward& a, std::int64_t b, std::int64_t t, std::int64_t c) {
  const ShortConvShape& s = a.shape;
  const std::int64_t j = t - (s.time - s.window);
  if (a.dstate_out.data == nullptr || j < 0 || t < document_start(s, a.starts, b, s.time - 1)) return T(0);
  return row<T>(a.dstate_out, b * s.channels + c)[j];
}

/// dx_t or the gradient of the state's time t: sum_j weight_j dz(t + (window - 1) - j), over times whose document
/// reaches back to t.
template <class T, class Slope>
__device__ T input_slope(const ShortConvBackward& a, std::int64_t b, std::int64_t t, std::int64_t c, Slope dz) {
  const ShortConvShape& s = a.shape;
  const T* weight = row<T>(a.weight, c);
  T sum = state_slope<T>(a, b, t, c);
  for (std::int64_t j = s.window - 1; j >= 0; --j) {
    const std::int64_t at = t + (s.window - 1) - j;
    if (at >= 0 && at < s.time && t >= document_start(s, a.starts, b, at)) sum += weight[j] * dz(at);
  }
  return sum;
}

template <class T>
__global__ void state_in_element(ShortConvBackward a) {
  const ShortConvShape& s = a.shape;
  const auto [state_row, j] = cuda::place_of(cuda::thread_index(), s.window);
  if (state_row >= s.batch * s.channels) return;
  const auto [batch, channel] = cuda::place_of(state_row, s.channels);
  const std::int64_t b = batch, c = channel;
  const T sum = input_slope<T>(a, b, j - s.window, c, [&](std::int64_t at) { return sum_slope<T>(a, b, at, c); });
  T& to = row<T>(a.dstate_in, state_row)[j];
  to = a.accumulate_dstate_in ? to + sum : sum;
}

// A block takes 32 channels and goes through tiles of time: a column per lane.
constexpr unsigned columns = cuda::warp_size, warps = 4;
constexpr std::int64_t tile = 64;

/// Tiles blockIdx.y, + gridDim.y, .. of all rows. In shared memory: dz of a tile and of the window behind it, and this
/// block's sums [window + 1][columns] for the weight and the bias, which go to sums [gridDim.y][window + 1][channels].
template <class T>
__global__ void backward_tiles(ShortConvBackward a, T* sums) {
  const ShortConvShape& s = a.shape;
  T* dz = cuda::shared_memory<T>();
  T* own_sums = dz + (tile + s.window - 1) * columns;
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * columns + cuda::lane_index();
  const unsigned lane = cuda::lane_index(), warp = cuda::warp_index();
  for (std::int64_t j = warp; j <= s.window; j += warps) own_sums[j * columns + lane] = T(0);
  const std::int64_t tiles = cuda::divide_up(s.time, tile);
  for (std::int64_t at = blockIdx.y; at < s.batch * tiles; at += gridDim.y) {
    const std::int64_t b = at / tiles, begin = at % tiles * tile, end = begin + tile < s.time ? begin + tile : s.time;
    const std::int64_t behind = end + s.window - 1 < s.time ? end + s.window - 1 : s.time;
    __syncthreads();
    for (std::int64_t t = begin + warp; t < behind; t += warps)
      dz[(t - begin) * columns + lane] = c < s.channels ? sum_slope<T>(a, b, t, c) : T(0);
    __syncthreads();
    if (c >= s.channels) continue;
    for (std::int64_t t = begin + warp; t < end && a.dx.data != nullptr; t += warps) {
      T& dx = row<T>(a.dx, b * s.time + t)[c];
      const T sum = input_slope<T>(a, b, t, c, [&](std::int64_t i) { return dz[(i - begin) * columns + lane]; });
      dx = a.accumulate_dx ? dx + sum : sum;
    }
    for (std::int64_t j = warp; j <= s.window && sums != nullptr; j += warps) {
      T sum(0);
      for (std::int64_t t = begin; t < end; ++t) {
        const T x =
            j < s.window ? input_at<T>(a, b, t - (s.window - 1) + j, c, document_start(s, a.starts, b, t)) : T(1);
        sum += dz[(t - begin) * columns + lane] * x;
      }
      own_sums[j * columns + lane] += sum;
    }
  }
  if (sums == nullptr || c >= s.channels) return;
  for (std::int64_t j = warp; j <= s.window; j += warps)
    sums[(static_cast<std::int64_t>(blockIdx.y) * (s.window + 1) + j) * s.channels + c] = own_sums[j * columns + lane];
}

template <class T>
__global__ void add_sums(ShortConvBackward a, const T* sums, std::int64_t parts) {
  const ShortConvShape& s = a.shape;
  const auto [j, c] = cuda::place_of(cuda::thread_index(), s.channels);
  if (j > s.window) return;
  T sum(0);
  for (std::int64_t part = 0; part < parts; ++part) sum += sums[(part * (s.window + 1) + j) * s.channels + c];
  if (j == s.window) {
    if (a.dbias.data != nullptr) static_cast<T*>(a.dbias.data)[c] += sum;
  } else if (a.dweight.data != nullptr) {
    row<T>(a.dweight, c)[j] += sum;
  }
}

template <class T>
void forward(const cuda::Queue& queue, const ShortConvForward& a) {
  const ShortConvShape& s = a.shape;
  cuda::start_each(queue, s.batch * s.time * s.channels, forward_element<T>, a);
  if (a.state_out.data != nullptr) cuda::start_each(queue, s.batch * s.channels * s.window, state_element<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const ShortConvBackward& a) {
  const ShortConvShape& s = a.shape;
  if (a.dstate_in.data != nullptr) cuda::start_each(queue, s.batch * s.channels * s.window, state_in_element<T>, a);
  const bool want_sums = a.dweight.data != nullptr || a.dbias.data != nullptr;
  const std::int64_t tiles = s.batch * cuda::divide_up(s.time, tile);
  if ((a.dx.data == nullptr && !want_sums) || tiles == 0 || s.channels == 0) return;
  // As many parts as the chip has room for, some four blocks on each of its processors.
  const std::int64_t blocks = cuda::divide_up(s.channels, columns);
  const std::int64_t parts = std::min(tiles, std::max<std::int64_t>(1, 512 / blocks));
  T* sums = want_sums ? cuda::scratch<T>(queue, parts * (s.window + 1) * s.channels) : nullptr;
  const std::size_t shared = static_cast<std::size_t>(tile + 2 * s.window) * columns * sizeof(T);
  cuda::start(queue, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(parts)), dim3(columns * warps), shared,
              backward_tiles<T>, a, sums);
  if (want_sums) cuda::start_each(queue, (s.window + 1) * s.channels, add_sums<T>, a, sums, parts);
}

}  // namespace

void short_conv_cuda(cuda::Kernels& kernels) {
  kernels.add(short_conv_forward, forward<float>, forward<double>);
  kernels.add(short_conv_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
