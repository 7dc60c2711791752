#pragma once

#include "core/cuda/sdpa.h"

namespace phasor {

/// A library's attention in the emulation: the definition, in double, from operands in bf16 to results in bf16.
class EmulatedSdpa final : public cuda::Sdpa {
 public:
  void forward(const cuda::Queue& queue, const cuda::SdpaSizes& sizes, const cuda::SdpaOperands& operands) override;
  void backward(const cuda::Queue& queue, const cuda::SdpaSizes& sizes, const cuda::SdpaOperands& operands) override;
  std::int64_t memory(const cuda::Queue&, const cuda::SdpaSizes&, bool) override { return 0; }
  std::string name() const override { return "emulation of a library"; }
  /// Passes asked for so far.
  int passes = 0;
};

}  // namespace phasor
