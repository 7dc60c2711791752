#include "experiments/spectra.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/nn/model.h"
#include "core/spec/problems.h"
#include "experiments/checkpoint.h"
#include "experiments/data.h"
#include "experiments/spec.h"
#include "results/h5.h"
#include "results/store.h"

namespace phasor {

namespace {

/// A shown tensor as its numbers, row after row.
struct Shown {
  std::vector<std::int64_t> sizes;
  std::vector<double> values;
};

double element(const Tensor& tensor, std::int64_t at) {
  return tensor.dtype() == Dtype::f64 ? tensor.as<double>()[at] : static_cast<double>(tensor.as<float>()[at]);
}

/// Keeps what every layer shows.
class Keeper final : public Inspector {
 public:
  void enter(std::int64_t layer) override { layer_ = layer; }
  void show(std::string_view name, const Tensor& value) override {
    Shown& shown = layers_[layer_][std::string(name)];
    shown = {};
    for (int axis = 0; axis < value.shape().rank(); ++axis) shown.sizes.push_back(value.size(axis));
    for (std::int64_t row = 0; row < value.rows(); ++row)
      for (std::int64_t i = 0; i < value.width(); ++i) shown.values.push_back(element(value, row * value.row_stride() + i));
  }
  const Shown* find(std::int64_t layer, const std::string& name) const {
    const auto in = layers_.find(layer);
    if (in == layers_.end()) return nullptr;
    const auto found = in->second.find(name);
    return found == in->second.end() ? nullptr : &found->second;
  }

