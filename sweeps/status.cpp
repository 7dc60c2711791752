#include "sweeps/status.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "core/base/text.h"
#include "results/manifest.h"
#include "results/store.h"
#include "sweeps/expand.h"
#include "sweeps/lease.h"

namespace phasor::sweeps {

namespace {

using results::Status;
namespace fs = std::filesystem;

/// A runner between two trials holds no lease for a moment: it is looked for more than once.
Standing look_for_leases(const std::string& folder) {
  Standing standing = read_leases(folder);
  for (int look = 0; look < 3 && standing.owners.empty() && fs::exists(folder + "/leases"); ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    standing = read_leases(folder);
  }
  return standing;
}

/// Each process that holds a lease, once.
std::vector<SweepStatus::Runner> runners_of(const Standing& standing) {
  std::vector<SweepStatus::Runner> runners;
  for (const auto& [id, owner] : standing.owners) {
    const auto known = std::find_if(runners.begin(), runners.end(), [&o = owner](const SweepStatus::Runner& runner) {
      return runner.host == o.host && runner.process == o.process;
    });
    if (known != runners.end())
      ++known->trials;
    else
      runners.push_back({owner.host, owner.process, owner.jobs, 1, owner.task});
  }
  return runners;
}

/// From when its experiment file was written, right before it started, until `end`.
double seconds_from_start(const std::string& folder, const std::string& id, fs::file_time_type end) {
  std::error_code error;
  const fs::file_time_type began = fs::last_write_time(folder + "/" + id + ".json", error);
  return error ? 0.0 : std::chrono::duration<double>(end - began).count();
}

/// How long its place in the sweep was taken: its process's start and end belong to that, which the trial cannot measure. Files
/// that were copied, touched or made by an earlier attempt say nothing; then what it measured counts.
double seconds_taken(const std::string& folder, const std::string& id, double measured) {
  constexpr double most_around = 10.0;  // to start a process, load plugins and store a record
  std::error_code error;
  const fs::file_time_type ended = fs::last_write_time(folder + "/" + id + ".h5", error);
  const double taken = error ? 0.0 : seconds_from_start(folder, id, ended);
  return taken > measured && taken < measured + most_around ? taken : measured;
}

Trouble trouble_of(const results::TrialRecord& record, const std::string& name, const std::string& folder) {
  Trouble trouble{record.id, name, record.status, record.message, log_of(folder, record.id), ""};
  std::string command = shell_words({"phasor", "run", folder + "/" + record.id + ".json"});
  for (const auto& [fact, value] : record.provenance) {
    if (fact == "command") command = value;  // with the plugins it was given
  }
  trouble.rerun = command + " " + shell_words({"--out", folder, "--force"});
  return trouble;
}

void count(SweepStatus& status, const results::TrialRecord& record) {
  status.done += record.status == Status::done ? 1 : 0;
  status.diverged += record.status == Status::diverged ? 1 : 0;
  status.failed += results::is_failure(record.status) ? 1 : 0;
  if (record.status != Status::done) return;
  for (const auto& [name, value] : record.summary) {
    if (name != "seconds") continue;
    const double taken = seconds_taken(status.folder, record.id, value);
    status.mean_seconds += (taken - status.mean_seconds) / static_cast<double>(++status.measured);
  }
}

/// By the mean of what was measured: each queued trial begins where a place becomes free first, as with runners.
void estimate(SweepStatus& status, const std::set<std::string>& active) {
  if (!status.running || status.measured == 0 || status.again > 0) return;  // only the runner knows how many more run again
  std::multiset<double> places;  // when each is free, seconds from now
  for (const std::string& id : active) {
    const double since = seconds_from_start(status.folder, id, fs::file_time_type::clock::now());
    places.insert(std::clamp(status.mean_seconds - since, 0.0, status.mean_seconds));
  }
  while (static_cast<std::int64_t>(places.size()) < status.jobs()) places.insert(0.0);
  for (std::int64_t i = 0; i < status.queued; ++i) {
    const double free = *places.begin();
    places.erase(places.begin());
    places.insert(free + status.mean_seconds);
  }
  status.eta_seconds = places.empty() ? 0.0 : *places.rbegin();
}

/// Null when nothing was ever submitted, or nothing is left.
Json to_json(const slurm::Queue& queue) {
  if (queue.tasks.empty() && queue.problem.empty()) return {};
  Json json = Json::object();
  json["problem"] = queue.problem;
  json["tasks"] = Json::array();
  for (const slurm::QueuedTask& task : queue.tasks) {
    Json entry = Json::object();
    entry["job"] = task.job;
    entry["task"] = task.task;
    entry["state"] = task.state;
    entry["reason"] = task.reason;
    entry["trials"] = Json::array();
    for (const std::string& id : task.trials) entry["trials"].push_back(id);
    json["tasks"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace

std::string log_of(const std::string& folder, const std::string& id) {
  const std::string whole = folder + "/logs/" + id + ".log", head = folder + "/logs/" + id.substr(0, 8) + ".log";
  return fs::exists(whole) ? whole : head;
}

SweepStatus read_status(const std::string& folder) {
  const results::Manifest manifest = results::read_manifest(folder);
  SweepStatus status;
  status.name = manifest.name;
  status.folder = folder;
  // The leases first: a runner that ends meanwhile leaves records, not the other way round.
  const Standing standing = look_for_leases(folder);
  status.queue = slurm::read_queue(folder);
  status.runners = runners_of(standing);
  status.running = !status.runners.empty();
  status.lost_attempts = standing.lost;
  std::set<std::string> active;
  for (const auto& [id, owner] : standing.owners) active.insert(id);
  const results::Folder found = results::load_folder(folder, results::Steps::dropped);
  std::map<std::string, const results::TrialRecord*> records;
  for (const results::TrialRecord& record : found.records) records[record.id] = &record;
  const std::vector<std::string> held = status.queue.held();
  const bool takes_all = std::any_of(status.runners.begin(), status.runners.end(), [](const auto& runner) { return runner.task.empty(); });
  std::set<std::string> seen;
  for (const results::ManifestTrial& cell : manifest.trials) {
    if (!cell.excluded.empty() || !seen.insert(cell.id).second) continue;
    ++status.trials;
    const auto record = records.find(cell.id);
    if (record == records.end()) {
      const bool waits = takes_all || std::binary_search(held.begin(), held.end(), cell.id);
      ++(active.contains(cell.id) ? status.active : waits ? status.queued : status.missing);
      continue;
    }
    if (active.erase(cell.id) > 0 && standing.owners.at(cell.id).replaces != 0) ++status.again;
    count(status, *record->second);
    if (record->second->status != Status::done)
      status.troubles.push_back(trouble_of(*record->second, cell_name(manifest, cell), folder));
  }
  status.trials += manifest.awaiting;
  (takes_all ? status.queued : status.missing) += manifest.awaiting;  // named when the selection is complete
  for (const auto& [id, record] : records) status.others += seen.contains(id) ? 0 : 1;
  for (const results::Damaged& damaged : found.damaged)
    status.damaged += seen.contains(fs::path(damaged.file).stem().string()) ? 1 : 0;
  std::erase_if(active, [&](const std::string& id) { return !seen.contains(id); });
  estimate(status, active);
  return status;
}

Json to_json(const SweepStatus& status) {
  Json json = Json::object();
  json["name"] = status.name;
  json["folder"] = status.folder;
  json["sweep_is_running"] = status.running;
  json["jobs"] = status.jobs();
  json["runners"] = Json::array();
  for (const SweepStatus::Runner& runner : status.runners) {
    Json entry = Json::object();
    entry["host"] = runner.host;
    entry["process"] = runner.process;
    entry["jobs"] = runner.jobs;
    entry["trials"] = runner.trials;
    if (!runner.task.empty()) entry["slurm_task"] = runner.task;
    json["runners"].push_back(std::move(entry));
  }
  for (const auto& [name, value] : {std::pair("trials", status.trials), std::pair("queued", status.queued),
                                    std::pair("running", status.active), std::pair("done", status.done),
                                    std::pair("diverged", status.diverged), std::pair("failed", status.failed),
                                    std::pair("missing", status.missing), std::pair("running_again", status.again),
                                    std::pair("damaged", status.damaged),
                                    std::pair("others", status.others),
                                    std::pair("lost_attempts", status.lost_attempts)}) {
    json[name] = value;
  }
  json["mean_seconds"] = status.measured > 0 ? Json(status.mean_seconds) : Json();
  json["eta_seconds"] = status.eta_seconds ? Json(*status.eta_seconds) : Json();
  json["slurm"] = to_json(status.queue);
  json["troubles"] = Json::array();
  for (const Trouble& trouble : status.troubles) {
    Json entry = Json::object();
    entry["id"] = trouble.id;
    entry["name"] = trouble.name;
    entry["status"] = to_text(trouble.status);
    entry["message"] = trouble.message;
    entry["log"] = trouble.log;
    entry["rerun"] = trouble.rerun;
    json["troubles"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace phasor::sweeps
