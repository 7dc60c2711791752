#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/graph/device.h"

namespace phasor {

/// Processes beside each other take turns at the devices of a machine: the number of the one for `slot` = 0, 1, ..
constexpr std::int64_t device_of_slot(std::int64_t slot, std::int64_t devices) { return slot % devices; }

/// CUDA devices that this process sees (CUDA_VISIBLE_DEVICES); 0 where open_cuda gives none.
std::int64_t count_cuda();

/// The CUDA device of a slot, with a queue and memory of its own: several may stand for one machine and know nothing of each other.
/// The thread that opens it uses it, no other. Null and `reason` as open_cuda has them.
std::unique_ptr<Device> open_cuda_of_slot(std::string& reason, std::int64_t slot);

}  // namespace phasor
