#include "cli/describe_sweep.h"

#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <vector>

#include "cli/commands.h"
#include "cli/fit_memory.h"
#include "cli/session.h"
#include "core/base/progress.h"
#include "experiments/cost.h"
#include "experiments/memory.h"
#include "results/store.h"

namespace phasor::cli {

namespace {

constexpr double seconds_of_trying = 20.0;  // of steps, for all shapes together

/// What trials of one shape cost.
struct ShapeCost {
  double flops = 0.0;    // of the whole trial
  double seconds = 0.0;  // of the whole trial
  const char* source = "measured";
};

struct Line {
  std::string id, name, status;
  std::int64_t parameters = 0;
  ShapeCost cost;
};

/// Costs by shape: times from trials that ran here, then from steps tried out, then from the speed of those that were tried.
class Costs {
 public:
  Costs(const Phases& phases, const std::string& folder, const Registry& registry) : registry_(registry) {
    if (!std::filesystem::exists(folder)) return;
    std::map<std::string, const Trial*> trials;
    for (const Trial& trial : phases.sweep().expansion.trials) trials[trial.id] = &trial;
    for (const results::TrialRecord& record : results::load_folder(folder, results::Steps::dropped).records) {
      const auto trial = trials.find(record.id);
      if (trial == trials.end() || record.status != results::Status::done) continue;
      for (const auto& [name, value] : record.summary) {
        if (name != "seconds") continue;
        auto& [sum, count] = ran_[shape_of(*trial->second)];
        sum += value;
        ++count;
      }
    }
  }

  const ShapeCost& of(const Trial& trial) {
    const std::string shape = shape_of(trial);
    if (const auto known = costs_.find(shape); known != costs_.end()) return known->second;
    ExperimentSpec spec(registry_);
    Document document = Document::parse(trial.spec.canonical(), trial.id);
    spec.read(document);
    if (!phasor::memory_problem(spec).empty()) return costs_[shape] = {0.0, 0.0, "not known"};
    const Cost cost = count_cost(spec);
    ShapeCost& made = costs_[shape];
    made.flops = cost.step_flops * static_cast<double>(spec.train.steps);
    if (const auto ran = ran_.find(shape); ran != ran_.end()) {
      made.seconds = ran->second.first / static_cast<double>(ran->second.second);
    } else if (spent_ < seconds_of_trying) {
      const auto begin = std::chrono::steady_clock::now();
      const TimeEstimate time = estimate_time(spec, cost);
      spent_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      made.seconds = time.seconds;
      made.source = time.measured ? "tried" : "computed";
      tried_flops_ += made.flops;
      tried_seconds_ += made.seconds;
    } else {
      made.seconds = tried_flops_ > 0.0 ? made.flops * tried_seconds_ / tried_flops_ : 0.0;
      made.source = "computed";
    }
    return made;
  }

 private:
  const Registry& registry_;
  std::map<std::string, std::pair<double, std::int64_t>> ran_;  // shape to the sum of seconds and their number
  std::map<std::string, ShapeCost> costs_;
  double spent_ = 0.0, tried_flops_ = 0.0, tried_seconds_ = 0.0;
};

std::vector<Line> lines_of(const Phases& phases, Costs& costs) {
  const sweeps::Expansion& expansion = phases.sweep().expansion;
  std::vector<Line> lines;
  for (std::size_t i = 0; i < expansion.trials.size(); ++i) {
    const Trial& trial = expansion.trials[i];
    const results::ManifestTrial& cell = expansion.manifest.trials[expansion.first_cell[i]];
    const auto ended = phases.state().ended.find(trial.id);
    lines.push_back({trial.id, sweeps::cell_name(expansion.manifest, cell),
                     ended == phases.state().ended.end() ? "to run" : to_text(ended->second), cell.parameters, costs.of(trial)});
  }
  return lines;
}

Json json_of(const Phases& phases, const std::vector<Line>& lines, double seconds, double flops) {
  Json trials = Json::array();
  for (const Line& line : lines) {
    Json entry = Json::object();
    entry["id"] = line.id;
    entry["name"] = line.name;
    entry["status"] = line.status;
    entry["parameters"] = line.parameters;
    entry["flops"] = line.cost.flops;
    entry["seconds"] = line.cost.seconds;
    entry["seconds_are"] = line.cost.source;
    trials.push_back(std::move(entry));
  }
  Json json = Json::object();
  json["name"] = phases.sweep().spec.name;
  json["trials"] = std::move(trials);
  json["awaiting_selection"] = phases.sweep().expansion.manifest.awaiting;
  json["to_run"] = phases.to_run();
  json["flops_to_run"] = flops;
  json["seconds_to_run"] = seconds;
  return json;
}

}  // namespace

int describe_sweep(const Phases& phases, const std::string& folder, std::int64_t jobs, const Registry& registry, bool as_json) {
  Costs costs(phases, folder, registry);
  const std::vector<Line> lines = lines_of(phases, costs);
  double seconds = 0.0, flops = 0.0, all_seconds = 0.0, all_flops = 0.0;
  for (const Line& line : lines) {
    all_seconds += line.cost.seconds;
    all_flops += line.cost.flops;
    if (line.status != "to run") continue;
    seconds += line.cost.seconds;
    flops += line.cost.flops;
  }
  // Nobody knows yet what is chosen: the mean of what can be.
  const double awaiting = static_cast<double>(phases.sweep().expansion.manifest.awaiting) / static_cast<double>(lines.size());
  seconds += awaiting * all_seconds;
  flops += awaiting * all_flops;
  if (as_json) {
    fmt::print("{}\n", json_of(phases, lines, seconds, flops).pretty());
    return exit_code::done;
  }
  print_product(phases);
  print_stale(phases.state());
  for (const std::string& line : devices_text(requested_devices(phases.sweep().expansion)))
    fmt::print("{:<16} {}; times are of the processor\n", "device", line);
  fmt::print("{:<10} {:<9} {:>13} {:>10} {:>9}   {}\n", "trial", "status", "parameters", "TFLOP", "time", "name");
  for (const Line& line : lines) {
    const bool tried = line.cost.source != std::string("computed"), known = line.cost.source != std::string("not known");
    fmt::print("{:<10} {:<9} {:>13} {:>10} {:>9}   {}\n", line.id.substr(0, 8), line.status, grouped(line.parameters),
               known ? fmt::format("{:.4g}", line.cost.flops / 1e12) : "", known ? (tried ? "" : "~") + duration_text(line.cost.seconds) : "no room", line.name);
  }
  if (awaiting > 0.0)
    fmt::print("{:<10} {:<9} {} fresh trials of what the selection chooses\n", "", "to run", phases.sweep().expansion.manifest.awaiting);
  fmt::print("{:<16} {} of {}, {:.4g} TFLOP, {} on this machine with {} jobs\n", "to run", phases.to_run(), phases.trials(), flops / 1e12,
             duration_text(seconds / static_cast<double>(jobs)), jobs);
  fmt::print("{:<16} of trials that ran here, else of steps that were tried out; ~: from the arithmetic\nnothing was started\n", "times");
  return exit_code::done;
}

}  // namespace phasor::cli
