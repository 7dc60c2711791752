#pragma once

#include "core/nn/encoding.h"

namespace phasor {

/// Mixing over time of one layer. A class that is registered as a backbone also has (core/plugin/registry.h):
///     struct Options { ... void fields(FieldList&); };
///     static std::optional<std::string> refuses(const Options&, std::int64_t dim);
///     static MixerShape shape(const Options&, std::int64_t dim);
///     static Hook offers(const Options&);
///     Name(const Options&, std::int64_t dim, double norm_eps, const ParameterScope&);
class Mixer {
 public:
  virtual ~Mixer() = default;
  /// x [batch, time, dim] -> [batch, time, dim]. With a state, the piece continues where the last one ended.
  virtual Tensor forward(Tape&, const Tensor& x, const Encoding&, const SequenceContext&, State*) const = 0;
};

}  // namespace phasor
