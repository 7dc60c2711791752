#include "sweeps/launchers/slurm_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/spec/json.h"

namespace phasor::sweeps::slurm {

namespace {

constexpr std::int64_t most_tasks = 100;      // of an array, unless --chunk says otherwise; Slurm takes 1000 as it comes
constexpr std::int64_t spare_mb = 256;        // libraries and stacks, which limits.memory_mb does not count
constexpr std::int64_t spare_seconds = 60;    // to start, and to store what is done
constexpr std::int64_t requeue_seconds = 30;  // from the end of the last trial until the task is queued again

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = {
      "account", "begin", "constraint", "cpus-per-task", "dependency", "exclude", "gpus", "gpus-per-task", "gres",
      "licenses", "mail-type", "mail-user", "mem", "mem-per-cpu", "mem-per-gpu", "nice", "nodelist", "partition", "qos",
      "reservation", "time", "time-min", "tmp"};
  return keys;
}

/// Keys that the launcher sets, with what decides them.
const std::vector<std::pair<std::string, std::string>>& own_keys() {
  static const std::vector<std::pair<std::string, std::string>> keys = {
      {"array", "--chunk says how many trials a task takes, --max-tasks how many tasks run at the same time"},
      {"nodes", "a task of the array is one process on one node; --chunk and --jobs say how much it does"},
      {"ntasks", "a task of the array is one process on one node; --chunk and --jobs say how much it does"},
      {"signal", "--grace says how long running trials have to end"},
      {"requeue", "tasks are always requeued"},
      {"no-requeue", "tasks are always requeued"},
      {"job-name", "it is that of the sweep"},
      {"output", "it goes beside the script, DIR/slurm/N/TASK.log"},
      {"error", "it goes beside the script, DIR/slurm/N/TASK.log"},
      {"chdir", "tasks run where this command is given"}};
  return keys;
}

template <class Pairs>
auto find(const Pairs& pairs, const std::string& key) {
  return std::find_if(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == key; });
}

/// Empty when the setting is well.
std::string mistake_in(const std::string& key, const std::string& value, const Settings& before) {
  if (const auto own = find(own_keys(), key); own != own_keys().end()) return "the launcher sets it: " + own->second;
  const auto& known = known_keys();
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    const std::optional<std::string> meant = nearest(key, known);
    return "unknown key " + json_quoted(key) + ", " + (meant ? "did you mean \"" + *meant + "\"?" : "expected " + quoted_list(known, 30));
  }
  if (find(before, key) != before.end()) return "found twice, expected once";
  const auto odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\'' || c == '\\' || c == '#'; };
  if (value.empty() || std::any_of(value.begin(), value.end(), odd))
    return "found " + json_quoted(value) + ", expected a value without spaces, quotes, \\ and #";
  if (key != "cpus-per-task") return "";
  std::int64_t cpus = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), cpus);
  const bool whole = error == std::errc() && stop == value.data() + value.size() && cpus > 0;
  return whole ? "" : "found " + json_quoted(value) + ", expected an integer of at least 1";
}

/// For a line of #SBATCH, which reads double quotes and backslashes as a shell does.
std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ') throw UserError(json_quoted(text) + ": a control character cannot stand in a job script");
    if (c == '"' || c == '\\') made += '\\';
    made += c;
  }
  return made + "\"";
}

/// A folder in a name that Slurm fills in: its % are to stay.
std::string pattern(const std::string& folder) {
  std::string made;
  for (const char c : folder) made += c == '%' ? "%%" : std::string(1, c);
  return made;
}

/// What Slurm may call a job on the command line and in tables.
std::string job_name(const std::string& sweep) {
  std::string name = "phasor-" + sweep;
  const auto odd = [](char c) { return !((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '.'); };
  std::replace_if(name.begin(), name.end(), odd, '_');
  return name;
}

}  // namespace

Settings read_settings(const std::vector<std::string>& given) {
  Settings settings;
  std::string mistakes;
  for (const std::string& pair : given) {
    const std::size_t sign = pair.find('=');
    const std::string key = pair.substr(0, sign), value = sign == std::string::npos ? "" : pair.substr(sign + 1);
    const std::string mistake = sign == std::string::npos || sign == 0 ? "found " + json_quoted(pair) + ", expected KEY=VALUE"
                                                                       : mistake_in(key, value, settings);
    if (mistake.empty())
      settings.emplace_back(key, value);
    else
      mistakes += (mistakes.empty() ? "--slurm " : "\n--slurm ") + (sign == 0 ? "" : key + ": ") + mistake;
  }
  if (!mistakes.empty()) throw UserError(mistakes);
  return settings;
}

