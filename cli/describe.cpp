#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/parameter_count.h"
#include "cli/session.h"

namespace phasor::cli {

namespace {

/// Where a value that is not the default was given.
std::string origin_of(const std::string& path, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::string set = setting.substr(0, setting.find('='));
    if (path == set || path.starts_with(set + ".")) return "from --set";
  }
  return "from file";
}

std::string text_of(const Json& value) {
  if (value.is_null()) return "not set";
  return value.is_string() ? value.as_string() : value.canonical();
}

/// What the file leaves open and the shapes decide is no difference of the user's.
std::vector<Difference> user_differences(const ExperimentSpec& spec, bool lanes, bool micro_batch) {
  std::vector<Difference> all = differences(spec.fields());
  std::erase_if(all, [&](const Difference& difference) {
    if (difference.path == "$schema" || difference.path == "note") return true;
    return (difference.path == "train.lanes" && !lanes) || (difference.path == "train.micro_batch" && !micro_batch);
  });
  return all;
}

void print_differences(const std::vector<Difference>& all, const std::vector<std::string>& settings) {
  std::size_t width = 0;
  for (const Difference& d : all) width = std::max(width, fmt::format("{} = {}", d.path, text_of(d.value)).size());
  const char* head = "not default";
  for (const Difference& d : all) {
    const std::string change = fmt::format("{} = {}", d.path, text_of(d.value));
    const std::string initial = fmt::format("(default {})", text_of(d.initial));
    fmt::print("{:<16} {:<{}}   {:<24} {}\n", head, change, std::min<std::size_t>(width, 60), initial,
               origin_of(d.path, settings));
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

void print_data(const ExperimentSpec& spec) {
  const std::unique_ptr<Task> task = spec.make_task();
  std::string line;
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    const std::vector<Slice> slices = task->slices(split);
    std::string lengths;
    for (const Slice& slice : slices) lengths += (lengths.empty() ? "" : ",") + std::to_string(slice.length);
    const std::int64_t rows = slices.empty() ? 0 : slices.front().rows;
    line += fmt::format("{}{} {} x {}", line.empty() ? "" : "   ", to_text(split), grouped(rows),
                        slices.size() == 1 ? lengths : fmt::format("{{{}}}", lengths));
  }
  fmt::print("{:<16} {}\n", "data", line);
  const Slice train = task->slices(Split::train).front();
  const double rows = static_cast<double>(spec.train.steps) * static_cast<double>(spec.train.batch);
  fmt::print("{:<16} {} = {:.2f} epochs, {} tokens\n", "steps", grouped(spec.train.steps),
             rows / static_cast<double>(train.rows),
             grouped(spec.train.steps * spec.train.batch * task->tokens(train)));
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
             const std::vector<std::string>& settings) {
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
    entry["origin"] = origin_of(d.path, settings) == "from --set" ? "--set" : "file";
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
  std::string file;
  std::vector<std::string> settings, plugin_files;
  bool as_json = false;
  Options options(
      "phasor describe FILE.json [--set PATH=VALUE]... [--plugin FILE]... [--json]",
      "Shows an experiment without running it: what is not default and where it was set, parameters by module\n"
      "and against the same model without positions, weight decay, data. --json has the whole spec.\n"
      "exit codes: 0 done, 2 a mistake in the file or an option");
  options.positional("experiment file", file, true);
  options.list("set", settings, "PATH=VALUE", "change one value, such as model.encoding.gate.kind=standard");
  options.list("plugin", plugin_files, "FILE", plugin_help);
  options.flag("json", as_json, "for programs: id, full spec, differences, parameters");
  if (!options.parse(arguments)) return exit_code::done;

  const Plugins plugins(plugin_files);
  plugins.require();
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
  if (as_json) {
    fmt::print("{}\n", json_of(trial, count, changes, settings).pretty());
    return exit_code::done;
  }
  fmt::print("trial {}   {}   (full spec: --json)\n", trial.id.substr(0, 8), title_of(spec));
  print_differences(changes, settings);
  print_parameters(spec, count);
  print_decay(spec, count);
  print_data(spec);
  return exit_code::done;
}

}  // namespace phasor::cli
