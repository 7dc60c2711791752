#include <algorithm>
#include <cstddef>

#include "core/ops/prefetch.h"
#include "core/ops/short_conv/kernel.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

// Channels worked on together through all of time: their taps, sums and window stay in the first-level cache.
constexpr std::int64_t block = 256;

constexpr std::int64_t soon = 4;  // times from the one at work to the one asked for

/// Channels first .. first+count-1 of a call.
struct Part {
  std::int64_t first, count, window;
};

/// out = last(i, start + sum_j taps_j input(j)). The number of taps is a constant for the usual windows.
template <int fixed, class T, class Input, class Last>
inline void weighted_sum(const Part& part, const View& taps, Input input, const T* start, T* out, Last last) {
  if constexpr (fixed > 0) {
    const T* w[std::size_t{fixed}];
    const T* x[std::size_t{fixed}];
    for (int j = 0; j < fixed; ++j) {
      w[j] = row<T>(taps, j) + part.first;
      x[j] = input(j);
    }
#pragma omp simd
    for (std::int64_t i = 0; i < part.count; ++i) {
      T sum = start[i];
      for (int j = 0; j < fixed; ++j) sum += w[j][i] * x[j][i];
      out[i] = last(i, sum);
    }
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < part.count; ++i) out[i] = start[i];
    for (std::int64_t j = 0; j < part.window; ++j) {
      const T* w = row<T>(taps, j) + part.first;
      const T* x = input(j);
#pragma omp simd
      for (std::int64_t i = 0; i < part.count; ++i) out[i] += w[i] * x[i];
    }
#pragma omp simd
    for (std::int64_t i = 0; i < part.count; ++i) out[i] = last(i, out[i]);
  }
}

template <int fixed, class T, class Input>
inline void weighted_sum(const Part& part, const View& taps, Input input, const T* start, T* out) {
  weighted_sum<fixed>(part, taps, input, start, out, [](std::int64_t, T sum) { return sum; });
}

/// sums_j += d input(j), and the bias row after them += d.
template <int fixed, class T, class Input>
inline void add_products(const Part& part, const View& sums, Input input, const T* d) {
  T* bias = row<T>(sums, part.window) + part.first;
  if constexpr (fixed > 0) {
    T* w[std::size_t{fixed}];
    const T* x[std::size_t{fixed}];
    for (int j = 0; j < fixed; ++j) {
      w[j] = row<T>(sums, j) + part.first;
      x[j] = input(j);
    }
#pragma omp simd
    for (std::int64_t i = 0; i < part.count; ++i) {
      for (int j = 0; j < fixed; ++j) w[j][i] += d[i] * x[j][i];
      bias[i] += d[i];
    }
  } else {
    for (std::int64_t j = 0; j < part.window; ++j) {
      T* w = row<T>(sums, j) + part.first;
      const T* x = input(j);
#pragma omp simd
      for (std::int64_t i = 0; i < part.count; ++i) w[i] += d[i] * x[i];
    }
#pragma omp simd
    for (std::int64_t i = 0; i < part.count; ++i) bias[i] += d[i];
  }
}

template <class T>
void transpose_weight(const Part& part, const View& weight, const View& bias, const View& taps) {
  for (std::int64_t j = 0; j < part.window; ++j)
    for (std::int64_t c = part.first; c < part.first + part.count; ++c) row<T>(taps, j)[c] = row<T>(weight, c)[j];
  T* last = row<T>(taps, part.window);
  for (std::int64_t c = part.first; c < part.first + part.count; ++c)
    last[c] = bias.data != nullptr ? static_cast<const T*>(bias.data)[c] : T(0);
}

/// Row h of the history is the input at time h - window; zeros follow.
template <class T>
void load_history(const Part& part, const View& state, std::int64_t state_row, const View& history) {
  std::fill_n(row<T>(history, part.window) + part.first, part.count, T(0));
  for (std::int64_t h = 0; h < part.window; ++h)
    for (std::int64_t c = part.first; c < part.first + part.count; ++c)
      row<T>(history, h)[c] = state.data != nullptr ? row<T>(state, state_row + c)[h] : T(0);
}

