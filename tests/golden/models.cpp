// Whole models: embedding, blocks, head and loss, at once and with the rows of a batch cut into parts.

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "core/nn/model.h"
#include "core/ops/cross_entropy/cross_entropy.h"
#include "tests/golden/pass.h"
#include "tests/golden/plugins.h"
#include "tests/golden/units.h"

namespace phasor::golden {

namespace {

struct Fitted {
  ParameterStore store;
  std::unique_ptr<Model> model;
};

/// How the mixers of the files are called.
const std::map<std::string, BackboneChoice (*)(const Json&)>& choosers() {
  static const std::map<std::string, BackboneChoice (*)(const Json&)> all = {{"gla", choose_gla},
                                                                             {"deltanet", choose_deltanet},
                                                                             {"gated_deltanet", choose_gated_deltanet},
                                                                             {"attention", choose_transformer},
                                                                             {"fox", choose_fox}};
  return all;
}

std::unique_ptr<Fitted> make_model(const GoldenFile& file, const Stream& stream) {
  const Json& from = file.options;
  ModelOptions options;
  options.dim = from.find("hidden_size")->as_integer();
  options.layers = from.find("num_layers")->as_integer();
  options.norm_eps = from.find("norm_eps")->as_number();
  options.tie_head = from.find("tie_word_embeddings")->as_bool();
  options.mlp.width = from.find("intermediate_size")->as_integer();
  const Json& mixer = *from.find("attn");
  const std::string& kind = from.find("mixer")->as_string();
  const bool softmax = kind == "attention" || kind == "fox";
  const BackboneChoice backbone = choosers().at(kind)(mixer);
  const EncodingChoice encoding =
      softmax ? choose_transformer_encoding(mixer) : choose_encoding(*mixer.find("position_embedding"));
  const MixerChoice choice{backbone.plugin, backbone.options.get(), encoding.plugin, encoding.options.get()};

  auto fitted = std::make_unique<Fitted>();
  DataShape data(from.find("vocab_size")->as_integer());
  const auto positions = file.params.find("decoder.positions");
  const bool autoencoder = positions != file.params.end();
  if (autoencoder) {
    data.reading = Reading::last;
    data.max_time = positions->second.dims[0];
  }
  fitted->model = std::make_unique<Model>(options, data, choice, fitted->store);
  fill_parameters(fitted->store, file, stream);
  if (autoencoder) check_frozen_start(fitted->store, file);
  return fitted;
}

std::vector<Results> run_model(const GoldenFile& file, const Stream& stream) {
  const auto fitted = make_model(file, stream);
  Pass pass(file, stream, &fitted->store);
  const Tensor hidden = fitted->model->hidden(pass.tape(), pass.indices("ids"), {0, true});
  const Tensor logits = fitted->model->head(pass.tape(), hidden);
  pass.output("logits", logits);

  const Tensor targets = pass.indices("target");
  const Tensor rows = ops::cross_entropy(pass.tape(), logits.reshape({targets.size(), logits.size(-1)}),
                                         targets.reshape({targets.size()}));
  double sum = 0.0, scored = 0.0;
  for (const double loss : read(stream, rows).values) sum += loss;
  for (const double target : read(stream, targets).values) scored += target >= 0.0 ? 1.0 : 0.0;
  pass.report("loss", scalar(sum / scored));
  const double cotangent = file.cotangents.at("loss").values[0];
  pass.seed(rows, std::vector<double>(static_cast<std::size_t>(rows.size()), cotangent / scored));
  return {pass.finish()};
}

/// Some rows of the batch as a training step sees them: what follows the last mixer only at scored positions, gathered into a
/// buffer of fixed capacity whose unused places are padding.
struct Part {
  std::vector<std::int32_t> ids, index, labels;  // index: of the position in the part, row-major; -1 = padding
  std::vector<std::size_t> row;                  // of the whole batch, for every scored position
  std::int64_t rows = 0, time = 0;
};

Part cut(const GoldenFile& file, std::size_t first, std::size_t count, std::size_t capacity_per_row) {
  const Numbers &ids = file.inputs.at("ids"), &target = file.inputs.at("target");
  const auto time = static_cast<std::size_t>(ids.dims[1]);
  Part part;
  part.rows = static_cast<std::int64_t>(count);
  part.time = ids.dims[1];
  for (std::size_t i = 0; i < count * time; ++i) {
    part.ids.push_back(static_cast<std::int32_t>(ids.values[first * time + i]));
    const auto label = static_cast<std::int32_t>(target.values[first * time + i]);
    if (label < 0) continue;
    part.index.push_back(static_cast<std::int32_t>(i));
    part.labels.push_back(label);
    part.row.push_back(first + i / time);
  }
  part.index.resize(count * capacity_per_row, -1);
  part.labels.resize(count * capacity_per_row, -1);
  return part;
}

Tensor integers(Tape& tape, Shape shape, const std::vector<std::int32_t>& values) {
  const Tensor out = tape.empty(shape, Dtype::i32);
  fill(tape.stream(), out, std::vector<double>(values.begin(), values.end()));
  return out;
}

/// Forward and backward of one part; its gradients are added to what is there, its losses to the sums of its rows.
void run_part(const Model& model, Tape& tape, const Part& part, double cotangent, std::vector<double>& row_sums) {
  const auto capacity = static_cast<std::int64_t>(part.index.size());
  const Tensor ids = integers(tape, {part.rows, part.time}, part.ids);
  const Tensor logits = model.logits(tape, std::span(&ids, 1), {0, true}, integers(tape, {capacity}, part.index));
  const Tensor losses = ops::cross_entropy(tape, logits, integers(tape, {capacity}, part.labels));
  const std::vector<double> values = read(tape.stream(), losses).values;
  for (std::size_t i = 0; i < part.row.size(); ++i) row_sums[part.row[i]] += values[i];

  const Tensor seed = tape.empty(losses.shape());
  fill(tape.stream(), seed, std::vector<double>(values.size(), cotangent));
  const std::pair<Tensor, Tensor> start{losses, seed};
  tape.backward({&start, 1});
}

/// `sizes`: rows of every part; they are taken in order.
Results run_cut(const GoldenFile& file, const Stream& stream, const std::string& what, const std::vector<std::size_t>& sizes) {
  const auto fitted = make_model(file, stream);
  const Numbers& target = file.inputs.at("target");
  const auto rows = static_cast<std::size_t>(target.dims[0]), time = static_cast<std::size_t>(target.dims[1]);
  std::vector<double> counts(rows), sums(rows);
  for (std::size_t i = 0; i < target.values.size(); ++i)
    if (target.values[i] >= 0.0) counts[i / time] += 1.0;
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);  // of the whole batch, whatever the cut
  const double cotangent = file.cotangents.at("loss").values[0] / total;

