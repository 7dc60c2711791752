#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/philox.h"
#include "core/nn/splits.h"
#include "core/plugin/manifest.h"

namespace phasor::mad {

// The tasks of MAD (Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures", ICML 2024). Each is
// registered under its own name, not as one task with a kind: their options differ, so that a file cannot give an
// option that its task does not have, `phasor plugins mad_recall` shows what there is, and a sweep that changes
// `task.name` takes the baseline of the new task instead of what was left from the old one.

struct Rows {
  std::int64_t rows = 0;
  void fields(FieldList& f) { f.integer("rows", rows, "rows", Range::between(1.0, 1e9)); }
};

/// What all tasks have: one setting of the benchmark.
struct Sizes {
  std::int64_t vocabulary = 16, length = 128;
  Rows train{12800}, valid{1280}, test{1280};
  std::int64_t released_workers = 0;
  void fields(FieldList& f, const std::string& vocabulary_help, const std::string& length_help);
};

/// Rows as a function of (split, seed, index), in one of two ways.
///
/// Clean (`released_workers` 0): a row has random numbers of its own, and rows of a space of at least 2^24 are drawn in
/// their split. The size of a space is that of the likeliest row, so rows are never more alike than is told.
///
/// Released: what the reference's generator makes with 2 or more worker processes, so that the effect can be measured.
/// Its rows are dealt to the workers in chunks of ceil(rows / (4 workers)), and every chunk begins with the same state
/// of the task's generator; so does every split. Only what comes from the generator of the process (blanks of selective
/// copying) goes on from a worker's chunk to its next. Chunks are dealt evenly here; there it is a race. Train and test do
/// not depend on any seed, as the files there are made once. Valid, which the reference does not have, is clean here too:
/// what a model can do on rows that it has not seen stands beside what it scores on test.
class MadTask : public Task {
 public:
  std::int64_t vocabulary() const override { return sizes_.vocabulary; }
  std::vector<Slice> slices(Split split) const override;
  std::string label() const override;
  void sample(const Slice& slice, std::uint64_t seed, std::int64_t index, Sample row) const override;
  std::vector<Unit> units(const Slice& slice, const Sample& row) const override;

 protected:
  MadTask(std::string name, const Sizes& sizes) : name_(std::move(name)), sizes_(sizes) {}
  const Sizes& sizes() const { return sizes_; }
  /// Makes a row. `process`: the generator of the worker process; another stream than `draws` in released rows only.
  virtual void make(Draws& draws, Draws& process, Split split, Sample row) const = 0;
  /// -log2 of the probability of the likeliest row, or less.
  virtual double log2_space(Split split) const = 0;

 private:
  bool released(Split split) const { return sizes_.released_workers > 0 && split != Split::valid; }

  std::string name_;
  Sizes sizes_;
};

/// Why sizes cannot be, whatever the task.
std::optional<std::string> refuses_sizes(const Sizes& sizes);
std::string found(const char* option, std::int64_t value, const std::string& expected);

/// A row whose targets are next tokens: `text` has one token more than the row has positions. Asked are the tokens that
/// valid and test score; training scores all that `trained` says.
struct Text {
  std::vector<std::int32_t> tokens;
  std::vector<bool> asked, trained;
  void append(std::int32_t token, bool is_asked, bool is_trained);
  void into(Sample row, Split split) const;
};

/// An integer of [first, first + count).
inline std::int32_t draw(Draws& draws, std::int64_t first, std::int64_t count) {
  return static_cast<std::int32_t>(first) + static_cast<std::int32_t>(draws.below(static_cast<std::uint64_t>(count)));
}

void register_recall(Registry&);
void register_fuzzy_recall(Registry&);
void register_memorisation(Registry&);
void register_selective_copying(Registry&);
void register_compression(Registry&);

}  // namespace phasor::mad
