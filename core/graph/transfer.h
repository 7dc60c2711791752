#pragma once

#include "core/graph/device.h"
#include "core/tensor/tensor.h"

namespace phasor {

/// What a contiguous tensor holds, for the host: the tensor itself on the processor (`device` null), else a copy from
/// `memory`, which is the processor's. Waits for the queue.
Tensor fetched(Device* device, const Tensor& tensor, Arena& memory);

/// Overwrites a contiguous tensor, of the device or (null) of the processor, with one that the host has filled.
void put(Device* device, const Tensor& from, const Tensor& to);

}  // namespace phasor
