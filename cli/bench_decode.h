#pragma once

#include <deque>
#include <string>
#include <vector>

#include "cli/session.h"
#include "experiments/decode.h"

namespace phasor::cli {

/// Measures and prints what the one experiment takes to read rows and to continue them, a token at a time.
void bench_decode_file(const std::deque<ExperimentSpec>& specs, const DecodeOptions& options);

/// Measures one trial of every shape that a sweep's table reports, all of a column in turn, and writes DIR/costs.json for
/// `phasor table` and `phasor report`. What cannot be measured is written down with the reason.
void bench_decode_sweep(const std::string& folder, const std::vector<std::string>& settings, const Plugins& plugins, const DecodeOptions& options);

}  // namespace phasor::cli
