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

constexpr Kernel<CopyArgs> copy_kernel{"copy", copy_rows<float>, copy_rows<double>};
constexpr Kernel<AddArgs> add_kernel{"add", add_rows<float>, add_rows<double>};

Stream in(const Stream& stream, Dtype dtype) { return {dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32, stream.profile, stream.dry}; }

}  // namespace

void copy(const Stream& stream, const Tensor& from, const Tensor& to, bool accumulate) {
  PHASOR_CHECK(from.rows() == to.rows() && from.width() == to.width() && from.dtype() == to.dtype(),
               "copy " + from.shape().text() + " to " + to.shape().text());
  launch(in(stream, from.dtype()), copy_kernel, {from.view(), to.view(), from.rows(), from.width(), accumulate});
}

void add(const Stream& stream, const Tensor& a, const Tensor& b, const Tensor& out) {
  PHASOR_CHECK(a.rows() == b.rows() && a.width() == b.width() && a.dtype() == b.dtype() && out.rows() == a.rows() &&
                   out.width() == a.width() && out.dtype() == a.dtype(),
               "add " + a.shape().text() + " and " + b.shape().text());
  launch(in(stream, a.dtype()), add_kernel, {a.view(), b.view(), out.view(), a.rows(), a.width()});
}

void zero(const Tensor& tensor) {
  const std::size_t bytes = static_cast<std::size_t>(tensor.width()) * size_of(tensor.dtype());
  auto* data = static_cast<std::byte*>(tensor.data());
  const std::size_t stride = static_cast<std::size_t>(tensor.row_stride()) * size_of(tensor.dtype());
  for (std::int64_t r = 0; r < tensor.rows(); ++r) std::memset(data + static_cast<std::size_t>(r) * stride, 0, bytes);
}

}  // namespace phasor
