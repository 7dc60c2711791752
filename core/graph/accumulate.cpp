#include "core/graph/accumulate.h"

#include <cstring>

#include "core/graph/kernel.h"
#include "core/graph/total.h"

namespace phasor {

namespace {

template <class T>
void copy_cpu(const CopyRows& a) {
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

template <class T>
void add_cpu(const AddRows& a) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const T* x = row<T>(a.a, r);
    const T* y = row<T>(a.b, r);
    T* out = row<T>(a.out, r);
#pragma omp simd
    for (std::int64_t i = 0; i < a.width; ++i) out[i] = x[i] + y[i];
  }
}

template <class T>
void zero_cpu(const ZeroRows& a) {
  for (std::int64_t r = 0; r < a.rows; ++r) std::memset(row<T>(a.to, r), 0, static_cast<std::size_t>(a.width) * sizeof(T));
}

template <class T>
void total_cpu(const Total& a) {
  const T* x = static_cast<const T*>(a.values.data);
  double sum = 0.0;
  for (std::int64_t i = 0; i < a.count; ++i) sum += static_cast<double>(x[i]);
  *a.sum += sum;
}

/// The same stream for elements of another type.
Stream in(Stream stream, Dtype dtype) {
  stream.dtype = dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  return stream;
}

}  // namespace

const Kernel<CopyRows> copy_rows{"copy", copy_cpu<float>, copy_cpu<double>};
const Kernel<AddRows> add_rows{"add", add_cpu<float>, add_cpu<double>};
const Kernel<ZeroRows> zero_rows{"zero", zero_cpu<float>, zero_cpu<double>};
const Kernel<Total> total_values{"total", total_cpu<float>, total_cpu<double>};

void copy(const Stream& stream, const Tensor& from, const Tensor& to, bool accumulate) {
  PHASOR_CHECK(from.rows() == to.rows() && from.width() == to.width() && from.dtype() == to.dtype(),
               "copy " + from.shape().text() + " to " + to.shape().text());
  launch(in(stream, from.dtype()), copy_rows, {from.view(), to.view(), from.rows(), from.width(), accumulate},
         {0.0, moved(from, to) + (accumulate ? bytes_of(to) : 0)});
}

void add(const Stream& stream, const Tensor& a, const Tensor& b, const Tensor& out) {
  PHASOR_CHECK(a.rows() == b.rows() && a.width() == b.width() && a.dtype() == b.dtype() && out.rows() == a.rows() &&
                   out.width() == a.width() && out.dtype() == a.dtype(),
               "add " + a.shape().text() + " and " + b.shape().text());
  launch(in(stream, a.dtype()), add_rows, {a.view(), b.view(), out.view(), a.rows(), a.width()}, {0.0, moved(a, b, out)});
}

void zero(const Stream& stream, const Tensor& tensor) {
  launch(in(stream, tensor.dtype()), zero_rows, {tensor.view(), tensor.rows(), tensor.width()}, {0.0, bytes_of(tensor)});
}

void add_total(const Stream& stream, const Tensor& values, const Tensor& sum) {
  PHASOR_CHECK(values.contiguous() && sum.dtype() == Dtype::f64 && sum.size() == 1, "total of " + values.shape().text());
  launch(in(stream, values.dtype()), total_values, {values.view(), values.size(), sum.as<double>()}, {0.0, bytes_of(values)});
}

void zero(const Tensor& tensor) { zero(Stream{}, tensor); }

}  // namespace phasor