  Arena arena(stream.device);
  arena.poison(true);
  const Tensor gradients(arena, stream.dtype, {fitted->store.flat_size()});
  zero(stream, gradients);
  std::size_t first = 0;
  for (const std::size_t size : sizes) {
    if (size == 0) continue;
    Tape tape(arena, stream, true, gradients);
    run_part(*fitted->model, tape, cut(file, first, size, time), cotangent, sums);
    first += size;
  }
  PHASOR_CHECK(first == rows, "the parts are the batch");

  Results results;
  results.what = what;
  results.outputs["loss"] = scalar(std::accumulate(sums.begin(), sums.end(), 0.0) / total);
  results.outputs["row_loss_sum"] = {{target.dims[0]}, sums};
  results.outputs["row_scored"] = {{target.dims[0]}, counts};
  read_gradients(fitted->store, gradients, results);
  return results;
}

std::vector<Results> run_batch_shards(const GoldenFile& file, const Stream& stream) {
  const auto rows = static_cast<std::size_t>(file.inputs.at("target").dims[0]);
  std::vector<std::size_t> pairs(rows / 2, 2);
  if (rows % 2 == 1) pairs.push_back(1);
  return {run_cut(file, stream, "all rows", {rows}), run_cut(file, stream, "one row, then the rest", {1, rows - 1}),
          run_cut(file, stream, "two by two", pairs),
          run_cut(file, stream, "row by row", std::vector<std::size_t>(rows, 1))};
}

std::optional<std::string> missing_mixer(const GoldenFile& file) {
  const std::string& mixer = file.options.find("mixer")->as_string();
  if (choosers().contains(mixer)) return std::nullopt;
  return "the backbone " + mixer + " is not there yet";
}

}  // namespace

void add_models(UnitTable& table) {
  table["model"] = {run_model, true, missing_mixer};
  table["autoencoder"] = {run_model, true, missing_mixer};
  table["batch_shards"] = {run_batch_shards, true, missing_mixer};
}

}  // namespace phasor::golden
