#include "sweeps/launchers/slurm.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "results/files.h"
#include "results/manifest.h"
#include "sweeps/launchers/program.h"

namespace phasor::sweeps::slurm {

namespace {

namespace fs = std::filesystem;

constexpr double sbatch_seconds = 300.0;  // it asks again and again when Slurm is busy
constexpr double control_seconds = 60.0;

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

Place place_of(const std::string& sweep, const std::string& folder) {
  return {sweep, fs::read_symlink("/proc/self/exe").string(), absolute(folder), fs::current_path().string()};
}

/// Empty outside of Slurm.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Submission submission_of(const Sweep& sweep, const FolderState& state, const RunnerOptions& options, const Plan& plan) {
  Submission submission{sweep.spec.name, options, sweep.spec.limits, plan.lead, {}};
  submission.options.jobs = plan.jobs;
  submission.options.trials_per_device = plan.trials_per_device;
  for (std::string& file : submission.options.plugin_files) file = absolute(file);
  for (const std::vector<std::size_t>& part : plan.tasks) {
    submission.tasks.emplace_back();
    for (const std::size_t i : part) {
      Submitted one{sweep.expansion.trials[i], static_cast<std::int64_t>(sweep.expansion.first_cell[i]), {}};
      if (const auto stamp = state.stamps.find(one.trial.id); stamp != state.stamps.end()) one.replaces = stamp->second;
      submission.tasks.back().push_back(std::move(one));
    }
  }
  return submission;
}

/// The number of the job.
std::string give_to_slurm(const std::string& script) {
  const Said said = run_program({"sbatch", "--parsable", script}, sbatch_seconds);
  if (!said.found)
    throw UserError("--launcher slurm: sbatch is not installed here; give the command on a machine that submits to Slurm (Debian: "
                    "apt-get install slurm-client), or leave --launcher out");
  if (!said.well()) throw UserError("--launcher slurm: " + complaint("sbatch", said) + "; nothing was submitted");
  return said.out.substr(0, said.out.find_first_of(";\n"));  // "123" or "123;cluster"
}

/// What of a submission a task runs, as a sweep of its own; the manifest is that of all.
Sweep part_of(const Submission& submission, const std::string& place, std::int64_t task) {
  const auto count = static_cast<std::int64_t>(submission.tasks.size());
  if (task < 0 || task >= count)
    throw UserError("--task: found " + std::to_string(task) + ", " + place + " has the tasks 0 to " + std::to_string(count - 1));
  Sweep part;
  part.spec.name = submission.name;
  part.spec.limits = submission.limits;
  part.expansion.manifest = results::read_manifest(place);
  for (const Submitted& submitted : submission.tasks[static_cast<std::size_t>(task)]) {
    if (submitted.cell < 0 || submitted.cell >= static_cast<std::int64_t>(part.expansion.manifest.trials.size()))
      throw UserError(place + "/trials.json: cell " + std::to_string(submitted.cell) + " is not in the sweep.json beside it");
    part.expansion.trials.push_back(submitted.trial);
    part.expansion.first_cell.push_back(static_cast<std::size_t>(submitted.cell));
  }
  return part;
}

/// Checkpoints of the part that there are, as they are.
std::vector<std::optional<Stamp>> checkpoints(const Sweep& part, const std::string& folder) {
  std::vector<std::optional<Stamp>> stamps;
  for (const Trial& trial : part.expansion.trials) stamps.push_back(stamp_of(results::checkpoint_file(folder, trial.id)));
  return stamps;
}

/// Asks Slurm to queue this task again, or says why not.
std::string requeue(std::int64_t lead, bool gained) {
  const std::string job = variable("SLURM_JOB_ID");
  if (job.empty()) return "";  // run by hand
  const Said said = run_program({"squeue", "--noheader", "--jobs=" + job, "--format=%T|%L"}, control_seconds);
  if (!said.well()) return "not queued again: " + complaint("squeue", said);
  const std::string line = said.out.substr(0, said.out.find('\n'));
  const std::string state = line.substr(0, line.find('|')), left = line.substr(std::min(line.size(), state.size() + 1));
  if (state != "RUNNING") return "Slurm ends this task itself (" + state + ")";
  if (!should_requeue(state, seconds_in(left), lead, gained))
    return "not queued again: the time of the task (" + left + " left) was too short for a trial to end or to write a checkpoint; more of it "
           "(--slurm time=...) or checkpoints (run.checkpoint_every) help";
  const Said asked = run_program({"scontrol", "requeue", job}, control_seconds);
  return asked.well() ? "queued again" : "not queued again: " + complaint("scontrol", asked);
}

}  // namespace

std::vector<std::size_t> to_submit(const Expansion& expansion, const FolderState& state, const RunnerOptions& options,
                                   const Queue& queue) {
  std::vector<std::size_t> wanted = to_run(expansion, state, options);
  const std::vector<std::string> held = queue.held();
  std::erase_if(wanted, [&](std::size_t i) { return std::binary_search(held.begin(), held.end(), expansion.trials[i].id); });
  return wanted;
}

std::string next_script(const Sweep& sweep, const std::string& folder, const Plan& plan) {
  return script_text(plan, place_of(sweep.spec.name, next_place(folder)));
}

Job submit(const Sweep& sweep, const FolderState& state, const RunnerOptions& options, const Plan& plan) {
  results::write_manifest(sweep.expansion.manifest, options.folder);
  const std::string place = claim_place(options.folder);
  bool submitted = false;
  try {
    const Place where = place_of(sweep.spec.name, place);
    results::write_manifest(sweep.expansion.manifest, place);
    write_submission(submission_of(sweep, state, options, plan), place);
    results::write_whole(place, "job.sh", "job.sh", script_text(plan, where));
    Job job{place, "", where.folder + "/job.sh"};
    job.number = give_to_slurm(job.script);
    submitted = true;
    write_job(job);
    return job;
  } catch (...) {
    std::error_code ignored;
    if (!submitted) fs::remove_all(place, ignored);
    throw;
  }
}

TaskEnd run_task(const std::string& place, std::int64_t task) {
  const Submission submission = read_submission(place);
  const Sweep part = part_of(submission, place, task);
  RunnerOptions options = submission.options;
  options.folder = fs::path(place).parent_path().parent_path().string();
  if (const std::string array = variable("SLURM_ARRAY_JOB_ID"); !array.empty()) options.task = array + "_" + std::to_string(task);
  FolderState state = read_folder(options.folder, part.expansion);
  for (const Submitted& submitted : submission.tasks[static_cast<std::size_t>(task)]) {
    const auto now = state.stamps.find(submitted.trial.id);
    if (now != state.stamps.end() && submitted.replaces == now->second) state.again.insert(submitted.trial.id);
  }
  const std::size_t missing = to_run(part.expansion, state, options).size();
  const std::vector<std::optional<Stamp>> before = checkpoints(part, options.folder);
  TaskEnd end{run_trials(part, state, options), ""};
  const auto left = static_cast<std::size_t>(end.summary.missing + end.summary.kept);
  if (!end.summary.killed || left == 0) return end;
  const bool gained = left < missing || checkpoints(part, options.folder) != before;
  end.requeue = requeue(submission.lead, gained);
  return end;
}

}  // namespace phasor::sweeps::slurm
