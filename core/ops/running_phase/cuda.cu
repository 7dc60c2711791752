#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/reduce.h"
#include "core/ops/running_phase/kernel.h"

// Sums over time in three launches: of every segment of time, over the segments, and again within each segment from
// what came before it. All in double, as on the processor. A carry stands in scratch memory, [batch * segments, heads *
// planes]; a segment is as long as it must be for them to fit, and that depends on the shape alone.

namespace phasor::ops {

namespace {

struct Segments {
  RunningPhaseShape shape;
  View starts;
  double* carries;
  std::int64_t length, count;

  __device__ std::int64_t width() const { return shape.heads * shape.planes; }
  __device__ bool begins(std::int64_t b, std::int64_t t) const {
    return starts.data != nullptr && row<std::int32_t>(starts, b)[t] == t;
  }
  /// The times of segment `n`.
  __device__ std::int64_t begin(std::int64_t n) const { return n * length; }
  __device__ std::int64_t end(std::int64_t n) const { return n + 1 < count ? (n + 1) * length : shape.time; }
  /// What comes into segment `n` goes out of it: no document begins there.
  __device__ bool open(std::int64_t b, std::int64_t n) const {
    return starts.data == nullptr || row<std::int32_t>(starts, b)[end(n) - 1] < begin(n);
  }
};

constexpr std::int64_t shortest = 64;

Segments segments_of(const cuda::Queue& queue, const RunningPhaseShape& shape, const View& starts) {
  Segments s{shape, starts, nullptr, shortest, 0};
  const std::int64_t columns = shape.batch * shape.heads * shape.planes;
  const auto room = static_cast<std::int64_t>(queue.scratch_bytes / sizeof(double));
  while (columns > 0 && cuda::divide_up(shape.time, s.length) * columns > room && s.length < shape.time) s.length *= 2;
  s.count = cuda::divide_up(shape.time, s.length);
  s.carries = cuda::scratch<double>(queue, s.count * columns);
  return s;
}

/// What is summed from the first time to the last: the increments.
template <class T>
struct Increment {
  static constexpr bool back = false;
  View increments;
  std::int64_t time;
  __device__ double operator()(std::int64_t b, std::int64_t t, std::int64_t i) const {
    return static_cast<double>(row<T>(increments, b * time + t)[i]);
  }
};

/// And from the last to the first: tau dangle.
template <class T>
struct Slope {
  static constexpr bool back = true;
  View dangle, temperature;
  std::int64_t time, planes;
  __device__ double operator()(std::int64_t b, std::int64_t t, std::int64_t i) const {
    if (dangle.data == nullptr) return 0.0;
    return static_cast<double>(static_cast<const T*>(temperature.data)[i % planes]) *
           static_cast<double>(row<T>(dangle, b * time + t)[i]);
  }
};

/// The sum over segment `n` with what came into it; calls each(t, sum) for every time.
template <class Term, class Each>
__device__ double sum_segment(const Segments& s, const Term& term, std::int64_t b, std::int64_t n, std::int64_t i,
                              double sum, Each each) {
  const std::int64_t begin = s.begin(n), end = s.end(n);
  for (std::int64_t at = begin; at < end; ++at) {
    const std::int64_t t = Term::back ? begin + end - 1 - at : at;
    const bool fresh = s.begins(b, t);
    if (fresh && !Term::back) sum = 0.0;
    sum += term(b, t, i);
    each(t, sum);
    if (fresh && Term::back) sum = 0.0;
  }
  return sum;
}

template <class Term>
__global__ void sum_segments(Segments s, Term term) {
  const auto [part, i] = cuda::place_of(cuda::thread_index(), s.width());
  if (part >= s.shape.batch * s.count) return;
  const auto [b, n] = cuda::place_of(part, s.count);
  s.carries[part * s.width() + i] = sum_segment(s, term, b, n, i, 0.0, [](std::int64_t, double) {});
}

/// Sums of segments become what comes into them; what comes out of the last is a state.
template <bool back>
__global__ void carry_over(Segments s, View state_in, View state_out, bool accumulate) {
  const auto [b, i] = cuda::place_of(cuda::thread_index(), s.width());
  if (b >= s.shape.batch) return;
  const auto [head, plane] = cuda::place_of(i, s.shape.planes);
  const std::int64_t state_row = b * s.shape.heads + head;
  double carry = state_in.data != nullptr ? row<double>(state_in, state_row)[plane] : 0.0;
  for (std::int64_t at = 0; at < s.count; ++at) {
    const std::int64_t n = back ? s.count - 1 - at : at;
    double& place = s.carries[(b * s.count + n) * s.width() + i];
    const double sum = place;
    place = carry;
    carry = s.open(b, n) ? carry + sum : sum;
  }
  if (state_out.data == nullptr) return;
  double& state = row<double>(state_out, state_row)[plane];
  state = accumulate ? state + carry : carry;
}

template <class T>
__global__ void write_angles(Segments s, RunningPhaseForward a) {
  const auto [part, i] = cuda::place_of(cuda::thread_index(), s.width());
  if (part >= s.shape.batch * s.count) return;
  const auto [b, n] = cuda::place_of(part, s.count);
  const double tau = static_cast<double>(static_cast<const T*>(a.temperature.data)[i % s.shape.planes]);
  const std::int64_t rows = b * s.shape.time, column = i;
  sum_segment(s, Increment<T>{a.increments, s.shape.time}, b, n, i, s.carries[part * s.width() + i],
              [&](std::int64_t t, double sum) {
                row<T>(a.angle, rows + t)[column] = static_cast<T>(cuda::reduce_angle(tau * sum));
              });
}

template <class T>
__global__ void write_slopes(Segments s, RunningPhaseBackward a, Slope<T> term) {
  const auto [part, i] = cuda::place_of(cuda::thread_index(), s.width());
  if (part >= s.shape.batch * s.count) return;
  const auto [b, n] = cuda::place_of(part, s.count);
  const std::int64_t rows = b * s.shape.time, column = i;
  sum_segment(s, term, b, n, i, s.carries[part * s.width() + i], [&](std::int64_t t, double sum) {
    T& to = row<T>(a.dincrements, rows + t)[column];
    to = a.accumulate_dincrements ? to + static_cast<T>(sum) : static_cast<T>(sum);
  });
}

/// Sum of Phi dangle over a segment, in the place of its carry.
template <class T>
__global__ void sum_temperature(Segments s, RunningPhaseBackward a) {
  const auto [part, i] = cuda::place_of(cuda::thread_index(), s.width());
  if (part >= s.shape.batch * s.count) return;
  const auto [b, n] = cuda::place_of(part, s.count);
  const std::int64_t rows = b * s.shape.time, column = i;
  double& carry = s.carries[part * s.width() + i];
  double total = 0.0;
  sum_segment(s, Increment<T>{a.increments, s.shape.time}, b, n, i, carry, [&](std::int64_t t, double sum) {
    total += sum * static_cast<double>(row<T>(a.dangle, rows + t)[column]);
  });
  carry = total;
}

constexpr unsigned temperature_threads = 128;

/// A block takes one plane: its heads in all segments.
template <class T>
__global__ void add_temperature(Segments s, T* dtemperature) {
  __shared__ double shared[cuda::warp_size];
  const std::int64_t plane = blockIdx.x, count = s.shape.batch * s.count * s.shape.heads;
  double sum = 0.0;
  for (std::int64_t at = threadIdx.x; at < count; at += temperature_threads)
    sum += s.carries[at * s.shape.planes + plane];
  sum = cuda::block_sum(sum, shared);
  if (threadIdx.x == 0) dtemperature[plane] += static_cast<T>(sum);
}

/// All that comes before the last launch.
template <class Term>
void sum_ahead(const cuda::Queue& queue, const Segments& s, const Term& term, const View& state_in,
               const View& state_out, bool accumulate) {
  const std::int64_t columns = s.shape.batch * s.shape.heads * s.shape.planes;
  cuda::start_each(queue, columns * s.count, sum_segments<Term>, s, term);
  cuda::start_each(queue, columns, carry_over<Term::back>, s, state_in, state_out, accumulate);
}

template <class T>
void forward(const cuda::Queue& queue, const RunningPhaseForward& a) {
  const Segments s = segments_of(queue, a.shape, a.starts);
  const std::int64_t columns = a.shape.batch * a.shape.heads * a.shape.planes;
  sum_ahead(queue, s, Increment<T>{a.increments, a.shape.time}, a.state_in, a.state_out, false);
  cuda::start_each(queue, columns * s.count, write_angles<T>, s, a);
}

template <class T>
void backward(const cuda::Queue& queue, const RunningPhaseBackward& a) {
  const Segments s = segments_of(queue, a.shape, a.starts);
  const std::int64_t columns = a.shape.batch * a.shape.heads * a.shape.planes;
  if (a.dtemperature.data != nullptr && a.dangle.data != nullptr) {
    sum_ahead(queue, s, Increment<T>{a.increments, a.shape.time}, a.state_in, {}, false);
    cuda::start_each(queue, columns * s.count, sum_temperature<T>, s, a);
    cuda::start(queue, dim3(static_cast<unsigned>(a.shape.planes)), dim3(temperature_threads), 0, add_temperature<T>, s,
                static_cast<T*>(a.dtemperature.data));
  }
  if (a.dincrements.data == nullptr && a.dstate_in.data == nullptr) return;
  const Slope<T> term{a.dangle, a.temperature, a.shape.time, a.shape.planes};
  sum_ahead(queue, s, term, a.dstate_out, a.dstate_in, a.accumulate_dstate_in);
  if (a.dincrements.data != nullptr) cuda::start_each(queue, columns * s.count, write_slopes<T>, s, a, term);
}

}  // namespace

void running_phase_cuda(cuda::Kernels& kernels) {
  kernels.add(running_phase_forward, forward<float>, forward<double>);
  kernels.add(running_phase_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
