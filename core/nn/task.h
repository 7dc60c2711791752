#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace phasor {

enum class Split { train, valid, test };
constexpr const char* to_text(Split split) {
  return split == Split::train ? "train" : (split == Split::valid ? "valid" : "test");
}

/// Rows of one split that share a length: the unit of training batches and of evaluation.
struct Slice {
  Split split = Split::train;
  std::int64_t length = 0;  // as the user names it, e.g. group elements per row
  std::int64_t rows = 0;    // how many rows there are (train: before they repeat)
};

/// One row. `targets[t]` is the class to predict at the position of `tokens[t]`, or -1 where nothing is scored.
struct Sample {
  std::span<std::int32_t> tokens;   // [tokens(slice)]
  std::span<std::int32_t> targets;  // [tokens(slice)]
};

/// A task: a pure function of (slice, seed, index). No iterator, no generator state; safe to call from many threads.
///
/// A class that is registered also has (core/plugin/registry.h):
///     struct Options { ... void fields(FieldList&); };
///     static std::optional<std::string> refuses(const Options&);
///     explicit Name(const Options&);
class Task {
 public:
  virtual ~Task() = default;
  virtual std::int64_t vocabulary() const = 0;  // token ids and classes are 0 .. vocabulary-1
  virtual std::vector<Slice> slices(Split) const = 0;  // train: exactly one for now
  virtual std::int64_t tokens(const Slice&) const = 0;       // positions per row, e.g. length + 1 with a BOS
  virtual std::int64_t max_targets(const Slice&) const = 0;  // scored positions per row, at most
  virtual void sample(const Slice&, std::uint64_t seed, std::int64_t index, Sample) const = 0;
  /// Accuracy a guesser reaches, per scored token; shown beside results.
  virtual double chance() const = 0;
  /// Short name of the instance for people, e.g. "S3".
  virtual std::string label() const = 0;
};

}  // namespace phasor
