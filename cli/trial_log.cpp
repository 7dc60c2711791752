#include "cli/trial_log.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "sweeps/status.h"

namespace phasor::cli {
namespace {

constexpr std::int64_t most_of_one = 4000;

/// The last bytes of a file, from the beginning of a line; empty when it cannot be read.
std::string end_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::int64_t size = file.tellg(), from = std::max<std::int64_t>(0, size - most_of_one);
  file.seekg(from);
  std::string text(static_cast<std::size_t>(size - from), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (from == 0) return text;
  const std::size_t line = text.find('\n');
  return "...\n" + (line == std::string::npos ? text : text.substr(line + 1));
}

}  // namespace

TrialLogs::TrialLogs(std::string folder, const results::Manifest& manifest)
    : folder_(std::move(folder)), few_(manifest.trials.size() <= 500) {}

analysis::TrialLog TrialLogs::find(const std::string& id, bool ended_well, const std::string& way) {
  if (id.empty()) return {};
  const std::string path = sweeps::log_of(folder_, id);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  analysis::TrialLog log{way + "/logs/" + std::filesystem::path(path).filename().string(), ""};
  if (room_ <= 0 || (ended_well && !few_)) return log;
  log.tail = end_of(path);
  room_ -= static_cast<std::int64_t>(log.tail.size());
  return log;
}

}  // namespace phasor::cli
