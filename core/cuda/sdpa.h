#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/cuda/queue.h"

namespace phasor::cuda {

/// Of one call of attention: q and o have heads * group heads, head h of them reads head h / group of k and v. A causal query
/// t sees the keys up to t.
struct SdpaSizes {
  std::int64_t batch, time, keys, heads, group, key_width, value_width;
  bool causal;
  float scale;  // of the products of queries and keys
};

/// Addresses of the device. bf16, packed and 16-byte aligned: q, dq [batch, time, heads * group, key_width], k, dk [batch, keys,
/// heads, key_width], v, dv [.., value_width], o, d_o [batch, time, heads * group, value_width]. f32: lse [batch,
/// heads * group, time], the logarithms of the sums of exponentials.
struct SdpaOperands {
  void *q, *k, *v, *o, *lse;
  void *d_o, *dq, *dk, *dv;  // of the backward pass alone
};

/// Softmax attention without biases as a library has it: products of bf16 with sums in f32, the same bits every time.
class Sdpa {
 public:
  virtual ~Sdpa() = default;
  /// What is written: o and lse.
  virtual void forward(const Queue& queue, const SdpaSizes& sizes, const SdpaOperands& operands) = 0;
  /// What is written: dq, dk and dv.
  virtual void backward(const Queue& queue, const SdpaSizes& sizes, const SdpaOperands& operands) = 0;
  /// Bytes that a pass works in, which the library keeps; makes the plan that the pass would make.
  virtual std::int64_t memory(const Queue& queue, const SdpaSizes& sizes, bool backward) = 0;
  virtual std::string name() const = 0;  // "cuDNN 9.19.0"
};

/// That of cuDNN; null where it cannot be loaded, and then `reason` says why. `device`: cuDNN's own description, as JSON, of
/// a device that need not be there, for which plans are made and nothing can run (tests); empty: the current one. A plan
/// is made at the first call with sizes, in about half a second, and must not be made within a capture. UserError for sizes
/// that cuDNN refuses.
std::unique_ptr<Sdpa> open_cudnn(std::string& reason, const std::string& device = {});

}  // namespace phasor::cuda
