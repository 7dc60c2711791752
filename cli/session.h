#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/graph/device.h"
#include "core/plugin/loader.h"
#include "core/plugin/registry.h"
#include "experiments/spec.h"
#include "sweeps/expand.h"

namespace phasor::cli {

/// The plugins of a command: those of this program, of the folders in PHASOR_PLUGIN_PATH (separated by colons), and the
/// files of --plugin. Files that could not be loaded keep their one line of what is wrong.
struct Plugins {
  Registry registry;
  std::vector<PluginFile> files;
  std::vector<std::string> folders;  // that were looked through
  std::vector<std::string> refused;  // lines about files that the user named and that could not be loaded
  explicit Plugins(const std::vector<std::string>& named);
  /// The problems, one line each, on standard error; those of named files too.
  void warn() const;
  /// Problems of folders as warnings; UserError when a named file could not be loaded.
  void require() const;

 private:
  void warn_of_folders() const;
};
inline constexpr const char* plugin_help = "load one more plugin; folders of them: PHASOR_PLUGIN_PATH=DIR:DIR";

/// Reads an experiment with its `--set`s, then those of `--against`; returns what the user gave. UserError with every mistake.
Json read_experiment(const std::string& file, const std::vector<std::string>& settings, ExperimentSpec& spec,
                     const std::vector<std::string>& against = {});

/// Whether the file, or one that it extends, has axes: then it is a sweep. UserError when it cannot be read.
bool is_sweep_file(const std::string& file);

/// UserError when something that its task needs is not there, such as a file.
void require_data(const ExperimentSpec& spec);

/// UserError when it needs more memory than this machine has.
void require_memory(const ExperimentSpec& spec);

/// Where an experiment trains on this machine.
struct Place {
  std::unique_ptr<Device> device;  // null: the processor
  std::string text;                // "cpu", after `auto` with the reason why not elsewhere; "cuda: NVIDIA H200"
};
/// What run.device gets; `slot`: of open_cuda_of_slot. UserError when it asks for CUDA, which cannot be had.
Place settle_device(const std::string& request, std::int64_t slot = 0);
/// For commands that only look: where such requests end on this machine, or "! " and why one cannot be met. A line each; none for
/// the processor.
std::vector<std::string> devices_text(const std::set<std::string>& requests);
/// `run.device` of the trials of a sweep.
std::set<std::string> requested_devices(const sweeps::Expansion& expansion);

/// "state_tracking S2 x gla x selective_rope"
std::string title_of(const ExperimentSpec& spec);

/// 13930 -> "13,930", whatever the locale.
std::string grouped(std::int64_t number);

/// A share as tables show it: ".9990", "1.0000"; what is none with four digits.
std::string score_text(double value);

}  // namespace phasor::cli
