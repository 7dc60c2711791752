#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/philox.h"
#include "core/nn/splits.h"
#include "core/plugin/manifest.h"
#include "plugins/tasks/state_tracking/group.h"

namespace phasor::state_tracking {
namespace {

const Range length_range = Range::between(1.0, 1048576.0);
const Range rows_range = Range::between(1.0, 1e9);

struct TrainOptions {
  std::int64_t rows = 10000, length = 32;
  void fields(FieldList& f) {
    f.integer("rows", rows, "sequences before they repeat", rows_range);
    f.integer("length", length, "group elements per sequence", length_range);
  }
};

struct ValidOptions {
  std::int64_t rows = 1000, length = 32;
  void fields(FieldList& f) {
    f.integer("rows", rows, "sequences", rows_range);
    f.integer("length", length, "group elements per sequence", length_range);
  }
};

struct TestOptions {
  std::int64_t rows = 4000;
  std::vector<std::int64_t> lengths = {32, 64, 96, 128};
  void fields(FieldList& f) {
    f.integer("rows", rows, "sequences of each length", rows_range);
    f.integers("lengths", lengths, "group elements per sequence", length_range);
  }
};

/// The word problem of a group: after every element, name the product of all so far. A row is [BOS, x_1 .. x_k] with
/// x_t uniform and independent; the target at x_t is h_t = x_1 x_2 .. x_t (the new element on the right). Token ids are
/// the elements' numbers, then PAD, BOS and five more that are never used but keep vocabularies comparable with
/// published ones. Rows of a length with at least 2^24 words are drawn in their split, so that none is in two; shorter
/// ones are drawn freely and may repeat by chance.
class StateTracking final : public Task {
 public:
  struct Options {
    std::string group = "S2";
    bool count_bos = false;
    TrainOptions train;
    ValidOptions valid;
    TestOptions test;
    void fields(FieldList& f) {
      f.text("group", group, "Zn, Sn, An or a product such as S2_x_Z3; at most 5040 elements");
      f.boolean("count_bos", count_bos,
                "also train and score the first position, where BOS stands and is its own target");
      f.object("train", train, "training data");
      f.object("valid", valid, "data that choices are made on");
      f.object("test", test, "data that is reported");
    }
  };

  static std::optional<std::string> refuses(const Options& options) {
    if (auto reason = Group::refuses(options.group)) return reason;
    std::vector<std::int64_t> lengths = options.test.lengths;
    if (lengths.empty()) return "test.lengths: found an empty list, expected at least one length";
    std::sort(lengths.begin(), lengths.end());
    const auto twice = std::adjacent_find(lengths.begin(), lengths.end());
    if (twice == lengths.end()) return std::nullopt;
    return "test.lengths: found " + std::to_string(*twice) + " twice, expected each length once";
  }

  explicit StateTracking(const Options& options) : options_(options), group_(options.group) {}

  std::int64_t vocabulary() const override { return group_.order() + 7; }
  double chance() const override { return 1.0 / static_cast<double>(group_.order()); }
  std::string label() const override { return group_.name(); }
  std::int64_t tokens(const Slice& slice) const override { return slice.length + 1; }
  std::int64_t max_targets(const Slice& slice) const override { return slice.length + (options_.count_bos ? 1 : 0); }

  std::vector<Slice> slices(Split split) const override {
    if (split == Split::train) return {{split, options_.train.length, options_.train.rows}};
    if (split == Split::valid) return {{split, options_.valid.length, options_.valid.rows}};
    std::vector<Slice> all;
    for (const std::int64_t length : options_.test.lengths)
      all.push_back({split, length, options_.test.rows, static_cast<std::int64_t>(all.size())});
    return all;
  }

  std::vector<Unit> units(const Slice& slice, const Sample& row) const override {
    return {{content_hash(row.tokens), log2_space(slice), log2_space(slice) >= log2_divided_space}};
  }

  void sample(const Slice& slice, std::uint64_t seed, std::int64_t index, Sample row) const override {
    const auto count = static_cast<std::size_t>(slice.length + 1);
    PHASOR_CHECK(row.tokens.size() == count && row.targets.size() == count, "room for a row of state_tracking");
    const auto bos = static_cast<std::int32_t>(group_.order() + 1);
    const auto draw = [&](Draws& draws) {
      row.tokens[0] = bos;
      for (std::int32_t& element : row.tokens.subspan(1))
        element = static_cast<std::int32_t>(draws.below(static_cast<std::uint64_t>(group_.order())));
      return content_hash(row.tokens);
    };
    if (log2_space(slice) >= log2_divided_space) {
      draw_in_split(slice.split, seed, stream_of(slice), index, draw);
    } else {
      Draws draws(seed, stream_of(slice), static_cast<std::uint64_t>(index));
      draw(draws);
    }
    row.targets[0] = options_.count_bos ? bos : -1;
    std::int64_t state = 0;
    for (std::size_t t = 1; t < count; ++t) {
      state = group_.product(state, row.tokens[t]);
      row.targets[t] = static_cast<std::int32_t>(state);
    }
  }

 private:
  /// Of the number of words of a length, all equally likely.
  double log2_space(const Slice& slice) const {
    return static_cast<double>(slice.length) * std::log2(static_cast<double>(group_.order()));
  }
  /// Splits and lengths have nothing in common, else a long row would begin with a short one.
  static Purpose stream_of(const Slice& slice) {
    const std::uint64_t split = mix64(hash64("state_tracking") ^ static_cast<std::uint64_t>(slice.split));
    return Purpose{mix64(split ^ static_cast<std::uint64_t>(slice.length))};
  }

  Options options_;
  Group group_;
};

}  // namespace
}  // namespace phasor::state_tracking

PHASOR_PLUGIN("state_tracking", "1.0", [](phasor::Registry& registry) {
  registry.task<phasor::state_tracking::StateTracking>("state_tracking", 2, "the running product of group elements");
})
