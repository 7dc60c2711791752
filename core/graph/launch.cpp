#include "core/graph/launch.h"

#include <algorithm>
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

void Profile::merge(const Profile& other) {
  for (const Entry& entry : other.entries_) {
    add(entry.name, entry.seconds, entry.flops);
    const auto place = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& e) { return std::string_view(e.name) == entry.name; });
    place->calls += entry.calls - 1;
  }
}

}  // namespace phasor
