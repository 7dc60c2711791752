#include "core/graph/transfer.h"

#include <cstring>

#include "core/graph/launch.h"

namespace phasor {

Tensor fetched(Device* device, const Tensor& tensor, Arena& memory) {
  if (device == nullptr || !tensor) return tensor;
  PHASOR_CHECK(tensor.contiguous() && memory.device() == nullptr, "a contiguous tensor, to memory of the processor");
  const Tensor copy(memory, tensor.dtype(), tensor.shape());
  device->copy_out(copy.data(), tensor.data(), static_cast<std::size_t>(bytes_of(tensor)));
  return copy;
}

void put(Device* device, const Tensor& from, const Tensor& to) {
  PHASOR_CHECK(from.contiguous() && to.contiguous() && from.size() == to.size() && from.dtype() == to.dtype(),
               "put " + from.shape().text() + " into " + to.shape().text());
  const auto bytes = static_cast<std::size_t>(bytes_of(from));
  if (device != nullptr)
    device->copy_in(to.data(), from.data(), bytes);
  else if (bytes > 0)
    std::memcpy(to.data(), from.data(), bytes);
}

}  // namespace phasor
