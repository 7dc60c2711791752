#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/tape.h"
#include "core/nn/state.h"

namespace phasor {

/// Places where position can enter; a set of bits. An encoding needs one, a mixer offers some of the first three; the
/// model itself offers `embedding`, once, before the first layer.
enum class Hook : unsigned { none = 0, input = 1, query_key = 2, scores = 4, embedding = 8 };
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
  std::int64_t max_time = 0;   // longest row of the experiment, in tokens; 0 = not known
};

struct QueryKey {
  Tensor q;  // [batch, time, heads, key_dim]
  Tensor k;  // [batch, time, kv_heads, key_dim]
};

/// What is added to attention scores, as a description: scores [time, time] are never formed. For query i and key j <= i
/// of query head h:  score += sum_{u=j+1..i} log_decay[u, h] - slopes[h] (i - j), unscaled.
struct ScoreBias {
  Tensor slopes;     // f64 [heads], a Table (ALiBi), or empty
  Tensor log_decay;  // [batch, time, heads], <= 0, or empty (forgetting attention)
};

/// A positional encoding: where and how position enters. One instance per layer (with the hook `embedding` one per model);
/// forward passes are const, since lanes run them at the same time. Only the method of the declared hook is called.
/// A new method, here or of mixers or tasks, is passed on in core/plugin/guard.cpp too.
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
  virtual ScoreBias score_bias(Tape&, const Tensor& /*x*/, const SequenceContext&, State*) const { return {}; }
  /// x: token embeddings, [batch, time, dim].
  virtual Tensor on_embedding(Tape&, const Tensor& x, const SequenceContext&, State*) const { return x; }
  /// Acts on queries and keys before their norm, where a mixer has one; otherwise after it.
  virtual bool rotates_before_norm() const { return false; }
  /// Scores among later tokens do not depend on what stands before both of them.
  virtual bool relative() const { return true; }
};

}  // namespace phasor