/// The first time that belongs to the document of time t; everything does when there are no starts, or no times.
inline std::int64_t document_start(const ShortConvShape& s, const View& starts, std::int64_t b, std::int64_t t) {
  return starts.data != nullptr && s.time > 0 ? row<std::int32_t>(starts, b)[t] : -s.window;
}

/// The input at time t, or zeros when it lies before `first`.
template <class T>
inline const T* input_at(const Part& part, const View& x, const View& history, std::int64_t row_at, std::int64_t t,
                         std::int64_t first) {
  if (t < first) return row<T>(history, part.window) + part.first;
  return (t >= 0 ? row<T>(x, row_at + t) : row<T>(history, t + part.window)) + part.first;
}

/// Calls body(part) for every block of channels.
template <class Body>
void for_blocks(const ShortConvShape& shape, Body body) {
  for (std::int64_t first = 0; first < shape.channels; first += block)
    body(Part{first, std::min(block, shape.channels - first), shape.window});
}

template <class T, int fixed>
void forward_window(const ShortConvForward& a) {
  const ShortConvShape& s = a.shape;
  for_blocks(s, [&](const Part& part) {
    transpose_weight<T>(part, a.weight, a.bias, a.taps);
    const T* bias = row<T>(a.taps, s.window) + part.first;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      load_history<T>(part, a.state_in, b * s.channels, a.history);
      const auto input = [&](std::int64_t t, std::int64_t first) {
        return input_at<T>(part, a.x, a.history, b * s.time, t, first);
      };
      for (std::int64_t t = 0; t < s.time; ++t) {
        T* y = row<T>(a.y, b * s.time + t) + part.first;
        const std::int64_t first = document_start(s, a.starts, b, t);
        const auto window = [&](std::int64_t j) { return input(t - (s.window - 1) + j, first); };
        if (s.silu)
          weighted_sum<fixed>(part, a.taps, window, bias, y, [](std::int64_t, T sum) { return math::silu(sum); });
        else
          weighted_sum<fixed>(part, a.taps, window, bias, y);
      }
      if (a.state_out.data == nullptr) continue;
      const std::int64_t first = document_start(s, a.starts, b, s.time - 1);
      for (std::int64_t j = 0; j < s.window; ++j) {
        const T* x = input(s.time - s.window + j, first);
        for (std::int64_t i = 0; i < part.count; ++i) row<T>(a.state_out, b * s.channels + part.first + i)[j] = x[i];
      }
    }
  });
}

