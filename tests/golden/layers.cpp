// One mixing layer with its encoding, whole and in pieces.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "tests/golden/pass.h"
#include "tests/golden/plugins.h"
#include "tests/golden/units.h"

namespace phasor::golden {

namespace {

/// Parameters stand under the names of the files: the mixer's without a prefix, the encoding's under "rotary".
struct Layer {
  ParameterStore store;
  std::unique_ptr<Mixer> mixer;
  std::unique_ptr<Encoding> encoding;
};

std::unique_ptr<Layer> make_layer(const GoldenFile& file, const Stream& stream, const BackboneChoice& backbone,
                                  const EncodingChoice& encoding, double norm_eps) {
  const Json& options = file.options;
  const std::int64_t dim = options.find("hidden_size")->as_integer();
  if (const auto reason = backbone.plugin->refuses(*backbone.options, dim)) throw UserError("refused: " + *reason);
  const MixerShape shape = backbone.plugin->shape(*backbone.options, dim);
  if (const auto reason = encoding.plugin->refuses(*encoding.options, shape)) throw UserError("refused: " + *reason);

  auto layer = std::make_unique<Layer>();
  layer->mixer = backbone.plugin->make(*backbone.options, dim, norm_eps, {layer->store, "", 0.02});
  layer->encoding = encoding.plugin->make(*encoding.options, shape, {layer->store, "rotary", 0.02});
  PHASOR_CHECK(contains(backbone.plugin->offers(*backbone.options), layer->encoding->hook()), "the pair fits");
  fill_parameters(layer->store, file, stream);
  return layer;
}

using Choose = BackboneChoice (*)(const Json& options);

template <Choose choose>
std::unique_ptr<Layer> make_recurrent_layer(const GoldenFile& file, const Stream& stream) {
  return make_layer(file, stream, choose(file.options), choose_encoding(*file.options.find("position_embedding")),
                    file.options.find("norm_eps")->as_number());
}

std::vector<Results> run_whole(const GoldenFile& file, const Stream& stream, const Layer& layer) {
  Pass pass(file, stream, &layer.store);
  pass.output("y", layer.mixer->forward(pass.tape(), pass.leaf("x"), *layer.encoding, {0, true}, nullptr));
  return {pass.finish()};
}

template <Choose choose>
std::vector<Results> run_recurrent_layer(const GoldenFile& file, const Stream& stream) {
  return run_whole(file, stream, *make_recurrent_layer<choose>(file, stream));
}

std::vector<Results> run_layer_attention(const GoldenFile& file, const Stream& stream) {
  constexpr double unused = 1.0;  // its query and key norms have an eps of their own
  return run_whole(file, stream, *make_layer(file, stream, choose_transformer(file.options),
                                            choose_transformer_encoding(file.options), unused));
}

std::vector<Results> run_layer_fox(const GoldenFile& file, const Stream& stream) {
  constexpr double unused = 1.0;
  return run_whole(file, stream, *make_layer(file, stream, choose_fox(file.options),
                                            choose_transformer_encoding(file.options), unused));
}

template <BackboneChoice (*choose)(const Json&)>
std::vector<Results> run_layer(const GoldenFile& file, const Stream& stream) {
  return run_whole(file, stream, *make_layer(file, stream, choose(file.options), choose_fixed_encoding(file.options),
                                            file.options.find("norm_eps")->as_number()));
}

/// Runs a layer over pieces of x and keeps what a decoder would.
class Decoder {
 public:
  Decoder(const GoldenFile& file, const Layer& layer, const Stream& stream)
      : file_(file), layer_(layer), x_(file.inputs.at("x")), arena_(stream.device), tape_(arena_, stream, false) {
    arena_.poison(true);
    outputs_ = {x_.dims, std::vector<double>(x_.values.size(), std::nan(""))};
  }

  /// Tokens begin .. end-1 as one piece.
  void feed(std::int64_t begin, std::int64_t end) {
    const std::int64_t batch = x_.dims[0], time = x_.dims[1], dim = x_.dims[2];
    const std::int64_t length = end - begin;
    const auto place = [&](std::int64_t b) { return static_cast<std::ptrdiff_t>((b * time + begin) * dim); };
    std::vector<double> piece;
    for (std::int64_t b = 0; b < batch; ++b)
      piece.insert(piece.end(), x_.values.begin() + place(b), x_.values.begin() + place(b) + length * dim);
    const Tensor x = tape_.empty({batch, length, dim});
    fill(tape_.stream(), x, piece);
    const Tensor y = layer_.mixer->forward(tape_, x, *layer_.encoding, {begin, false}, &state_);
    const std::vector<double> values = read(tape_.stream(), y).values;
    for (std::int64_t b = 0; b < batch; ++b)
      std::copy_n(values.begin() + b * length * dim, length * dim, outputs_.values.begin() + place(b));
  }

