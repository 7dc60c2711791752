// Takes the place of libphasor_cuda.so in tests of the whole program: a machine with two devices, both the emulation.

#include <cstdint>
#include <memory>
#include <string>

#include "core/cuda/devices.h"
#include "tests/cuda/emulated_device.h"

namespace {

constexpr std::int64_t devices = 2;

class Pretended final : public phasor::EmulatedDevice {
 public:
  explicit Pretended(std::int64_t number) : number_(number) { leave_open(); }
  std::string name() const override { return "emulation " + std::to_string(number_); }
  std::string kind() const override { return "cuda"; }

 private:
  std::int64_t number_;
};

}  // namespace

extern "C" std::int64_t phasor_count_cuda() { return devices; }

extern "C" std::unique_ptr<phasor::Device> phasor_open_cuda(std::string&, std::int64_t slot) {
  return std::make_unique<Pretended>(phasor::device_of_slot(slot, devices));
}