template <class T, int fixed>
void backward_window(const ShortConvBackward& a) {
  const ShortConvShape& s = a.shape;
  const bool want_sums = a.dweight.data != nullptr || a.dbias.data != nullptr;
  for_blocks(s, [&](const Part& part) {
    const auto clear = [&](T* line) { std::fill_n(line, part.count, T(0)); };
    transpose_weight<T>(part, a.weight, a.bias, a.taps);
    const T* bias = row<T>(a.taps, s.window) + part.first;
    for (std::int64_t j = 0; j <= s.window; ++j) clear(row<T>(a.dtaps, j) + part.first);
    T* spare = row<T>(a.dz, s.window) + part.first;
    T* zeros = row<T>(a.dz, s.window + 1) + part.first;
    clear(zeros);
    for (std::int64_t b = 0; b < s.batch; ++b) {
      load_history<T>(part, a.state_in, b * s.channels, a.history);
      // dz of the times t .. t+window-1; zero outside the document of t.
      const auto dz = [&](std::int64_t t) {
        const std::int64_t window = fixed > 0 ? fixed : s.window;  // a known divisor is no division
        return row<T>(a.dz, static_cast<std::int64_t>(static_cast<std::uint64_t>(t + window) % static_cast<std::uint64_t>(window))) +
               part.first;
      };
      const auto clear_ring = [&] {
        for (std::int64_t j = 0; j < s.window; ++j) clear(dz(j));
      };
      clear_ring();
      const std::int64_t last_first = document_start(s, a.starts, b, s.time - 1);
      const auto pull = [&](std::int64_t t, const T* start, T* out) {
        weighted_sum<fixed>(
            part, a.taps, [&](std::int64_t j) { return dz(t + (s.window - 1) - j); }, start, out);
      };
      // Adds what comes straight through the outgoing state, which holds the times time-window .. time-1 of the last
      // document.
      const auto add_state = [&](std::int64_t t, T* out) {
        const std::int64_t j = t - (s.time - s.window);
        if (a.dstate_out.data == nullptr || j < 0 || t < last_first) return;
        for (std::int64_t i = 0; i < part.count; ++i)
          out[i] += row<T>(a.dstate_out, b * s.channels + part.first + i)[j];
      };
      for (std::int64_t t = s.time - 1; t >= 0; --t) {
        const std::int64_t ahead = t - soon;
        if (ahead >= 0) {
          const std::int64_t r = b * s.time + ahead;
          if (ahead >= s.window - 1) prefetch<false>(row<T>(a.x, r - (s.window - 1)) + part.first, part.count);
          prefetch<false>(row<T>(a.dy, r) + part.first, part.count);
          if (a.dx.data != nullptr) prefetch<true>(row<T>(a.dx, r) + part.first, part.count);
        }
        const T* dy = row<T>(a.dy, b * s.time + t) + part.first;
        T* d = dz(t);
        const std::int64_t first = document_start(s, a.starts, b, t);
        const auto window = [&](std::int64_t j) {
          return input_at<T>(part, a.x, a.history, b * s.time, t - (s.window - 1) + j, first);
        };
        if (s.silu) {
          weighted_sum<fixed>(part, a.taps, window, bias, d,
                              [dy](std::int64_t i, T z) { return dy[i] * math::silu_slope(z); });
        } else {
#pragma omp simd
          for (std::int64_t i = 0; i < part.count; ++i) d[i] = dy[i];
        }
        if (want_sums) add_products<fixed>(part, a.dtaps, window, d);
        if (a.dx.data != nullptr) {
          T* dx = row<T>(a.dx, b * s.time + t) + part.first;
          pull(t, a.accumulate_dx ? dx : zeros, dx);
          add_state(t, dx);
        }
        if (first == t) clear_ring();
      }
      if (a.dstate_in.data == nullptr) continue;
      const std::int64_t first = document_start(s, a.starts, b, 0);
      for (std::int64_t t = -1; t >= -s.window; --t) {
        clear(dz(t));
        if (t > -s.window && t >= first)
          pull(t, zeros, spare);
        else
          clear(spare);
        add_state(t, spare);
        for (std::int64_t i = 0; i < part.count; ++i) {
          T& to = row<T>(a.dstate_in, b * s.channels + part.first + i)[t + s.window];
          to = a.accumulate_dstate_in ? to + spare[i] : spare[i];
        }
      }
    }
    for (std::int64_t c = part.first; c < part.first + part.count; ++c) {
      if (a.dbias.data != nullptr) static_cast<T*>(a.dbias.data)[c] += row<T>(a.dtaps, s.window)[c];
      if (a.dweight.data == nullptr) continue;
      for (std::int64_t j = 0; j < s.window; ++j) row<T>(a.dweight, c)[j] += row<T>(a.dtaps, j)[c];
    }
  });
}

template <class T>
void forward(const ShortConvForward& a) {
  switch (a.shape.window) {
    case 4:
      return forward_window<T, 4>(a);
    case 3:
      return forward_window<T, 3>(a);
    default:
      return forward_window<T, 0>(a);
  }
}

template <class T>
void backward(const ShortConvBackward& a) {
  switch (a.shape.window) {
    case 4:
      return backward_window<T, 4>(a);
    case 3:
      return backward_window<T, 3>(a);
    default:
      return backward_window<T, 0>(a);
  }
}

}  // namespace

const Kernel<ShortConvForward> short_conv_forward{"short_conv.forward", forward<float>, forward<double>};
const Kernel<ShortConvBackward> short_conv_backward{"short_conv.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
