#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/describe_sweep.h"
#include "cli/options.h"
#include "cli/parameter_count.h"
#include "cli/session.h"
#include "core/base/error.h"
#include "core/base/progress.h"
#include "experiments/cost.h"
#include "experiments/data.h"
#include "experiments/memory.h"
#include "sweeps/same_sweep.h"

namespace phasor::cli {

namespace {

/// Where a value that is not the default was given; what is in no file follows from the data.
std::string origin_of(const std::string& path, const std::vector<std::string>& settings, const Json& given) {
  for (const std::string& setting : settings) {
    const std::string set = setting.substr(0, setting.find('='));
    if (path == set || path.starts_with(set + ".")) return "from --set";
  }
  return given.at_path(path) == nullptr && path.starts_with("task.") ? "as found" : "from file";
}

std::string text_of(const Json& value) {
  if (value.is_null()) return "not set";
  return value.is_string() ? value.as_string() : value.canonical();
}

/// What the file leaves open and the shapes decide is no difference of the user's.
std::vector<Difference> user_differences(const ExperimentSpec& spec, bool lanes, bool micro_batch) {
  std::vector<Difference> all = differences(spec.fields());
  std::erase_if(all, [&](const Difference& difference) {
    if (difference.path == "$schema" || difference.path == "extends" || difference.path == "note") return true;
    return (difference.path == "train.lanes" && !lanes) || (difference.path == "train.micro_batch" && !micro_batch);
  });
  return all;
}

void print_differences(const std::vector<Difference>& all, const std::vector<std::string>& settings, const Json& given) {
  std::size_t width = 0;
  for (const Difference& d : all) width = std::max(width, fmt::format("{} = {}", d.path, text_of(d.value)).size());
  const char* head = "not default";
  for (const Difference& d : all) {
    const std::string change = fmt::format("{} = {}", d.path, text_of(d.value));
    const std::string initial = fmt::format("(default {})", text_of(d.initial));
    fmt::print("{:<16} {:<{}}   {:<24} {}\n", head, change, std::min<std::size_t>(width, 60), initial,
               origin_of(d.path, settings, given));
    head = "";
  }
}

void print_module(const ModuleCount& module, const std::string& times) {
  const auto frozen = [](const ModuleCount& m) {
    if (m.frozen == 0) return std::string();
    return m.frozen == m.count ? std::string(" (frozen)") : fmt::format(" ({} frozen)", grouped(m.frozen));
  };
  std::string parts;
  for (const ModuleCount& part : module.parts)
    parts += fmt::format("{}{} {}{}", parts.empty() ? "" : "  ", part.name, grouped(part.count), frozen(part));
  std::string line = fmt::format("  {:<22} {:>13}{}", module.name, grouped(module.count), times);
  if (!parts.empty()) {
    line += "   " + parts;
  } else {
    line += frozen(module);
  }
  fmt::print("{}\n", line);
}

void print_parameters(const ExperimentSpec& spec, const ParameterCount& count) {
  fmt::print("{:<16} {}{}\n", "parameters", grouped(count.total),
             count.frozen > 0 ? fmt::format(", of which {} frozen", grouped(count.frozen)) : "");
  const std::int64_t layers = spec.model.layers;
  const bool alike = layers_alike(count, layers);
  for (const ModuleCount& module : count.modules) {
    const bool layer = module.name.starts_with("layers.");
    if (layer && alike && !module.name.starts_with("layers.0.")) continue;
    print_module(module, layer && alike && layers > 1 ? fmt::format(" x {} layers", layers) : "");
  }
  if (!count.nope_total) {
    fmt::print("{:<16} the plugin nope is not there to compare with\n", "against nope");
    return;
  }
  const std::int64_t more = count.total - *count.nope_total;
  const double share = 100.0 * static_cast<double>(more) / static_cast<double>(*count.nope_total);
  fmt::print("{:<16} {}{} parameters ({:+.1f} %){}\n", "against nope", more < 0 ? "" : "+", grouped(more), share,
             std::fabs(share) > 5.0 ? "   ! above 5 %: a difference in the table may be one of size" : "");
}

/// Trained parameters that do not decay, without the layer's number, each once: "attn_norm.weight".
std::string exempt_names(const ParameterCount& count) {
  std::vector<std::string> names;
  for (const results::ParameterInfo& parameter : count.list) {
    if (parameter.frozen || parameter.decays) continue;
    std::string name = parameter.name;
    if (name.starts_with("layers.")) name = name.substr(name.find('.', 7) + 1);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void print_decay(const ExperimentSpec& spec, const ParameterCount& count) {
  const DecayOptions& decay = spec.optimizer.decay();
  if (decay.weight_decay == 0.0) {
    fmt::print("{:<16} none\n", "weight decay");
    return;
  }
  std::int64_t decayed = 0;
  for (const results::ParameterInfo& parameter : count.list) decayed += parameter.decays ? parameter.count : 0;
  fmt::print("{:<16} {} ({}) on {} parameters", "weight decay", shortest(decay.weight_decay), decay.decay,
             grouped(decayed));
  const std::int64_t exempt = count.total - count.frozen - decayed;
  if (exempt > 0) fmt::print(", none on {}: {}", grouped(exempt), exempt_names(count));
  fmt::print("\n");
}

std::string rows_text(const Task& task, const std::vector<Slice>& slices) {
  std::string lengths, tokens;
  bool alike = true;
  for (const Slice& slice : slices) {
    lengths += (lengths.empty() ? "" : ",") + std::to_string(slice.length);
    tokens += (tokens.empty() ? "" : ",") + std::to_string(task.tokens(slice));
    alike = alike && task.tokens(slice) == task.tokens(slices.front());
  }
  const auto set = [&](const std::string& list) { return slices.size() == 1 ? list : "{" + list + "}"; };
  return fmt::format("{} x {} ({} tokens)", grouped(slices.front().rows), set(lengths),
                     alike ? std::to_string(task.tokens(slices.front())) : set(tokens));
}

void print_data(const ExperimentSpec& spec) {
  const std::unique_ptr<Task> task = spec.make_task();
  std::int64_t longest = 0;
  for (const Slice& slice : task->slices(Split::train)) longest = std::max(longest, task->tokens(slice));
  const std::int64_t tokens = spec.train.steps * spec.train.batch * longest;
  const char* head = "data";
  if (const auto missing = task->missing()) {
    fmt::print("{:<16} ! missing: {}\n", head, *missing);
    fmt::print("{:<16} {}, {} tokens\n", "steps", grouped(spec.train.steps), grouped(tokens));
    return;
  }
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    fmt::print("{:<16} {:<6} {}\n", head, to_text(split), rows_text(*task, task->slices(split)));
    head = "";
  }
  double rows = 0.0;
  for (const Slice& slice : task->slices(Split::train)) rows += static_cast<double>(slice.rows);
  const double seen = static_cast<double>(spec.train.steps) * static_cast<double>(spec.train.batch);
  fmt::print("{:<16} {} = {:.2f} epochs, {}{} tokens\n", "steps", grouped(spec.train.steps), seen / rows,
             task->slices(Split::train).size() > 1 ? "at most " : "", grouped(tokens));
}

/// Evaluation rows (or strings of them) that training shows too.
struct Hygiene {
  std::vector<EvaluationData> data;
  OverlapReport report;
};

Hygiene measure_hygiene(const ExperimentSpec& spec) {
  constexpr std::int64_t rows_looked_at = 1 << 15;  // of training: a second of work at most
  const std::unique_ptr<Task> task = spec.make_task();
  Hygiene hygiene;
  if (task->missing()) return hygiene;
  for (const Split split : {Split::valid, Split::test})
    for (const Slice& slice : task->slices(split))
      hygiene.data.push_back(make_evaluation_data(*task, slice, static_cast<std::uint64_t>(spec.eval_seed)));
  hygiene.report = measure_overlap(*task, static_cast<std::uint64_t>(spec.seed), spec.train.steps * spec.train.batch,
                                   hygiene.data, rows_looked_at);
  return hygiene;
}

void print_hygiene(const Hygiene& hygiene) {
  const char* head = "shared rows";
  for (std::size_t i = 0; i < hygiene.data.size(); ++i) {
    const Slice& slice = hygiene.data[i].slice;
    const Overlap& overlap = hygiene.report.slices[i];
    const std::string expected = overlap.disjoint ? "none by construction" : fmt::format("{:.4g} by chance", overlap.by_chance);
    fmt::print("{:<16} {:<6} {:>5}: {} of {} are in train too ({})\n", head, to_text(slice.split), slice.length,
               grouped(overlap.shared), grouped(overlap.units), expected);
    head = "";
  }
  if (!hygiene.report.all_compared)
    fmt::print("{:<16} only the first {} training rows were compared\n", "", grouped(hygiene.report.rows_compared));
}

std::string bytes_text(std::int64_t bytes) { return phasor::bytes_text(static_cast<double>(bytes)); }

void print_cost(const ExperimentSpec& spec, const Cost& cost, const TimeEstimate& time) {
  fmt::print("{:<16} {:.4g} GFLOP per step, {:.4g} TFLOP in all (matrix products and mixers)\n", "arithmetic", cost.step_flops / 1e9,
             cost.step_flops * static_cast<double>(spec.train.steps) / 1e12);
  fmt::print("{:<16} {}: parameters {}, gradients of {} lanes {}, optimiser {}, activations {}\n", "memory", bytes_text(cost.bytes()),
             bytes_text(cost.parameter_bytes), *spec.train.lanes, bytes_text(cost.gradient_bytes), bytes_text(cost.optimizer_bytes),
             bytes_text(cost.activation_bytes));
  fmt::print("{:<16} about {} on this machine with {} thread{}: {:.4g} ms per step{}\n", "time", duration_text(time.seconds),
             spec.run.threads, spec.run.threads == 1 ? "" : "s", 1e3 * time.step_seconds,
             time.measured ? "" : ", from the arithmetic at half the speed of a matrix product; not tried");
}

Json json_of(const Cost& cost, const TimeEstimate& time) {
  Json json = Json::object();
  json["step_flops"] = cost.step_flops;
  json["step_tokens"] = cost.step_tokens;
  json["parameter_bytes"] = cost.parameter_bytes;
  json["gradient_bytes"] = cost.gradient_bytes;
  json["optimizer_bytes"] = cost.optimizer_bytes;
  json["activation_bytes"] = cost.activation_bytes;
  json["seconds"] = time.seconds;
  json["step_seconds"] = time.step_seconds;
  json["step_measured"] = time.measured;
  return json;
}

Json json_of(const Hygiene& hygiene) {
  Json all = Json::array();
  for (std::size_t i = 0; i < hygiene.data.size(); ++i) {
    const Overlap& overlap = hygiene.report.slices[i];
    Json entry = Json::object();
    entry["split"] = std::string(to_text(hygiene.data[i].slice.split));
    entry["slice"] = hygiene.data[i].slice.length;
    entry["units"] = overlap.units;
    entry["distinct"] = overlap.distinct;
    entry["shared"] = overlap.shared;
    entry["by_chance"] = overlap.by_chance;
    entry["disjoint_by_construction"] = overlap.disjoint;
    all.push_back(std::move(entry));
  }
  return all;
}

Json json_of(const ModuleCount& module) {
  Json json = Json::object();
  json["count"] = module.count;
  json["frozen"] = module.frozen;
  for (const ModuleCount& part : module.parts) {
    if (json.find("parts") == nullptr) json["parts"] = Json::object();
    json["parts"][part.name] = json_of(part);
  }
  return json;
}

Json json_of(const Trial& trial, const ParameterCount& count, const std::vector<Difference>& all,
             const std::vector<std::string>& settings, const Json& given) {
  Json parameters = Json::object();
  parameters["total"] = count.total;
  parameters["frozen"] = count.frozen;
  if (count.nope_total) parameters["against_nope"] = count.total - *count.nope_total;
  parameters["modules"] = Json::object();
  for (const ModuleCount& module : count.modules) parameters["modules"][module.name] = json_of(module);
  parameters["list"] = Json::array();
  for (const results::ParameterInfo& parameter : count.list) {
    Json entry = Json::object();
    entry["name"] = parameter.name;
    entry["count"] = parameter.count;
    entry["frozen"] = parameter.frozen;
    entry["decays"] = parameter.decays;
    parameters["list"].push_back(std::move(entry));
  }
  Json changes = Json::array();
  for (const Difference& d : all) {
    Json entry = Json::object();
    entry["path"] = d.path;
    entry["value"] = d.value;
    entry["default"] = d.initial;
    const std::string origin = origin_of(d.path, settings, given);
    entry["origin"] = origin.starts_with("from ") ? origin.substr(5) : origin;
    changes.push_back(std::move(entry));
  }
  Json json = Json::object();
  json["id"] = trial.id;
  json["spec"] = trial.spec;
  json["not_default"] = std::move(changes);
  json["parameters"] = std::move(parameters);
  return json;
}

}  // namespace

int describe(const Arguments& arguments) {
  std::string file, sweep, folder;
  std::vector<std::string> settings, plugin_files;
  bool as_json = false;
  Options options(
      "phasor describe (FILE.json | SWEEP.json [--out DIR]) [--set PATH=VALUE]... [--plugin FILE]... [--json]",
      "Shows an experiment without running it: what is not default and where it was set, parameters by module\n"
      "and against the same model without positions, decay groups, data and its overlaps, arithmetic, memory, and the time it would\n"
      "take here. --json has the whole spec.\n"
      "Of a sweep: every trial, whether it is done, its parameters, arithmetic and time.\n"
      "exit codes: 0 done, 2 a mistake in the file or an option");
  options.positional("experiment or sweep file", file, false);
  options.text("sweep", sweep, "the same as a sweep file without --sweep");
  options.text("out", folder, "of a sweep: where its records are; default results/data/NAME");
  options.list("set", settings, "PATH=VALUE", "change one value, such as model.encoding.gate.kind=standard");
  options.list("plugin", plugin_files, "FILE", plugin_help);
  options.flag("json", as_json, "for programs: id, full spec, differences, parameters");
  if (!options.parse(arguments)) return exit_code::done;
  if (file.empty() == sweep.empty())
    throw UserError(file.empty() ? "no file is given; usage: phasor describe FILE.json, of an experiment or of a sweep"
                                 : "found a file and --sweep, expected one of them");
  if (sweep.empty() && is_sweep_file(file)) sweep = file;
  if (sweep.empty() && !folder.empty()) throw UserError("--out: found with an experiment, expected with a sweep file; leave it out");

  const Plugins plugins(plugin_files);
  plugins.require();
  if (!sweep.empty()) {
    sweeps::Sweep loaded = sweeps::load_sweep(sweep, settings, plugins.registry);
    if (folder.empty()) folder = sweeps::default_folder(loaded.spec.name);
    if (const std::string damage = sweeps::require_same_sweep(folder, loaded, plugins.registry); !damage.empty())
      fmt::print(stderr, "phasor: {}; `phasor sweep` writes it anew\n", damage);
    const std::int64_t jobs = sweeps::default_jobs(loaded.expansion);
    const Phases phases(std::move(loaded), {.folder = folder, .jobs = jobs}, plugins.registry);
    return describe_sweep(phases, folder, jobs, plugins.registry, as_json);
  }
  ExperimentSpec spec(plugins.registry);
  const Json given = read_experiment(file, settings, spec);
  const auto is_given = [&](const char* path) {
    const Json* value = given.at_path(path);
    return value != nullptr && !value->is_null();
  };
  const std::vector<Difference> changes =
      user_differences(spec, is_given("train.lanes"), is_given("train.micro_batch"));
  const Trial trial = make_trial(spec);
  const ParameterCount count = count_parameters(spec);
  const std::string problem = spec.run.device == "cuda" ? "" : memory_problem(spec);
  if (as_json) {
    Json json = json_of(trial, count, changes, settings, given);
    if (problem.empty()) {
      const Cost cost = count_cost(spec);
      json["cost"] = json_of(cost, estimate_time(spec, cost));
    } else {
      json["cost"] = Json::object();
      json["cost"]["least_bytes"] = least_memory(spec).bytes();
      json["cost"]["does_not_fit"] = problem;
    }
    if (const auto missing = spec.make_task()->missing()) json["missing"] = *missing;
    json["shared_rows"] = json_of(measure_hygiene(spec));
    fmt::print("{}\n", json.pretty());
    return exit_code::done;
  }
  fmt::print("trial {}   {}   (full spec: --json)\n", trial.id.substr(0, 8), title_of(spec));
  print_differences(changes, settings, given);
  for (const std::string& line : devices_text({spec.run.device})) fmt::print("{:<16} {}; the time below is of the processor\n", "device", line);
  print_parameters(spec, count);
  print_decay(spec, count);
  print_data(spec);
  print_hygiene(measure_hygiene(spec));
  if (!problem.empty()) {
    fmt::print("{:<16} ! it does not fit: {}\n", "memory", problem);
    return exit_code::done;
  }
  const Cost cost = count_cost(spec);
  print_cost(spec, cost, estimate_time(spec, cost));
  return exit_code::done;
}

}  // namespace phasor::cli
