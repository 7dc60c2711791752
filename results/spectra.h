#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phasor::results {

/// What one layer showed of its inside while it read a row. Empty where it has no such thing.
struct LayerSpectra {
  std::int64_t layer = 0;
  std::vector<double> temperature, initial_temperature;  // [planes], radians per unit of phase; now and before training
  std::int64_t heads = 0, planes = 0;                    // of `angle`; one head where all turn alike
  std::vector<double> angle;                             // [time, heads, planes], running, radians
  struct Gate {
    std::string name;  // "kept", "phase_gate", "write_gate"
    std::int64_t heads = 0, channels = 0;
    std::vector<double> value;  // [time, heads, channels]
  };
  std::vector<Gate> gates;
};

/// Phases and gates of a trained model along one row of its evaluation data.
struct Spectra {
  std::string trial, title;  // id, "state_tracking S2 x gla x selective_rope"
  std::string split;
  std::int64_t length = 0, row = 0, time = 0;  // of the slice; which of its rows; tokens
  std::vector<std::int64_t> tokens;            // of the first stream
  std::vector<LayerSpectra> layers;
};

}  // namespace phasor::results
