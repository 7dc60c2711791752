#include "core/graph/launch.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "core/graph/device.h"

namespace phasor {

void Profile::add(const Entry& more) {
  const auto place = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& e) { return std::string_view(e.name) == more.name; });
  Entry& entry = place != entries_.end() ? *place : entries_.emplace_back(Entry{more.name, 0.0, 0.0, 0, 0});
  entry.seconds += more.seconds;
  entry.flops += more.flops;
  entry.bytes += more.bytes;
  entry.calls += more.calls;
}

namespace {
std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}  // namespace

KernelTimer::KernelTimer(const Stream& stream, const char* name, const Work& work)
    : profile_(stream.profile), name_(name), work_(work), timed_(stream.profile != nullptr && !stream.dry) {
  if (timed_) start_ = now();
}

KernelTimer::~KernelTimer() {
  if (profile_ == nullptr) return;
  const double seconds = timed_ ? 1e-9 * static_cast<double>(now() - start_) : 0.0;
  profile_->add({name_, seconds, work_.flops, work_.bytes, 1});
}

void launch_on_device(const Stream& stream, const void* kernel, const char* name, const void* args) {
  stream.device->run(kernel, name, stream.dtype, args);
  if (stream.profile != nullptr) stream.device->synchronize();
}

Profile::Entry Profile::total() const {
  Entry sum{"", 0.0, 0.0, 0, 0};
  for (const Entry& entry : entries_) {
    sum.seconds += entry.seconds;
    sum.flops += entry.flops;
    sum.bytes += entry.bytes;
    sum.calls += entry.calls;
  }
  return sum;
}

void Profile::merge(const Profile& other, std::int64_t times) {
  const auto factor = static_cast<double>(times);
  for (const Entry& e : other.entries_)
    add({e.name, factor * e.seconds, factor * e.flops, times * e.bytes, times * e.calls});
}

}  // namespace phasor
