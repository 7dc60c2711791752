#pragma once

#include <stdlib.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>

#include "results/record.h"

namespace phasor::results {

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "phasor-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A record with something in every field.
inline TrialRecord sample_record(const std::string& id, std::int64_t steps = 20) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  TrialRecord record;
  record.id = id;
  record.spec["seed"] = std::int64_t{9007199254740993};  // 2^53 + 1, which a double cannot hold
  record.spec["optimizer"]["lr"] = 0.001;
  record.spec["note"] = "S\xC3\xA9lective \"quoted\"";
  record.spec["task"]["lengths"] = Json::Array{32, 64};
  record.status = Status::diverged;
  record.message = "loss nan at step 20";
  for (std::int64_t step = 1; step <= steps; ++step) {
    record.steps.push_back({step, 1.0 / static_cast<double>(step), 1e-3, 2.5, step % 3 == 0});
  }
  record.steps.back().loss = nan;
  record.steps.back().grad_norm = infinity;
  record.evals = {{10, "valid", "loss", -1, 0.5, 1000},
                  {20, "valid", "sequence_accuracy", 32, -0.0, 1000},
                  {20, "test", "loss", 128, -infinity, 4000}};
  record.parameters = {{"embedding.weight", 288, false, false}, {"layers.0.encoding.temperature", 8, true, true}};
  record.summary = {{"steps_to_solve", nan}, {"step_ms", 4.1}};
  record.provenance = {{"commit", "76cea72"}, {"flags", ""}, {"data.test", "c41e77"}};
  record.bits = "00ff";
  return record;
}

}  // namespace phasor::results
