#include "core/ops/elementwise/kernel.h"
#include "core/ops/fixed_width.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

// A plain ?: around arithmetic becomes a branch in the loop (see vector_math.h).
using math::choose;

template <class T, class Function>
void map(const UnaryForward& a, Function function) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const T* x = row<T>(a.x, r);
    T* y = row<T>(a.y, r);
#pragma omp simd
    for (std::int64_t i = 0; i < a.width; ++i) y[i] = function(x[i]);
  }
}

template <class T>
void forward(const UnaryForward& a) {
  const T factor = static_cast<T>(a.factor), low = static_cast<T>(a.low);
  switch (a.op) {
    case Unary::sigmoid:
      return map<T>(a, [](T x) { return math::sigmoid(x); });
    case Unary::silu:
      return map<T>(a, [](T x) { return math::silu(x); });
    case Unary::exp:
      return map<T>(a, [](T x) { return math::exp(x); });
    case Unary::abs:
      return map<T>(a, [](T x) { return math::absolute(x); });
    case Unary::softplus:
      return map<T>(a, [](T x) { return math::softplus(x); });
    case Unary::relu:
      return map<T>(a, [](T x) { return x < T(0) ? T(0) : x; });
    case Unary::elu_plus_one:
      return map<T>(a, [](T x) { return choose(x > T(0), x + T(1), math::exp(x)); });
    case Unary::log_sigmoid:
      return map<T>(a, [](T x) { return math::log_sigmoid(x); });
    case Unary::log_gate:
      return map<T>(a, [=](T x) {
        const T y = factor * math::log_sigmoid(x);
        return choose(y < low, low, y);
      });
    case Unary::scale:
      return map<T>(a, [=](T x) { return factor * x; });
    case Unary::gelu:
      return map<T>(a, [](T x) __attribute__((always_inline)) { return x * math::normal_share(x); });
  }
}

// dx = or += dy * slope(kept)
template <class T, class Slope>
void pull(const UnaryBackward& a, Slope slope) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const T* kept = row<T>(a.kept, r);
    const T* dy = row<T>(a.dy, r);
    T* dx = row<T>(a.dx, r);
    if (a.accumulate) {
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) dx[i] += dy[i] * slope(kept[i]);
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) dx[i] = dy[i] * slope(kept[i]);
    }
  }
}

template <class T>
void backward(const UnaryBackward& a) {
  const T factor = static_cast<T>(a.factor), low = static_cast<T>(a.low);
  switch (a.op) {
    case Unary::sigmoid:
      return pull<T>(a, [](T y) { return y * (T(1) - y); });
    case Unary::silu:
      return pull<T>(a, [](T x) { return math::silu_slope(x); });
    case Unary::exp:
      return pull<T>(a, [](T y) { return y; });
    case Unary::abs:
      return pull<T>(a, [](T x) { return choose(x > T(0), T(1), T(0)) - choose(x < T(0), T(1), T(0)); });
    case Unary::softplus:
      return pull<T>(a, [](T x) { return math::sigmoid(x); });
    case Unary::relu:
      return pull<T>(a, [](T y) { return choose(y > T(0), T(1), T(0)); });
    case Unary::elu_plus_one:
      return pull<T>(a, [](T y) { return choose(y < T(1), y, T(1)); });
    case Unary::log_sigmoid:
      return pull<T>(a, [](T x) { return math::sigmoid(-x); });
    case Unary::log_gate:
      return pull<T>(a, [=](T x) { return choose(x < low, T(0), factor * math::sigmoid(-x)); });
    case Unary::scale:
      return pull<T>(a, [=](T) { return factor; });
    case Unary::gelu:
      return pull<T>(a, [](T x) __attribute__((always_inline)) {
        return math::normal_share(x) + x * T(0.3989422804014327) * math::exp(T(-0.5) * x * x);
      });
  }
}

template <class T>
void product(const Product& p) {
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const T* a = row<T>(p.a, r);
    const T* b = row<T>(p.b, r);
    T* y = row<T>(p.y, r);
    if (p.accumulate) {
#pragma omp simd
      for (std::int64_t i = 0; i < p.width; ++i) y[i] += a[i] * b[i];
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < p.width; ++i) y[i] = a[i] * b[i];
    }
  }
}

template <class T>
void add_row(const AddRowForward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t p = 0; p < a.parts; ++p) {
      const T* x = row<T>(a.x, r) + p * a.width;
      const T* shift = row<T>(a.shift, p);
      T* y = row<T>(a.y, r) + p * a.width;
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) y[i] = x[i] + shift[i];
    }
  }
}

template <class T>
void add_row_back(const AddRowBackward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t p = 0; p < a.parts; ++p) {
      const T* dy = row<T>(a.dy, r) + p * a.width;
      T* dshift = row<T>(a.dshift, p);
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) dshift[i] += dy[i];
    }
  }
}

template <class T, class Width>
void mul_groups_as(const MulGroupsForward& a, Width width) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const T* gate = row<T>(a.gate, r);
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * width;
      T* y = row<T>(a.y, r) + g * width;
      const T factor = gate[g];
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] * factor;
    }
  }
}

template <class T, class Width>
void mul_groups_back_as(const MulGroupsBackward& a, Width width) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* dy = row<T>(a.dy, r) + g * width;
      if (a.dgate.data != nullptr) {
        const T* x = row<T>(a.x, r) + g * width;
        T dot(0);
#pragma omp simd reduction(+ : dot)
        for (std::int64_t i = 0; i < width; ++i) dot += dy[i] * x[i];
        T& dgate = row<T>(a.dgate, r)[g];
        dgate = a.accumulate_gate ? dgate + dot : dot;
      }
      if (a.dx.data == nullptr) continue;
      T* dx = row<T>(a.dx, r) + g * width;
      const T factor = row<T>(a.gate, r)[g];
      if (a.accumulate) {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) dx[i] += dy[i] * factor;
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) dx[i] = dy[i] * factor;
      }
    }
  }
}

template <class T>
void mul_groups(const MulGroupsForward& a) {
  with_fixed_width(a.width, [&](auto width) { mul_groups_as<T>(a, width); });
}

template <class T>
void mul_groups_back(const MulGroupsBackward& a) {
  with_fixed_width(a.width, [&](auto width) { mul_groups_back_as<T>(a, width); });
}

}  // namespace

const Kernel<UnaryForward> unary_forward{"elementwise.forward", forward<float>, forward<double>};
const Kernel<UnaryBackward> unary_backward{"elementwise.backward", backward<float>, backward<double>};
const Kernel<Product> mul_forward{"mul.forward", product<float>, product<double>};
const Kernel<Product> mul_backward{"mul.backward", product<float>, product<double>};
const Kernel<AddRowForward> add_row_forward{"add_row.forward", add_row<float>, add_row<double>};
const Kernel<AddRowBackward> add_row_backward{"add_row.backward", add_row_back<float>, add_row_back<double>};
const Kernel<MulGroupsForward> mul_groups_forward{"mul_groups.forward", mul_groups<float>, mul_groups<double>};
const Kernel<MulGroupsBackward> mul_groups_backward{"mul_groups.backward", mul_groups_back<float>,
                                                    mul_groups_back<double>};

}  // namespace phasor::ops
