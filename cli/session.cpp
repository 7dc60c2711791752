#include "cli/session.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/cuda/devices.h"
#include "experiments/memory.h"
#include "sweeps/report.h"

namespace phasor::cli {

namespace {

/// What stands between colons; empty parts are none.
std::vector<std::string> path_parts(const char* path) {
  std::vector<std::string> parts;
  std::istringstream rest(path == nullptr ? "" : path);
  for (std::string part; std::getline(rest, part, ':');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

}  // namespace

Plugins::Plugins(const std::vector<std::string>& named) : folders(path_parts(std::getenv("PHASOR_PLUGIN_PATH"))) {
  folders.insert(folders.begin(), default_plugin_folder());
  for (const std::string& folder : folders) {
    for (PluginFile& file : load_plugins(registry, folder)) files.push_back(std::move(file));
  }
  for (const std::string& path : named) {
    const PluginFile file = load_plugin(registry, path);
    if (!file.problem.empty()) refused.push_back(fmt::format("--plugin {}: {}", path, file.problem));
  }
}

void Plugins::warn_of_folders() const {
  for (const PluginFile& file : files) {
    if (!file.problem.empty()) fmt::print(stderr, "phasor: plugin {}: {}\n", file.path, file.problem);
  }
  for (const std::string& name : registry.duplicates()) fmt::print(stderr, "phasor: {}\n", name);
}

void Plugins::warn() const {
  warn_of_folders();
  for (const std::string& line : refused) fmt::print(stderr, "phasor: {}\n", line);
}

void Plugins::require() const {
  warn_of_folders();
  std::string all;
  for (const std::string& line : refused) all += (all.empty() ? "" : "\n") + line;
  if (!all.empty()) throw UserError(all);
}

bool is_sweep_file(const std::string& file) {
  const Document document = Document::read_extended(file);
  return document.value().is_object() && document.value().find("axes") != nullptr;
}

Json read_experiment(const std::string& file, const std::vector<std::string>& settings, ExperimentSpec& spec,
                     const std::vector<std::string>& against) {
  if (is_sweep_file(file))
    throw UserError(file + ": found a sweep (it has \"axes\"), expected an experiment; `" + shell_words({"phasor", "sweep", file}) +
                    "` runs its trials, `" + shell_words({"phasor", "describe", file}) + "` shows them");
  const auto complete = [&](Document& read) { ExperimentSpec::complete(read, spec.registry()); };
  Document document = Document::read_extended(file, complete);
  complete(document);
  std::vector<std::string> mistakes;
  sweeps::apply_settings(document, settings, mistakes);
  sweeps::apply_settings(document, against, mistakes, "--against");
  // What a device is asked for by name differs (train.lanes, the trial's id), so `auto` is that where there is one.
  const Json* device = document.value().at_path("run.device");
  if (device != nullptr && *device == Json("auto") && settle_device("auto").device != nullptr) document.value()["run"]["device"] = "cuda";
  spec.read(document);
  sweeps::require_none({&document}, mistakes);
  return std::move(document.value());
}

void require_data(const ExperimentSpec& spec) {
  if (const auto missing = spec.make_task()->missing()) throw UserError("task: " + spec.task.name + ": " + *missing);
}

void require_memory(const ExperimentSpec& spec) {
  if (const std::string problem = memory_problem(spec); !problem.empty()) throw UserError("memory: " + problem);
}

Place settle_device(const std::string& request, std::int64_t slot) {
  if (request == "cpu") return {nullptr, "cpu"};
  std::string reason;
  std::unique_ptr<Device> device = open_cuda_of_slot(reason, slot);
  if (device != nullptr) {
    std::string text = "cuda: " + device->name();
    return {std::move(device), std::move(text)};
  }
  if (request == "cuda")
    throw UserError("run.device: cuda cannot be had: " + reason + "; expected cpu, or auto, which takes what there is");
  return {nullptr, "cpu (auto; cuda: " + reason + ")"};
}

std::vector<std::string> devices_text(const std::set<std::string>& requests) {
  std::vector<std::string> lines;
  for (const std::string& request : requests) {
    try {
      if (request != "cpu") lines.push_back(settle_device(request).text);
    } catch (const UserError& error) {
      lines.push_back(std::string("! ") + error.what());
    }
  }
  return lines;
}

std::set<std::string> requested_devices(const sweeps::Expansion& expansion) {
  std::set<std::string> requests;
  for (const Trial& trial : expansion.trials) requests.insert(trial.spec.at_path("run.device")->as_string());
  return requests;
}

std::string title_of(const ExperimentSpec& spec) {
  return fmt::format("{} {} x {} x {}", spec.task.name, spec.make_task()->label(), spec.backbone.name,
                     spec.encoding.name);
}

std::string grouped(std::int64_t number) {
  std::string text;
  const std::string digits = std::to_string(number);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (left % 3 == 0 && i > (number < 0 ? 1U : 0U)) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::string score_text(double value) {
  if (!std::isfinite(value) || value < 0.0 || value > 1.0) return fmt::format("{:.4g}", value);
  const std::string text = fmt::format("{:.4f}", value);
  return text.starts_with("0.") ? text.substr(1) : text;
}

}  // namespace phasor::cli
