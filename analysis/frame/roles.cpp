#include "analysis/frame/roles.h"

#include <algorithm>
#include <utility>

namespace phasor::analysis {

Role::Role(const Frame& frame, const std::string& name) : frame_(&frame) {
  for (std::size_t i = 0; i < frame.axes.size(); ++i) {
    if (frame.axes[i].role == name) axes_.push_back(i);
  }
}

Key Role::key_of(const FrameRow& row) const {
  Key key;
  for (const std::size_t axis : axes_) key.push_back(row.at[axis]);
  return key;
}

std::vector<Key> Role::keys(bool fresh) const {
  std::vector<Key> keys = {{}};
  for (const std::size_t axis : axes_) {
    std::vector<Key> longer;
    const std::size_t count = frame_->axes[axis].labels.size();
    const std::size_t first = count - static_cast<std::size_t>(frame_->axes[axis].fresh);
    for (const Key& key : keys) {
      for (std::size_t point = fresh && first < count ? first : 0; point < count; ++point) {
        longer.push_back(key);
        longer.back().push_back(static_cast<std::int64_t>(point));
      }
    }
    keys = std::move(longer);
  }
  return keys;
}

std::vector<std::string> Role::labels(const Key& key) const {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < key.size(); ++i) {
    labels.push_back(frame_->axes[axes_[i]].labels[static_cast<std::size_t>(key[i])]);
  }
  return labels;
}

double Role::order(std::size_t i, std::int64_t point) const {
  const std::vector<Json>& values = frame_->axes[axes_[i]].values;
  const std::size_t at = static_cast<std::size_t>(point);
  return at < values.size() && values[at].is_number() ? values[at].as_number() : static_cast<double>(point);
}

void Role::place(const Key& key, Key& at) const {
  for (std::size_t i = 0; i < key.size(); ++i) at[axes_[i]] = key[i];
}

bool Role::numeric(std::size_t i) const {
  const std::vector<Json>& values = frame_->axes[axes_[i]].values;
  return !values.empty() && std::all_of(values.begin(), values.end(), [](const Json& v) { return v.is_number(); });
}

}  // namespace phasor::analysis
