#pragma once

#include <cstdint>
#include <vector>

namespace phasor {

/// Counts gradient-norm spikes: steps whose norm is more than five times the median of the 64 steps before (at least 16).
class SpikeCounter {
 public:
  SpikeCounter() = default;
  /// As it was after `spikes` spikes, with these norms last, in order of time.
  SpikeCounter(std::int64_t spikes, const std::vector<double>& recent);

  /// Returns whether this step is a spike.
  bool add(double grad_norm);
  std::int64_t spikes() const { return spikes_; }
  const std::vector<double>& recent() const { return recent_; }

 private:
  std::vector<double> recent_;  // in order of time
  std::vector<double> sorted_;
  std::int64_t spikes_ = 0;
};

}  // namespace phasor
