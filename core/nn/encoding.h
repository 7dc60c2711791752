#pragma once

#include <cstdint>

#include "core/graph/tape.h"
#include "core/nn/state.h"

namespace phasor {

/// Places where position can enter a layer; a set of bits. An encoding needs one, a mixer offers some.
enum class Hook : unsigned { none = 0, input = 1, query_key = 2 };
constexpr Hook operator|(Hook a, Hook b) { return static_cast<Hook>(static_cast<unsigned>(a) | static_cast<unsigned>(b)); }
constexpr bool contains(Hook offered, Hook needed) {
  return (static_cast<unsigned>(needed) & ~static_cast<unsigned>(offered)) == 0;
}

/// Sizes a mixer gives its encoding.
struct MixerShape {
  std::int64_t dim = 0;        // D, width of the model
  std::int64_t heads = 0;      // H, query heads
  std::int64_t kv_heads = 0;   // key and value heads; equal to heads unless grouped
  std::int64_t key_dim = 0;    // K, width of one query or key head
  std::int64_t value_dim = 0;  // V
};

struct QueryKey {
  Tensor q;  // [batch, time, heads, key_dim]
  Tensor k;  // [batch, time, kv_heads, key_dim]
};

/// A positional encoding: where and how position enters. One instance per layer; forward passes are const, since lanes
/// run them at the same time. Only the method of the declared hook is called.
///
/// A class that is registered also has (core/plugin/registry.h):
///     struct Options { ... void fields(FieldList&); };
///     static std::optional<std::string> refuses(const Options&, const MixerShape&);  // a reason, or nothing when it fits
///     Name(const Options&, const MixerShape&, const ParameterScope&);
class Encoding {
 public:
  virtual ~Encoding() = default;
  virtual Hook hook() const = 0;
  /// x: the mixer's input after the block norm, [batch, time, dim].
  virtual Tensor on_input(Tape&, const Tensor& x, const SequenceContext&, State*) const { return x; }
  virtual QueryKey on_query_key(Tape&, QueryKey qk, const Tensor& /*x*/, const SequenceContext&, State*) const {
    return qk;
  }
  /// Scores among later tokens do not depend on what stands before both of them.
  virtual bool relative() const { return true; }
};

}  // namespace phasor
