#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/model.h"

namespace phasor {

/// What is wrong with a backbone and an encoding, as positions of their output; nothing where the lists are empty.
struct ProbeReport {
  std::vector<std::int64_t> ahead;      // outputs that change, in any bit, when only later tokens change
  std::vector<std::int64_t> gradients;  // outputs from which a gradient reaches a later token
  std::vector<std::int64_t> pieces;     // outputs that change when the sequence is cut and the state is carried
  std::vector<std::int64_t> documents;  // of a packed row: outputs that know of another document
  bool finite = true;                   // all outputs are numbers

  bool clean() const;
  /// One line, "" when clean: "LEAKS: position 0, 14, 15 read later tokens".
  std::string text() const;
};

/// Tokens of a probe's sequence: blocks of 16, 32 and 64 end within it, and the last one is not full.
constexpr std::int64_t probe_time = 130;

/// Runs one layer (the encoding and one mixer; everything else in a model works position by position) on random input and
/// looks for what a causal layer with explicit state must not do. Parameters that start as constants are moved by random
/// numbers, so that what starts at zero takes part. The choice must fit (find_misfit); what a plugin throws is passed on.
ProbeReport probe(const MixerChoice&, std::int64_t dim);

}  // namespace phasor
