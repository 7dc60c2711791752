#pragma once

#include <string>
#include <vector>

#include "core/plugin/loader.h"
#include "core/plugin/registry.h"
#include "experiments/spec.h"

namespace phasor::cli {

/// The plugins of this program. Files that could not be loaded keep their one line of what is wrong.
struct Plugins {
  Registry registry;
  std::vector<PluginFile> files;
  Plugins();
  /// The problems, one line each, on standard error.
  void warn() const;
};

/// Reads an experiment with its `--set`s; returns what the user gave. UserError with every mistake.
Json read_experiment(const std::string& file, const std::vector<std::string>& settings, ExperimentSpec& spec);

/// "state_tracking S2 x gla x selective_rope"
std::string title_of(const ExperimentSpec& spec);

/// 13930 -> "13,930", whatever the locale.
std::string grouped(std::int64_t number);

/// A share as tables show it: ".9990", "1.0000"; what is none with four digits.
std::string score_text(double value);

}  // namespace phasor::cli
