#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>

namespace phasor::cuda {

/// Says which call failed and what CUDA calls it: UserError, or std::bad_alloc with `what` in its text where memory ran out.
void check(cudaError_t status, const char* what);

/// Lets a kernel have so much dynamic shared memory. CUDA keeps one number for a function in the whole process, and trials beside each
/// other start it with other sizes, so what was allowed once stays allowed.
void allow_shared(const void* kernel, std::size_t bytes);

}  // namespace phasor::cuda
