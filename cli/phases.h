#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/plugin/registry.h"
#include "sweeps/expand.h"
#include "sweeps/folder.h"
#include "sweeps/runner.h"

namespace phasor::cli {

/// A sweep in its phases: the selection and, with `confirm`, the fresh trials of the values that it chose. Choosing is the
/// analysis's, running the sweeps'; neither knows the other.
class Phases {
 public:
  Phases(sweeps::Sweep sweep, sweeps::RunnerOptions options, const Registry& registry);

  const sweeps::Sweep& sweep() const { return sweep_; }  // with the fresh trials once the selection is complete
  const sweeps::FolderState& state() const { return state_; }
  std::int64_t trials() const;    // of both phases, those that await the selection too
  std::int64_t to_run() const;
  std::string confirmed() const;  // "8 cells x 8 fresh seeds = 64 trials"; empty without `confirm`

  /// Runs what is missing of both phases. Standard output has a line between them.
  sweeps::RunSummary run();

 private:
  bool confirms() const { return planned_ > 0; }
  void look();
  void choose();
  sweeps::RunSummary run_part(const std::string& title, std::size_t first, std::size_t last) const;

  sweeps::Sweep sweep_;
  sweeps::RunnerOptions options_;
  const Registry& registry_;
  sweeps::FolderState state_;
  std::size_t selected_;  // trials of the selection come first
  std::int64_t planned_;  // of the confirmation, with a choice in every cell
};

/// That records are of another revision, where some are.
void print_stale(const sweeps::FolderState& state);
/// "parity_small  4 variant x 2 task x 3 lr x 3 seed = 72 cells", what `confirm` adds, and how many trials that makes.
void print_product(const Phases& phases);

}  // namespace phasor::cli
