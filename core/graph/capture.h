#pragma once

#include <memory>

#include "core/graph/device.h"

namespace phasor {

/// What `work` launches, for Device::replay; none of it runs.
template <class Work>
std::shared_ptr<void> capture(Device& device, const Work& work) {
  device.begin_capture();
  try {
    work();
  } catch (...) {
    try {
      device.end_capture();
    } catch (...) {  // the first error says more
    }
    throw;
  }
  return device.end_capture();
}

}  // namespace phasor
