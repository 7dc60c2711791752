#include "core/graph/accumulate.h"

#include <cstring>

namespace phasor {

namespace {

struct CopyArgs {
  View from, to;
  std::int64_t rows, width;
  bool accumulate;
};

template <class T>
void copy_rows(const CopyArgs& a) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const T* from = row<T>(a.from, r);
    T* to = row<T>(a.to, r);
    if (a.accumulate) {
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) to[i] += from[i];
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) to[i] = from[i];
    }
  }
}

struct AddArgs {
  View a, b, out;
  std::int64_t rows, width;
};

template <class T>
void add_rows(const AddArgs& a) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const T* x = row<T>(a.a, r);
    const T* y = row<T>(a.b, r);
    T* out = row<T>(a.out, r);
#pragma omp simd
    for (std::int64_t i = 0; i < a.width; ++i) out[i] = x[i] + y[i];
  }
}

struct ZeroArgs {
  View to;
  std::int64_t rows, width;
};

template <class T>
void zero_rows(const ZeroArgs& a) {
  for (std::int64_t r = 0; r < a.rows; ++r) std::memset(row<T>(a.to, r), 0, static_cast<std::size_t>(a.width) * sizeof(T));
}

constexpr Kernel<CopyArgs> copy_kernel{"copy", copy_rows<float>, copy_rows<double>};
constexpr Kernel<AddArgs> add_kernel{"add", add_rows<float>, add_rows<double>};
constexpr Kernel<ZeroArgs> zero_kernel{"zero", zero_rows<float>, zero_rows<double>};

Stream in(const Stream& stream, Dtype dtype) { return {dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32, stream.profile, stream.dry}; }

}  // namespace

void copy(const Stream& stream, const Tensor& from, const Tensor& to, bool accumulate) {
  PHASOR_CHECK(from.rows() == to.rows() && from.width() == to.width() && from.dtype() == to.dtype(),
               "copy " + from.shape().text() + " to " + to.shape().text());
  launch(in(stream, from.dtype()), copy_kernel, {from.view(), to.view(), from.rows(), from.width(), accumulate},
         {0.0, moved(from, to) + (accumulate ? bytes_of(to) : 0)});
}

void add(const Stream& stream, const Tensor& a, const Tensor& b, const Tensor& out) {
  PHASOR_CHECK(a.rows() == b.rows() && a.width() == b.width() && a.dtype() == b.dtype() && out.rows() == a.rows() &&
                   out.width() == a.width() && out.dtype() == a.dtype(),
               "add " + a.shape().text() + " and " + b.shape().text());
  launch(in(stream, a.dtype()), add_kernel, {a.view(), b.view(), out.view(), a.rows(), a.width()}, {0.0, moved(a, b, out)});
}

void zero(const Stream& stream, const Tensor& tensor) {
  launch(in(stream, tensor.dtype()), zero_kernel, {tensor.view(), tensor.rows(), tensor.width()}, {0.0, bytes_of(tensor)});
}

void zero(const Tensor& tensor) { zero(Stream{}, tensor); }

}  // namespace phasor