namespace {

std::int64_t divided_up(std::int64_t number, std::int64_t by) { return (number + by - 1) / by; }

/// What the user left open and the limits of a trial decide.
void complete(Plan& plan, std::int64_t threads, const Limits& limits) {
  const auto given = [&](const char* key) { return find(plan.settings, key) != plan.settings.end(); };
  const auto add = [&](const char* key, const std::string& value) {
    if (!given(key)) plan.settings.emplace_back(key, value);
  };
  const std::int64_t places = plan.jobs * plan.trials_per_device;
  add("cpus-per-task", std::to_string(places * threads));
  if (limits.memory_mb > 0 && !given("mem-per-cpu") && !given("mem-per-gpu"))
    add("mem", std::to_string(plan.jobs * (limits.memory_mb + spare_mb) + spare_mb) + "M");
  if (limits.seconds > 0) {
    const std::int64_t seconds = divided_up(plan.chunk, places) * limits.seconds + spare_seconds + plan.lead;
    add("time", std::to_string(divided_up(seconds, 60)));  // in minutes
  }
}

}  // namespace

Plan make_plan(const std::vector<std::size_t>& trials, std::int64_t threads, const Limits& limits, double grace,
               const Wishes& wishes) {
  Plan plan;
  plan.settings = wishes.settings;
  plan.max_tasks = wishes.max_tasks;
  plan.lead = static_cast<std::int64_t>(std::ceil(grace)) + requeue_seconds;
  const auto cpus = find(plan.settings, "cpus-per-task");
  plan.trials_per_device = wishes.trials_per_device;
  const std::int64_t of_job = threads * plan.trials_per_device;
  plan.jobs = wishes.jobs.value_or(cpus == plan.settings.end() ? 1 : std::max<std::int64_t>(1, std::stoll(cpus->second) / of_job));
  const auto count = static_cast<std::int64_t>(trials.size());
  plan.chunk = wishes.chunk.value_or(std::max(plan.jobs * plan.trials_per_device, divided_up(count, most_tasks)));
  for (std::int64_t first = 0; first < count; first += plan.chunk)
    plan.tasks.emplace_back(trials.begin() + first, trials.begin() + std::min(count, first + plan.chunk));
  complete(plan, threads, limits);
  return plan;
}

std::string script_text(const Plan& plan, const Place& place) {
  std::string array = "0-" + std::to_string(plan.tasks.size() - 1);
  if (plan.max_tasks) array += "%" + std::to_string(*plan.max_tasks);
  std::string text = "#!/bin/bash\n# Written by phasor sweep --launcher slurm. A task of the array runs its part of trials.json.\n";
  const auto line = [&](const std::string& key, const std::string& value = "") {
    text += "#SBATCH --" + key + (value.empty() ? "" : "=" + value) + "\n";
  };
  line("job-name", job_name(place.sweep));
  line("array", array);
  line("nodes", "1");
  line("ntasks", "1");
  for (const auto& [key, value] : plan.settings) line(key, value);
  line("requeue");
  line("open-mode", "append");
  line("signal", "B:TERM@" + std::to_string(plan.lead));
  line("output", quoted(pattern(place.folder) + "/%a.log"));
  line("chdir", quoted(place.working));
  text += "# The runner takes the place of this script, so that it is what Slurm signals before the time is over. Its trials then stop\n"
          "# at a checkpoint, and it asks Slurm to queue the task again.\n";
  text += "exec " + shell_words({place.program, "sweep", place.folder + "/trials.json", "--task"}) + " \"$SLURM_ARRAY_TASK_ID\"\n";
  return text;
}

std::string to_text(const Plan& plan) {
  std::size_t trials = 0;
  for (const auto& task : plan.tasks) trials += task.size();
  const auto counted = [](std::size_t count, const char* word) { return std::to_string(count) + " " + word + (count == 1 ? "" : "s"); };
  return counted(trials, "trial") + " as " + counted(plan.tasks.size(), "task") + " of " + std::to_string(plan.chunk) + ", " +
         std::to_string(plan.jobs * plan.trials_per_device) + " side by side in each";
}

}  // namespace phasor::sweeps::slurm
