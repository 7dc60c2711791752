#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "analysis/frame/frame.h"
#include "analysis/frame/roles.h"
#include "analysis/table/table.h"

namespace phasor::analysis {

/// What is reported of one point of the average axes: the trials of the chosen value.
struct Reported {
  Key average;
  std::map<Key, std::optional<std::size_t>> trials;  // by replicate; nothing where the sweep has no such trial yet
};

/// The reported number `which` of a cell where every setting has chosen. Values are averaged over the average axes within a
/// replicate (the last axis first), then described over the replicates.
Number number_of(const Frame& frame, const TableSpec& spec, std::size_t which, const std::vector<Reported>& chosen);

/// What the trials cost and how steadily they learned: parameters, the time of a step, spikes, the share of clipped steps.
void describe_cost(const Frame& frame, const std::vector<std::size_t>& trials, Cell& cell);

/// The mean of one number of the summaries, of the trials that have it finite.
std::optional<double> mean_summary(const Frame& frame, const std::vector<std::size_t>& trials, const std::string& name);

}  // namespace phasor::analysis
