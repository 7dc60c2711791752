#include "cli/session.h"

#include <cmath>
#include <cstdio>
#include <fmt/format.h>

#include "core/base/error.h"
#include "sweeps/report.h"

namespace phasor::cli {

Plugins::Plugins() : files(load_plugins(registry, default_plugin_folder())) {}

void Plugins::warn() const {
  for (const PluginFile& file : files) {
    if (!file.problem.empty()) fmt::print(stderr, "phasor: plugin {}: {}\n", file.path, file.problem);
  }
}

Json read_experiment(const std::string& file, const std::vector<std::string>& settings, ExperimentSpec& spec) {
  Document document = Document::read(file);
  std::vector<std::string> mistakes;
  sweeps::apply_settings(document, settings, mistakes);
  spec.read(document);
  sweeps::require_none({&document}, mistakes);
  return std::move(document.value());
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
