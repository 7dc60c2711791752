#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace phasor {

enum class Split { train, valid, test };
constexpr const char* to_text(Split split) {
  return split == Split::train ? "train" : (split == Split::valid ? "valid" : "test");
}

/// Rows of one split that share a shape: the unit of training batches and of evaluation.
struct Slice {
  Split split = Split::train;
  std::int64_t length = 0;   // as the user names it: group elements, letters, key-value pairs; once per split
  std::int64_t rows = 0;     // how many rows there are (train: before they repeat)
  std::int64_t segment = 0;  // number of the slice within its split, for the task itself
};

/// One row. `targets[t]` is the class to predict at the position of `tokens[t]`, or -1 where nothing is scored.
struct Sample {
  std::span<std::int32_t> tokens;   // [streams * tokens(slice)], stream after stream
  std::span<std::int32_t> targets;  // [tokens(slice)]
  /// Only when `packs()`, else empty: for every position the index of the first token of its document.
  std::span<std::int32_t> starts = {};  // [tokens(slice)]
};

/// What is predicted: class c is token `first + c`.
struct Classes {
  std::int64_t first = 0, count = 0;
};

/// What a prediction is made from: the state at its own position; or, in an auto-encoder, the state at the row's last
/// position, which encodes the whole row, and the number of its own.
enum class Reading { positions, last };

/// A part of a row whose reappearance in another split is a leak: the whole row, or one string of a packed row.
struct Unit {
  std::uint64_t hash = 0;    // of the content
  double log2_space = 0.0;   // of the number of equally likely units of this kind
  bool disjoint = false;     // units of this kind belong to one split by construction (core/nn/splits.h)
};

/// A task: a pure function of (slice, seed, index). No iterator, no generator state; safe to call from many threads.
///
/// A class that is registered also has (core/plugin/registry.h):
///     struct Options { ... void fields(FieldList&); };
///     static std::optional<std::string> refuses(const Options&);
///     explicit Name(const Options&);
/// Options may have `void resolve()`, see there.
class Task {
 public:
  virtual ~Task() = default;
  virtual std::int64_t vocabulary() const = 0;         // token ids are 0 .. vocabulary-1
  virtual std::int64_t streams() const { return 1; }   // token ids per position; an id of -1 is nothing
  virtual Classes classes() const { return {0, vocabulary()}; }
  virtual bool packs() const { return false; }         // rows hold documents that must not see each other
  virtual Reading reading() const { return Reading::positions; }  // `last`: a task that neither packs nor has a prompt
  /// Train: a batch is of one slice. One epoch goes through all of them, in random order unless `curriculum()`.
  virtual std::vector<Slice> slices(Split) const = 0;
  virtual bool curriculum() const { return false; }    // train slices one after the other, in their order, every epoch
  virtual std::int64_t tokens(const Slice&) const = 0;       // positions per row, e.g. length + 1 with a BOS
  virtual std::int64_t max_targets(const Slice&) const = 0;  // scored positions per row, at most
  virtual void sample(const Slice&, std::uint64_t seed, std::int64_t index, Sample) const = 0;
  /// Positions that are given when the model continues by itself: its prediction at position t, as a token, becomes the
  /// token at t + 1, from t = prompt - 1 to the last scored position, which are then all scored. 0: not for this task.
  virtual std::int64_t prompt(const Slice&) const { return 0; }
  /// Of one row that `sample` made.
  virtual std::vector<Unit> units(const Slice&, const Sample&) const = 0;
  /// Rows are text: perplexity is reported beside the loss.
  virtual bool text() const { return false; }
  /// Of text: how many bytes the targets of row `index` stand for; 0 = not known.
  virtual std::int64_t text_bytes(const Slice&, std::int64_t /*index*/) const { return 0; }
  /// Last positions of ranges of which the loss is reported too, ascending: a document's first token is at 1, a range
  /// ends with its last position, the next begins after it. Of at most one slice of a split; later positions are left out.
  virtual std::vector<std::int64_t> position_ends(const Slice&) const { return {}; }
  /// Why no rows can be made here, such as a file that is not there. Shapes are known all the same, numbers of rows are not.
  virtual std::optional<std::string> missing() const { return std::nullopt; }
  /// Accuracy a guesser reaches, per scored token; shown beside results.
  virtual double chance() const = 0;
  /// Short name of the instance for people, e.g. "S3".
  virtual std::string label() const = 0;
};

}  // namespace phasor
