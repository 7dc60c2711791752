// Positional encodings, made by their plugins as an experiment would make them.

#include "core/base/error.h"
#include "tests/golden/pass.h"
#include "tests/golden/plugins.h"
#include "tests/golden/units.h"

namespace phasor::golden {

namespace {

MixerShape mixer_shape(const GoldenFile& file, std::int64_t dim) {
  const std::vector<std::int64_t>& q = file.inputs.at("q").dims;  // [batch, time, heads, key_dim]
  return {dim, q[2], file.inputs.at("k").dims[2], q[3], q[3]};
}

std::unique_ptr<Encoding> make(const EncodingChoice& choice, const MixerShape& shape, ParameterStore& store) {
  if (const auto reason = choice.plugin->refuses(*choice.options, shape)) throw UserError("refused: " + *reason);
  std::unique_ptr<Encoding> encoding = choice.plugin->make(*choice.options, shape, {store, "", 0.02});
  PHASOR_CHECK(encoding->hook() == Hook::query_key, "rotations of query and key");
  return encoding;
}

/// `context`: the piece begins at `offset`; otherwise the encoding itself is told to start counting there.
Results rotate(const GoldenFile& file, const Stream& stream, bool context) {
  const std::int64_t offset = file.options.find("offset")->as_integer();
  Json description = file.options;
  description["type"] = "rope";
  description["offset"] = context ? std::int64_t{0} : offset;
  const MixerShape shape = mixer_shape(file, file.inputs.at("q").dims[2] * file.inputs.at("q").dims[3]);
  ParameterStore store;
  const auto encoding = make(choose_encoding(description), shape, store);
  fill_parameters(store, file, stream);

  Pass pass(file, stream, &store);
  const QueryKey in{pass.leaf("q"), pass.leaf("k")};
  const QueryKey out = encoding->on_query_key(pass.tape(), in, {}, {context ? offset : 0, true}, nullptr);
  pass.output("q_rot", out.q);
  pass.output("k_rot", out.k);
  Results results = pass.finish();
  results.what = context ? "a piece that begins at the offset" : "the option offset";
  return results;
}

std::vector<Results> run_rope(const GoldenFile& file, const Stream& stream) {
  return {rotate(file, stream, true), rotate(file, stream, false)};
}

/// Names of what a piece hands to the next one: ours, and in the file before and after.
struct Carried {
  const char *name, *before, *after;
  bool always_double = false;
};
constexpr Carried carried[] = {{"phase", "phase0", "phase_out", true},
                               {"phi_conv", "conv_state", "conv_state_out"},
                               {"phi_raw", "raw0", "raw_out"}};

std::vector<Results> run_selective_rope(const GoldenFile& file, const Stream& stream) {
  ParameterStore store;
  const MixerShape shape = mixer_shape(file, file.options.find("model_dim")->as_integer());
  const auto encoding = make(choose_selective_rope(file.options), shape, store);
  fill_parameters(store, file, stream);
  check_frozen_start(store, file);

  Pass pass(file, stream, &store);
  const bool cached = file.options.find("cached")->as_bool();
  State state;
  for (const Carried& part : carried)
    if (file.inputs.contains(part.before))
      state.set(part.name, pass.leaf(part.before, part.always_double ? Dtype::f64 : stream.dtype));
  const QueryKey in{pass.leaf("q"), pass.leaf("k")};
  const QueryKey out = encoding->on_query_key(pass.tape(), in, pass.leaf("x"), {0, true}, cached ? &state : nullptr);
  pass.output("q_rot", out.q);
  pass.output("k_rot", out.k);
  for (const Carried& part : carried)
    if (file.outputs.contains(part.after)) pass.output(part.after, state.get(part.name));
  return {pass.finish()};
}

}  // namespace

void add_encodings(UnitTable& table) {
  table["rope"] = {run_rope};
  table["rope_scaled"] = {run_rope};
  table["selective_rope"] = {run_selective_rope};
  table["selective_rope_ext"] = {run_selective_rope};
}

}  // namespace phasor::golden
