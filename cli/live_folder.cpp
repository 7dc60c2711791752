#include "cli/live_folder.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "cli/trial_log.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "results/store.h"
#include "sweeps/lease.h"
#include "sweeps/status.h"

namespace phasor::cli {

namespace fs = std::filesystem;

LiveFolder::LiveFolder(std::string folder, bool allow_mixed) : folder_(std::move(folder)), allow_mixed_(allow_mixed) {
  look();
  make();
}

bool LiveFolder::look() {
  looked_ = std::chrono::steady_clock::now();
  bool changed = false;
  const std::optional<sweeps::Stamp> stamp = sweeps::stamp_of(folder_ + "/sweep.json");
  if (!manifest_stamp_ || stamp != manifest_stamp_) {
    manifest_ = results::read_manifest(folder_);
    manifest_stamp_ = stamp;
    changed = true;
  }
  std::set<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") || !name.ends_with(".h5")) continue;
    const std::optional<sweeps::Stamp> now = sweeps::stamp_of(entry.path().string());
    if (!now) continue;
    found.insert(name);
    const auto known = files_.find(name);
    if (known != files_.end() && known->second.stamp == *now) continue;
    Known fresh{*now, std::nullopt, ""};
    try {
      fresh.record = results::load(entry.path().string());
    } catch (const UserError& damage) {
      fresh.damage = damage.what();
    }
    files_.insert_or_assign(name, std::move(fresh));
    changed = true;
  }
  changed = std::erase_if(files_, [&](const auto& file) { return !found.contains(file.first); }) > 0 || changed;

  const auto works = sweeps::read_leases(folder_).owners.size();
  const std::string state =
      works == 0 ? "no sweep runs here; what it adds will appear by itself"
                 : fmt::format("a sweep runs here, {} {} at work", works, works == 1 ? "trial is" : "trials are");
  changed = changed || state != state_;
  state_ = state;
  return changed;
}

void LiveFolder::make() {
  results::Folder records;
  for (const auto& [name, file] : files_) {
    if (file.record) {
      records.records.push_back(*file.record);
    } else {
      records.damaged.push_back({folder_ + "/" + name, file.damage});
    }
  }
  TrialLogs logs(folder_, manifest_);
  analysis::ReportOptions options;
  options.allow_mixed = allow_mixed_;
  options.tolerant = true;
  options.folder = shell_words({folder_});
  options.state = state_;
  options.log = [&](const results::ManifestTrial& trial, bool ended_well) {
    return logs.find(trial.id, ended_well, folder_);
  };
  std::optional<results::Costs> costs;
  try {
    costs = results::find_costs(folder_);
  } catch (const UserError& damage) {
    options.state += std::string("; ") + damage.what();
  }
  options.costs = costs ? &*costs : nullptr;
  report_ = analysis::make_report(manifest_, records, options);
}

const analysis::Report& LiveFolder::report() {
  if (std::chrono::steady_clock::now() - looked_ >= std::chrono::seconds(1) && look()) make();
  return *report_;
}

std::optional<std::string> LiveFolder::log_file(const std::string& id) {
  const bool known = !id.empty() && std::any_of(manifest_.trials.begin(), manifest_.trials.end(),
                                                [&](const auto& trial) { return trial.id == id; });
  if (!known) return std::nullopt;
  std::error_code error;
  const fs::path file =
      fs::canonical(sweeps::log_of(folder_, id), error);  // follows links: only then is it known where it lies
  const fs::path inside = fs::canonical(folder_ + "/logs", error);
  if (error || file.parent_path() != inside || !fs::is_regular_file(file, error)) return std::nullopt;
  return file.string();
}

}  // namespace phasor::cli
