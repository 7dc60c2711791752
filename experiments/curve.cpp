#include "experiments/curve.h"

#include <algorithm>

namespace phasor {

SpikeCounter::SpikeCounter(std::int64_t spikes, const std::vector<double>& recent)
    : recent_(recent), sorted_(recent), spikes_(spikes) {
  std::sort(sorted_.begin(), sorted_.end());
}

bool SpikeCounter::add(double grad_norm) {
  constexpr std::size_t window = 64, least = 16;
  const bool spike = sorted_.size() >= least && grad_norm > 5.0 * sorted_[sorted_.size() / 2];
  spikes_ += spike ? 1 : 0;
  if (recent_.size() == window) {
    sorted_.erase(std::lower_bound(sorted_.begin(), sorted_.end(), recent_.front()));
    recent_.erase(recent_.begin());
  }
  recent_.push_back(grad_norm);
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), grad_norm), grad_norm);
  return spike;
}

}  // namespace phasor
