#include "sweeps/launchers/slurm_submission.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "results/files.h"

namespace phasor::sweeps::slurm {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t format_version = 1;

/// 0 when the name is not that of a submission.
std::int64_t number_of(const fs::path& place) {
  const std::string name = place.filename().string();
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && stop == name.data() + name.size() && number > 0 ? number : 0;
}

Json json_of(const Submitted& submitted) {
  Json json = Json::object();
  json["id"] = submitted.trial.id;
  json["cell"] = submitted.cell;
  json["replaces"] = Json();
  if (const auto& stamp = submitted.replaces)
    json["replaces"] = Json::Array{std::to_string(stamp->file), stamp->time, stamp->bytes};
  json["spec"] = submitted.trial.spec;
  return json;
}

/// Members of our own file; UserError where one is missing, InternalError where one is of another type.
const Json& member(const Json& json, const char* name) {
  const Json* found = json.is_object() ? json.find(name) : nullptr;
  if (found == nullptr) throw InternalError(std::string("no \"") + name + "\"");
  return *found;
}

Submitted submitted_of(const Json& json) {
  Submitted submitted{{member(json, "spec"), member(json, "id").as_string()}, member(json, "cell").as_integer(), {}};
  if (const Json& stamp = member(json, "replaces"); !stamp.is_null()) {
    const Json::Array& parts = stamp.as_array();
    submitted.replaces = Stamp{std::stoull(parts.at(0).as_string()), parts.at(1).as_integer(), parts.at(2).as_integer()};
  }
  return submitted;
}

Submission submission_of(const Json& json) {
  if (const std::int64_t format = member(json, "format").as_integer(); format != format_version)
    throw InternalError("found format " + std::to_string(format) + ", this program reads " + std::to_string(format_version));
  Submission made;
  made.name = member(json, "name").as_string();
  made.lead = member(json, "lead").as_integer();
  made.limits = {member(json, "seconds").as_integer(), member(json, "memory_mb").as_integer()};
  made.options.jobs = member(json, "jobs").as_integer();
  if (const Json* trials = json.find("trials_per_device")) made.options.trials_per_device = trials->as_integer();  // newer than the format
  made.options.fail_fast = member(json, "fail_fast").as_bool();
  made.options.lease_seconds = member(json, "lease").as_number();
  made.options.attempts = member(json, "attempts").as_integer();
  made.options.grace_seconds = member(json, "grace").as_number();
  for (const Json& file : member(json, "plugins").as_array()) made.options.plugin_files.push_back(file.as_string());
  for (const Json& task : member(json, "tasks").as_array()) {
    made.tasks.emplace_back();
    for (const Json& trial : task.as_array()) made.tasks.back().push_back(submitted_of(trial));
  }
  return made;
}

}  // namespace

std::string next_place(const std::string& folder) {
  std::error_code error;
  std::int64_t number = 1;
  for (const auto& entry : fs::directory_iterator(folder + "/slurm", error)) number = std::max(number, number_of(entry.path()) + 1);
  return folder + "/slurm/" + std::to_string(number);
}

std::string claim_place(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder + "/slurm", error);
  for (;;) {
    const std::string place = next_place(folder);
    if (fs::create_directory(place, error)) return place;  // else somebody was faster
    if (error) throw UserError(place + ": cannot be made: " + error.message());
  }
}

void write_submission(const Submission& submission, const std::string& place) {
  Json json = Json::object();
  json["format"] = format_version;
  json["name"] = submission.name;
  json["lead"] = submission.lead;
  json["seconds"] = submission.limits.seconds;
  json["memory_mb"] = submission.limits.memory_mb;
  json["jobs"] = submission.options.jobs;
  json["trials_per_device"] = submission.options.trials_per_device;
  json["fail_fast"] = submission.options.fail_fast;
  json["lease"] = submission.options.lease_seconds;
  json["attempts"] = submission.options.attempts;
  json["grace"] = submission.options.grace_seconds;
  json["plugins"] = Json::array();
  for (const std::string& file : submission.options.plugin_files) json["plugins"].push_back(file);
  json["tasks"] = Json::array();
  for (const auto& task : submission.tasks) {
    Json trials = Json::array();
    for (const Submitted& submitted : task) trials.push_back(json_of(submitted));
    json["tasks"].push_back(std::move(trials));
  }
  results::write_whole(place, "trials.json", "trials.json", json.pretty() + "\n");
}

Submission read_submission(const std::string& place) {
  const std::string file = place + "/trials.json";
  const Json json = parse_json(results::read_file(file), file);
  try {
    return submission_of(json);
  } catch (const std::logic_error& error) {  // of another type, or a list that is too short
    throw UserError(file + ": not what phasor sweep --launcher slurm writes: " + error.what());
  }
}

void write_job(const Job& job) {
  results::write_whole(job.place, "job", "job", job.number + "\n" + job.script + "\n");
}

std::vector<Job> read_jobs(const std::string& folder) {
  std::vector<std::pair<std::int64_t, Job>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder + "/slurm", error)) {
    const std::string place = entry.path().string();
    if (number_of(entry.path()) == 0 || !fs::exists(place + "/job")) continue;
    std::istringstream lines(results::read_file(place + "/job"));
    Job job{place, "", ""};
    if (std::getline(lines, job.number) && std::getline(lines, job.script)) found.emplace_back(number_of(entry.path()), job);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Job> jobs;
  for (auto& [number, job] : found) jobs.push_back(std::move(job));
  return jobs;
}

}  // namespace phasor::sweeps::slurm