  /// States as the file has them after `split` tokens. The first column of a convolution window is never read: it
  /// becomes NaN, which would show.
  void resume(const std::string& suffix) {
    for (const auto& [name, numbers] : file_.outputs) {
      if (!name.ends_with(suffix)) continue;
      const std::string ours = name.substr(0, name.size() - suffix.size());
      std::vector<double> values = numbers.values;
      if (ours.ends_with("_conv"))
        for (std::size_t i = 0; i < values.size(); i += static_cast<std::size_t>(numbers.dims.back()))
          values[i] = std::numeric_limits<double>::quiet_NaN();
      const Tensor value = tape_.empty(shape_of(numbers.dims), ours == "phase" ? Dtype::f64 : tape_.dtype());
      fill(tape_.stream(), value, values);
      state_.set(ours, value);
    }
  }

  /// Writes the states down under the names that the file gives them.
  void note(Results& results, const std::string& suffix) const {
    for (const auto& [name, value] : state_.entries()) {
      Numbers numbers = read(tape_.stream(), value);
      const auto want = file_.outputs.find(name + suffix);
      if (name.ends_with("_conv") && want != file_.outputs.end() && want->second.dims == numbers.dims)
        for (std::size_t i = 0; i < numbers.values.size(); i += static_cast<std::size_t>(numbers.dims.back()))
          numbers.values[i] = want->second.values[i];  // not part of the contract
      results.outputs[name + suffix] = std::move(numbers);
    }
  }
  const Numbers& outputs() const { return outputs_; }

 private:
  const GoldenFile& file_;
  const Layer& layer_;
  const Numbers& x_;
  Numbers outputs_;
  Arena arena_;
  Tape tape_;
  State state_;
};

template <Choose choose>
std::vector<Results> run_decode(const GoldenFile& file, const Stream& stream) {
  const auto layer = make_recurrent_layer<choose>(file, stream);
  const std::int64_t split = file.options.find("split")->as_integer(), time = file.inputs.at("x").dims[1];
  const std::string at_split = "_at_split", at_end = "_at_end";

  // Two pieces: the prefix, then the rest.
  Results pieces;
  pieces.what = "two pieces";
  Decoder in_pieces(file, *layer, stream);
  in_pieces.feed(0, split);
  in_pieces.note(pieces, at_split);
  in_pieces.feed(split, time);
  in_pieces.note(pieces, at_end);
  pieces.outputs["y"] = in_pieces.outputs();

  // The prefix as one piece, then one token at a time from the states of the file.
  Results resumed;
  resumed.what = "resumed from the file's states";
  Decoder from_file(file, *layer, stream);
  from_file.feed(0, split);
  from_file.note(resumed, at_split);
  from_file.resume(at_split);
  for (std::int64_t t = split; t < time; ++t) from_file.feed(t, t + 1);
  from_file.note(resumed, at_end);
  resumed.outputs["y"] = from_file.outputs();

  // One token at a time from the start.
  Results tokens;
  tokens.what = "token by token";
  Decoder by_token(file, *layer, stream);
  for (std::int64_t t = 0; t < time; ++t) {
    if (t == split) by_token.note(tokens, at_split);
    by_token.feed(t, t + 1);
  }
  by_token.note(tokens, at_end);
  tokens.outputs["y"] = by_token.outputs();

  // The whole sequence as one piece; the states at the split are those of the prefix.
  Results whole;
  whole.what = "one piece";
  Decoder at_once(file, *layer, stream);
  at_once.feed(0, time);
  for (const auto& [name, numbers] : pieces.outputs)
    if (name.ends_with(at_split)) whole.outputs[name] = numbers;
  at_once.note(whole, at_end);
  whole.outputs["y"] = at_once.outputs();
  return {pieces, resumed, tokens, whole};
}

}  // namespace

void add_layers(UnitTable& table) {
  table["layer_gla"] = {run_recurrent_layer<choose_gla>};
  table["layer_deltanet"] = {run_recurrent_layer<choose_deltanet>};
  table["layer_attention"] = {run_layer_attention};
  table["layer_fox"] = {run_layer_fox};
  table["layer_gated_deltanet"] = {run_recurrent_layer<choose_gated_deltanet>};
  table["decode_gla"] = {run_decode<choose_gla>};
  table["decode_deltanet"] = {run_decode<choose_deltanet>};
  table["decode_gated_deltanet"] = {run_decode<choose_gated_deltanet>};
  table["layer_linear_attn"] = {run_layer<choose_linear_attention>};
  table["layer_retnet"] = {run_layer<choose_retnet>};
}

}  // namespace phasor::golden
