// AdamW on a small parameter store, and learning-rate schedules in their absolute form.

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/optim/adamw.h"
#include "core/optim/schedule.h"
#include "tests/golden/pass.h"
#include "tests/golden/units.h"

namespace phasor::golden {

namespace {

AdamWOptions options_of(const GoldenFile& file) {
  const Json& from = file.options;
  AdamWOptions options;
  options.betas = {from.find("betas")->as_array()[0].as_number(), from.find("betas")->as_array()[1].as_number()};
  options.eps = from.find("eps")->as_number();
  options.decay.weight_decay = from.find("weight_decay")->as_number();
  if (const Json& clip = *from.find("max_norm"); !clip.is_null()) options.decay.clip = clip.as_number();
  if (const Json* decay = from.find("decay")) options.decay.decay = decay->as_string();
  return options;
}

/// Which parameters decay: in the unit adamw_groups by the rule on names, otherwise as the file lists them.
void declare(ParameterStore& store, const GoldenFile& file) {
  const bool by_rule = file.options.find("decay") != nullptr;
  std::set<std::string> exempt;
  for (const Json& name : file.options.find("no_decay")->as_array()) exempt.insert(name.as_string());
  const ParameterScope scope(store, "", 0.02);
  for (const auto& [name, numbers] : file.params) {
    const Shape shape = shape_of(numbers.dims);
    if (by_rule) {
      scope.add(name, shape, Init::zeros());
    } else {
      store.declare(name, shape, Init::zeros(), false, !exempt.contains(name));
    }
  }
  if (!by_rule || file.options.find("decay")->as_string() != "tagged") return;
  for (const ParameterEntry& entry : store.entries())
    if (entry.decays == exempt.contains(entry.name))
      throw UserError(entry.name +
                      (entry.decays ? " decays, in the file not" : " does not decay, in the file it does"));
}

void append(Numbers& log, const Numbers& numbers, std::int64_t steps) {
  log.dims = numbers.dims;
  log.dims.insert(log.dims.begin(), steps);
  log.values.insert(log.values.end(), numbers.values.begin(), numbers.values.end());
}

Tensor part(const Tensor& flat, const ParameterEntry& entry) {
  auto* base = static_cast<std::byte*>(flat.data());
  return Tensor::borrow(base + static_cast<std::size_t>(entry.offset) * size_of(flat.dtype()), flat.dtype(),
                        entry.shape);
}

std::vector<Results> run_adamw(const GoldenFile& file, const Stream& stream) {
  ParameterStore store;
  declare(store, file);
  fill_parameters(store, file, stream);
  AdamW optimiser(options_of(file), store);

  Results results;
  const std::vector<double>& rates = file.inputs.at("lr").values;
  const auto steps = static_cast<std::int64_t>(rates.size());
  results.outputs["grad_norm"].dims = results.outputs["clip_coef"].dims = {steps};
  Arena arena(stream.device);
  const Tensor gradient(arena, stream.dtype, {store.flat_size()});
  for (std::int64_t t = 0; t < steps; ++t) {
    for (const ParameterEntry& entry : store.entries()) {
      const std::vector<double>& all = file.inputs.at("grad_" + entry.name).values;
      const auto begin = all.begin() + t * entry.count();
      fill(stream, part(gradient, entry), std::vector<double>(begin, begin + entry.count()));
    }
    const std::vector<double> before = read(stream, gradient).values;
    const StepReport report = optimiser.step(gradient, rates[static_cast<std::size_t>(t)]);
    if (read(stream, gradient).values != before) results.faults.push_back("the gradient was changed");
    results.outputs["grad_norm"].values.push_back(report.grad_norm);
    results.outputs["clip_coef"].values.push_back(report.clip_factor);
    for (const ParameterEntry& entry : store.entries())
      append(results.outputs[entry.name + "_steps"], read(stream, store.value(entry)), steps);
  }
  for (const ParameterEntry& entry : store.entries()) {
    results.outputs["exp_avg_" + entry.name] = read(stream, part(optimiser.first_moment(), entry));
    results.outputs["exp_avg_sq_" + entry.name] = read(stream, part(optimiser.second_moment(), entry));
  }
  return {results};
}

double number_or(const Json& options, std::string_view key, double otherwise) {
  const Json* value = options.find(key);
  return value != nullptr ? value->as_number() : otherwise;
}

std::vector<Results> run_schedule(const GoldenFile& file, const Stream&) {
  const Json& from = file.options;
  const std::string& kind = from.find("kind")->as_string();
  Schedule schedule;
  schedule.name = kind == "author_warmup_cosine" ? "cosine" : kind;
  schedule.peak = from.find("lr_max")->as_number();
  schedule.start = number_or(from, "lr_start", 0.0);
  schedule.end = number_or(from, "lr_end", 0.0);
  schedule.steps = from.find("total_steps")->as_number();
  schedule.warmup = number_or(from, "warmup_steps", 0.0);
  schedule.decay = number_or(from, "decay_steps", 0.0);
  if (const Json* shape = from.find("decay_shape")) schedule.shape = shape->as_string();

  Results results;
  const Numbers& steps = file.inputs.at("step");
  Numbers& rates = results.outputs["lr"];
  rates.dims = steps.dims;
  for (const double done : steps.values) rates.values.push_back(schedule.rate(static_cast<std::int64_t>(done)));
  return {results};
}

}  // namespace

void add_optimisers(UnitTable& table) {
  table["adamw"] = {run_adamw};
  table["adamw_groups"] = {run_adamw};
  table["lr_schedule"] = {run_schedule, false};
}

}  // namespace phasor::golden
