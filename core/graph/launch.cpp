#include "core/graph/launch.h"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace phasor {

void Profile::add(const char* name, double seconds, double flops) {
  const auto place = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& e) { return std::string_view(e.name) == name; });
  Entry& entry = place != entries_.end() ? *place : entries_.emplace_back(Entry{name, 0.0, 0.0, 0});
  entry.seconds += seconds;
  entry.flops += flops;
  ++entry.calls;
}

namespace {
std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}  // namespace

KernelTimer::KernelTimer(Profile* profile, const char* name, double flops)
    : profile_(profile), name_(name), flops_(flops) {
  if (profile_ != nullptr) start_ = now();
}

KernelTimer::~KernelTimer() {
  if (profile_ != nullptr) profile_->add(name_, 1e-9 * static_cast<double>(now() - start_), flops_);
}

void Profile::merge(const Profile& other) {
  for (const Entry& entry : other.entries_) {
    add(entry.name, entry.seconds, entry.flops);
    const auto place = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& e) { return std::string_view(e.name) == entry.name; });
    place->calls += entry.calls - 1;
  }
}

}  // namespace phasor
