#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/plugin/registry.h"

namespace phasor::cli {

/// One trial as `phasor run` carries it out, in a process of its own or beside others in one.
struct TrialRun {
  std::string file, folder;               // experiment; of records
  std::vector<std::string> settings, plugin_files;
  bool force = false;
  std::optional<std::int64_t> memory_mb;  // for the command that is stored
  std::optional<std::int64_t> lease;      // token, of a trial of a sweep
  bool replaces = false;                  // of a sweep: the record that there is, which stands until this one is stored
  std::int64_t slot = 0;                  // which of the machine's devices it is on (core/cuda/devices.h)
  bool beside_others = false;             // in this process
  std::FILE* out = stdout;                // what it says
  std::FILE* notes = stderr;              // progress and warnings
  std::function<bool()> stop = {};        // asked after every step
};

/// Trains it, unless it has a record, and stores the record; returns the exit code of `phasor run`, or `lost_device`.
/// UserError for mistakes in files, and where the record cannot be stored.
int carry_out(const TrialRun& run, const Registry& registry);

/// A trial beside others failed and its device does not answer any more: nothing is stored, since it may have been any of them.
inline constexpr int lost_device = 71;

/// SIGTERM and the first SIGINT set a mark that is asked for here; the second SIGINT ends the process. SIGTERM may come twice, from the
/// runner and from the machine that goes, and both times asks for the checkpoint.
void watch_interrupts();
bool interrupted();

/// A trial of a sweep does not outlive its runner, however that ends: otherwise the next one would do it twice.
void follow_parent(std::int64_t parent);

/// Runs `work` and returns its exit code; what it throws is told on `to`, with the exit code that belongs to it.
int told(std::FILE* to, const std::function<int()>& work);

}  // namespace phasor::cli
