#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
#include "core/ops/gather_rows/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
__global__ void forward_rows(GatherRowsForward a) {
  const auto at = cuda::own_share(a.count, a.dim);
  const std::int32_t from = static_cast<const std::int32_t*>(a.index.data)[at.row];
  const T* x = from < 0 ? nullptr : row<T>(a.x, from);
  cuda::write_each(at, row<T>(a.y, at.row), false, [&](std::int64_t i) { return x != nullptr ? x[i] : T(0); });
}

/// Of a row of dx: the first n that adds to it, and how many there are. Whole numbers, so atomic operations give the
/// same result in any order.
struct Users {
  std::int32_t first, count;
};

__global__ void clear_users(Users* users, std::int64_t rows) {
  const std::int64_t r = cuda::thread_index();
  if (r < rows) users[r] = {INT32_MAX, 0};
}

__global__ void find_users(const std::int32_t* index, std::int64_t count, Users* users) {
  const std::int64_t n = cuda::thread_index();
  if (n >= count || index[n] < 0) return;
  atomicMin(&users[index[n]].first, static_cast<std::int32_t>(n));
  atomicAdd(&users[index[n]].count, 1);
}

constexpr unsigned warps = 8;

/// A warp for each n. The first that adds to a row adds for the later ones too, in order; there are seldom any.
template <class T>
__global__ void backward_rows(GatherRowsBackward a, const Users* users) {
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * warps + cuda::warp_index();
  if (n >= a.count) return;
  const auto* index = static_cast<const std::int32_t*>(a.index.data);
  const std::int32_t to = index[n];
  if (to < 0 || users[to].first != n) return;
  T* dx = row<T>(a.dx, to);
  const auto add = [&](std::int64_t from) {
    const T* dy = row<T>(a.dy, from);
    cuda::write_each({from, cuda::lane_index(), a.dim, cuda::warp_size, true}, dx, true,
                     [&](std::int64_t i) { return dy[i]; });
  };
  add(n);
  std::int32_t left = users[to].count - 1;
  for (std::int64_t start = n + 1; left > 0; start += cuda::warp_size) {
    const std::int64_t other = start + cuda::lane_index();
    unsigned same = __ballot_sync(cuda::whole_warp, other < a.count && index[other] == to);
    for (; same != 0; same &= same - 1, --left) add(start + __ffs(static_cast<int>(same)) - 1);
  }
}

template <class T>
void forward(const cuda::Queue& queue, const GatherRowsForward& a) {
  cuda::start_rows(queue, a.count, a.dim, forward_rows<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const GatherRowsBackward& a) {
  Users* users = cuda::scratch<Users>(queue, a.rows);
  cuda::start_each(queue, a.rows, clear_users, users, a.rows);
  cuda::start_each(queue, a.count, find_users, static_cast<const std::int32_t*>(a.index.data), a.count, users);
  cuda::start(queue, dim3(static_cast<unsigned>(cuda::divide_up(a.count, warps))), dim3(warps * cuda::warp_size), 0,
              backward_rows<T>, a, users);
}

}  // namespace

void gather_rows_cuda(cuda::Kernels& kernels) {
  kernels.add(gather_rows_forward, forward<float>, forward<double>);
  kernels.add(gather_rows_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
