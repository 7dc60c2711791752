// Writes a finished sweep without training: `synthetic DIR ROWS COLUMNS RATES SEEDS STEPS` makes sweep.json and a record
// for every cell, whose numbers are random but always the same.

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "core/base/philox.h"
#include "core/spec/json.h"
#include "results/h5.h"
#include "results/manifest.h"
#include "results/store.h"

namespace phasor {
namespace {

struct Sizes {
  std::int64_t rows, columns, rates, seeds, steps;
};

results::ManifestAxis points(const std::string& name, const std::string& role, const std::string& prefix, std::int64_t count) {
  results::ManifestAxis axis{name, role, "", {}, {}, 0};
  for (std::int64_t i = 0; i < count; ++i) axis.labels.push_back(prefix + std::to_string(i));
  return axis;
}

results::ManifestAxis values(const std::string& name, const std::string& role, const std::string& path, std::int64_t count, double unit) {
  results::ManifestAxis axis{name, role, path, {}, {}, 0};
  for (std::int64_t i = 0; i < count; ++i) {
    axis.values.emplace_back(unit * static_cast<double>(i + 1));
    axis.labels.push_back(shortest(axis.values.back().as_number()));
  }
  return axis;
}

/// As a small experiment leaves it: some dozen options, evaluations, parameters and facts.
results::TrialRecord record_of(const results::Manifest& manifest, const results::ManifestTrial& trial, std::int64_t steps, std::uint64_t number) {
  Draws draws(number, Purpose::statistics, 7);
  results::TrialRecord record;
  record.id = trial.id;
  record.spec = Json::object();
  for (std::size_t i = 2; i < trial.at.size(); ++i) {
    record.spec.make_path(manifest.axes[i].path) = manifest.axes[i].values[static_cast<std::size_t>(trial.at[i])];
  }
  record.spec.make_path("task.name") = "state_tracking";
  for (int i = 0; i < 40; ++i) record.spec.make_path("model.option" + std::to_string(i)) = i;
  for (std::int64_t step = 1; step <= steps; ++step) record.steps.push_back({step, draws.uniform(), 0.01, draws.uniform(), false});
  const double level = 0.4 + 0.05 * static_cast<double>(trial.at[0] % 10) + 0.1 * draws.uniform();
  for (const char* split : {"valid", "test"}) {
    for (const std::int64_t slice : {32, 64, 96, 128}) {
      record.evals.push_back({steps, split, "accuracy", slice, level * 32.0 / static_cast<double>(slice), 1000});
      record.evals.push_back({steps, split, "loss", slice, 1.0 - level, 1000});
    }
  }
  for (int i = 0; i < 20; ++i) record.parameters.push_back({"layers.0.part" + std::to_string(i), 700, false, true});
  record.summary = {{"steps_to_solve", 100.0}, {"step_ms", 4.0 + draws.uniform()}, {"spikes", 1.0}, {"clipped_share", 0.25}, {"chance", 0.5}};
  for (int i = 0; i < 30; ++i) record.summary.emplace_back("shared_rows.test." + std::to_string(i), 0.0);
  record.provenance = {{"commit", "abc"}, {"dirty", "0"}, {"processor", "P"}, {"device", "cpu"}};
  for (int i = 0; i < 20; ++i) record.provenance.emplace_back("numerics.part" + std::to_string(i), "1");
  return record;
}

void write(const std::string& folder, const Sizes& sizes) {
  results::Manifest manifest;
  manifest.name = "synthetic";
  manifest.axes = {points("variant", "row", "V", sizes.rows), points("task", "column", "T", sizes.columns),
                   values("lr", "select", "optimizer.lr", sizes.rates, 0.001), values("seed", "replicate", "seed", sizes.seeds, 1.0)};
  manifest.varied = {"optimizer.lr", "seed"};
  manifest.table = parse_json(R"({
    "select": {"split": "valid", "metric": "accuracy", "slice": 32, "at": "final", "ties": ["valid.loss", "lowest"]},
    "report": [{"split": "test", "metric": "accuracy", "slices": [32, 64, 96, 128]}], "solved_at": 0.95, "baseline": "V0"})", "table");
  for (std::int64_t number = 0; number < sizes.rows * sizes.columns * sizes.rates * sizes.seeds; ++number) {
    std::int64_t rest = number;
    std::vector<std::int64_t> at(4);
    const std::int64_t counts[] = {sizes.rows, sizes.columns, sizes.rates, sizes.seeds};
    for (std::size_t axis = 4; axis-- > 0; rest /= counts[axis]) at[axis] = rest % counts[axis];
    const std::string id = "trial-" + std::to_string(number);
    manifest.trials.push_back({id, at, "", 14000});
    results::h5::Writer file;
    results::write_record(file, record_of(manifest, manifest.trials.back(), sizes.steps, static_cast<std::uint64_t>(number)));
    std::ofstream(folder + "/" + id + ".h5", std::ios::binary) << file.image();
  }
  results::write_manifest(manifest, folder);
}

}  // namespace
}  // namespace phasor

int main(int count, char** words) {
  if (count != 7) {
    std::cerr << "synthetic DIR ROWS COLUMNS RATES SEEDS STEPS\n";
    return 2;
  }
  phasor::write(words[1], {std::stoll(words[2]), std::stoll(words[3]), std::stoll(words[4]), std::stoll(words[5]), std::stoll(words[6])});
}