 private:
  std::int64_t layer_ = -1;
  std::map<std::int64_t, std::map<std::string, Shown>> layers_;
};

/// Running sums of the phase per step times the temperature, from the beginning of each document; where there is no phase, one
/// unit per token.
void add_angles(const Shown* phase, const Tensor& starts, std::int64_t time, results::LayerSpectra& layer) {
  const std::vector<double>& temperature = layer.temperature;
  layer.planes = static_cast<std::int64_t>(temperature.size());
  layer.heads = phase == nullptr ? 1 : phase->sizes[2];
  std::vector<double> sum(static_cast<std::size_t>(layer.heads * layer.planes), 0.0);
  for (std::int64_t t = 0; t < time; ++t) {
    const std::int64_t start = starts ? starts.as<std::int32_t>()[t] : 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const double before = t == start ? 0.0 : sum[i];
      sum[i] = phase == nullptr ? static_cast<double>(t - start) : before + phase->values[static_cast<std::size_t>(t) * sum.size() + i];
      layer.angle.push_back(temperature[i % temperature.size()] * sum[i]);
    }
  }
}

/// [1, time, heads, channels], or without the last axis; per plane of each head [1, time, heads * planes].
void add_gate(const Shown* shown, const char* name, bool logarithmic, std::int64_t planes, results::LayerSpectra& layer) {
  if (shown == nullptr) return;
  results::LayerSpectra::Gate gate{name, shown->sizes[2], shown->sizes.size() > 3 ? shown->sizes[3] : 1, shown->values};
  if (shown->sizes.size() == 3 && layer.heads > 1 && gate.heads == layer.heads * planes) gate = {name, layer.heads, planes, shown->values};
  if (logarithmic)
    for (double& value : gate.value) value = std::exp(value);
  layer.gates.push_back(std::move(gate));
}

const Slice& slice_of(const std::vector<Slice>& slices, const SpectraRow& which) {
  std::string lengths;
  for (const Slice& slice : slices) {
    if (!which.length || slice.length == *which.length) return slice;
    lengths += (lengths.empty() ? "" : ", ") + std::to_string(slice.length);
  }
  throw UserError(slices.empty() ? "--split: the task has no " + which.split + " rows"
                                 : fmt::format("--length: found {}, expected one of {}: {}", *which.length, which.split, lengths));
}

/// The row's ids, one tensor per stream, and where its documents begin.
struct RowInput {
  std::vector<Tensor> ids;
  Tensor starts;
};

RowInput row_of(Tape& tape, const Task& task, const Slice& slice, std::uint64_t eval_seed, std::int64_t index) {
  Rows rows;
  rows.resize(task, slice, 1);
  task.sample(slice, eval_seed, index, rows.row(0));
  RowInput input;
  for (std::int64_t s = 0; s < rows.streams; ++s) {
    input.ids.push_back(tape.empty({1, rows.tokens}, Dtype::i32));
    std::copy_n(rows.ids.data() + s * rows.tokens, rows.tokens, input.ids.back().as<std::int32_t>());
  }
  if (!rows.starts.empty()) {
    input.starts = tape.empty({1, rows.tokens}, Dtype::i32);
    std::copy_n(rows.starts.data(), rows.tokens, input.starts.as<std::int32_t>());
  }
  return input;
}

void load_values(const results::h5::Reader& file, bool doubles, ParameterStore& store) {
  for (const ParameterEntry& entry : store.entries()) {
    const std::string path = "values/" + entry.name;
    std::vector<double> values;
    if (doubles) {
      values = file.doubles(path);
    } else {
      const std::vector<float> floats = file.floats(path);
      values.assign(floats.begin(), floats.end());
    }
    if (values.size() != static_cast<std::size_t>(entry.count()))
      throw results::h5::Failure(fmt::format("{} has {} numbers, expected {}", path, values.size(), entry.count()));
    std::copy(values.begin(), values.end(), store.value(entry).as<double>());
  }
}

results::Spectra spectra(const results::h5::Reader& file, const std::string& path, const Registry& registry, const SpectraRow& which) {
  const results::TrialRecord record = results::read_record(file);
  Document document = Document::parse(record.spec.canonical(), path + " (spec)");
  ExperimentSpec spec(registry);
  spec.read(document);
  document.require_none();
  const auto task = spec.make_task();
  if (const auto missing = task->missing()) throw UserError("task: " + spec.task.name + ": " + *missing);
  ParameterStore store;
  const Model model(spec.model, DataShape(*task), spec.mixer(), store);
  store.allocate(Dtype::f64);
  const std::vector<Slice> slices = task->slices(which.split == "test" ? Split::test : Split::valid);
  const Slice& slice = slice_of(slices, which);
  if (which.row < 0 || which.row >= slice.rows) throw UserError(fmt::format("--row: found {}, expected 0 to {}", which.row, slice.rows - 1));
  Arena arena;
  Tape tape(arena, Stream{Dtype::f64}, false);
  const RowInput input = row_of(tape, *task, slice, static_cast<std::uint64_t>(spec.eval_seed), which.row);
  Keeper before, after;
  const auto look = [&](Keeper& keeper) {
    SequenceContext context;
    context.starts = input.starts;
    context.inspector = &keeper;
    model.hidden(tape, input.ids, context);
  };
  store.initialise(static_cast<std::uint64_t>(spec.seed));
  look(before);
  load_values(file, spec.train.precision == "f64", store);
  look(after);

  results::Spectra all{record.id, spec.task.name + " " + task->label() + " x " + spec.backbone.name + " x " + spec.encoding.name,
                       which.split, slice.length, which.row, input.ids.front().size(1), {}, {}};
  const Tensor& tokens = input.ids.front();
  all.tokens.assign(tokens.as<std::int32_t>(), tokens.as<std::int32_t>() + tokens.size());
  for (std::int64_t i = 0; i < model.layers(); ++i) {
    results::LayerSpectra layer;
    layer.layer = i;
    if (const Shown* shown = before.find(i, "temperature")) layer.initial_temperature = shown->values;
    if (const Shown* shown = after.find(i, "temperature")) layer.temperature = shown->values;
    if (!layer.temperature.empty()) add_angles(after.find(i, "phase"), input.starts, all.time, layer);
    add_gate(after.find(i, "log_decay"), "kept", true, 0, layer);
    add_gate(after.find(i, "phase_gate"), "phase_gate", false, layer.planes, layer);
    add_gate(after.find(i, "write_gate"), "write_gate", false, 0, layer);
    all.layers.push_back(std::move(layer));
  }
  const bool some = std::any_of(all.layers.begin(), all.layers.end(), [](const auto& l) { return !l.temperature.empty() || !l.gates.empty(); });
  if (!some) throw UserError(path + ": " + all.title + " has no temperatures, phases or gates, so there is nothing to draw");
  return all;
}

}  // namespace

results::Spectra spectra_of_checkpoint(const std::string& path, const Registry& registry, const SpectraRow& which) {
  results::Spectra all;
  read_trained(path, [&](const results::h5::Reader& file) { all = spectra(file, path, registry, which); });
  return all;
}

}  // namespace phasor
