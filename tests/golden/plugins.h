#pragma once

#include <memory>

#include "core/plugin/registry.h"
#include "core/spec/json.h"

namespace phasor::golden {

/// The plugins of this build, loaded as the program loads them.
const Registry& plugins();

/// Fills the options of a plugin from JSON as an experiment file would. Throws UserError for what it does not know.
void read_options(Options& options, const Json& json, const std::string& name);

/// An encoding as a file describes it: the plugin and its options.
struct EncodingChoice {
  const EncodingPlugin* plugin = nullptr;
  std::unique_ptr<Options> options;
};
/// `position_embedding` of a layer or model.
EncodingChoice choose_encoding(const Json& position_embedding);
/// Options of the units selective_rope and selective_rope_ext.
EncodingChoice choose_selective_rope(const Json& options);

struct BackboneChoice {
  const BackbonePlugin* plugin = nullptr;
  std::unique_ptr<Options> options;
};
BackboneChoice choose_gla(const Json& options);
BackboneChoice choose_fox(const Json& from);
BackboneChoice choose_deltanet(const Json& options);
BackboneChoice choose_gated_deltanet(const Json& options);
BackboneChoice choose_linear_attention(const Json& options);
BackboneChoice choose_retnet(const Json& options);
/// Their rotation is an option of the file's, rope_theta, or there is none.
EncodingChoice choose_fixed_encoding(const Json& options);
BackboneChoice choose_transformer(const Json& options);
/// A softmax layer has linear biases by an option of its own, in place of another encoding.
EncodingChoice choose_transformer_encoding(const Json& options);

}  // namespace phasor::golden
