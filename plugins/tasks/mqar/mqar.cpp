#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/philox.h"
#include "core/base/portable_math.h"
#include "core/nn/splits.h"
#include "core/plugin/manifest.h"
#include "plugins/tasks/mqar/distinct.h"

namespace phasor::mqar {
namespace {

/// Slices of one split: entry i of every list is of slice i.
struct Segments {
  std::vector<std::int64_t> rows, lengths, pairs;
  void fields(FieldList& f) {
    f.integers("rows", rows, "rows of each slice", Range::between(1.0, 1e9));
    f.integers("lengths", lengths, "positions per row; stacked: (passes + 1) * pairs", Range::between(2.0, 1048576.0));
    f.integers("pairs", pairs, "key-value pairs per row, the name of the slice; each key is queried once",
               Range::between(1.0, 262144.0));
  }
};

/// Multi-query associative recall (Arora et al., "Zoology", ICLR 2024): name the value that a key came with.
///
/// Interleaved: a row is [k_1 v_1 .. k_K v_K | gap], keys from 1 .. half-1 and values from half .. V-1 (half = V / 2),
/// different within the row. The gap is (L - 2K) / 2 slots of two positions; key i is repeated in the first position of
/// slot s_i, where its value is the target. s_1 .. s_K are successive draws without replacement with weights
/// (g + 1)^(a - 1), so early keys tend to be queried early. Everything else is 0, or a random token: a value, a key of
/// this very row, 0 again. Guessing among the values of the row scores 1 / K.
///
/// Stacked: key and value stand at one position, in two streams, for models without any shift in time. The pairs are
/// shown `passes` times, each time in another order, then the keys in an order that is unrelated, with nothing (-1)
/// beside them; classes are the values. Key 0 is used, and with an odd V the last value too, which the reference never
/// draws.
///
/// The pairs of a row decide its split where there are at least 2^24 choices of them: then not even the pairs of a row
/// are in two splits.
class Mqar final : public Task {
 public:
  struct Options {
    std::int64_t vocabulary = 256;
    std::string form = "interleaved";
    std::int64_t passes = 1;
    double power_a = 0.01;
    bool random_non_queries = true;
    bool curriculum = true;
    Segments train{{10000}, {64}, {4}};
    Segments valid{{500}, {64}, {4}};
    Segments test{{500, 500, 500}, {64, 64, 64}, {4, 8, 16}};
    void fields(FieldList& f) {
      f.integer("vocabulary", vocabulary, "tokens: the lower half are keys, the upper half values",
                Range::between(4.0, 16777216.0));
      f.choice("form", form, {"interleaved", "stacked"},
               "pairs as two neighbours and queries in gaps, or key and value at one position in two streams");
      f.integer("passes", passes, "stacked: how often the pairs are shown", Range::between(1.0, 1024.0));
      f.number("power_a", power_a, "interleaved: slot g of the gap has weight (g + 1)^(a - 1); 1 is uniform",
               {0.0, 4.0, true, false});
      f.boolean("random_non_queries", random_non_queries,
                "interleaved: random tokens where nothing is asked, else 0. They depend on the row alone; in the "
                "reference on the size of the model and on its cache");
      f.boolean("curriculum", curriculum,
                "train slices in the order of the lists every epoch, as the reference; false: mixed");
      f.object("train", train, "training data");
      f.object("valid", valid, "data that choices are made on");
      f.object("test", test, "data that is reported");
    }
    bool stacked() const { return form == "stacked"; }
    std::int64_t first_key() const { return stacked() ? 0 : 1; }  // 0 is the blank between queries
    std::int64_t first_value() const { return vocabulary / 2; }
    std::int64_t keys() const { return first_value() - first_key(); }
    std::int64_t values() const { return vocabulary - first_value(); }
  };

  static std::optional<std::string> refuses(const Options& options);
  explicit Mqar(const Options& options);

  std::int64_t vocabulary() const override { return options_.vocabulary; }
  std::int64_t streams() const override { return options_.stacked() ? 2 : 1; }
  Classes classes() const override {
    return options_.stacked() ? Classes{options_.first_value(), options_.values()} : Task::classes();
  }
  std::vector<Slice> slices(Split split) const override;
  bool curriculum() const override { return options_.curriculum; }
  std::int64_t tokens(const Slice& slice) const override { return segment(slice).length; }
  std::int64_t max_targets(const Slice& slice) const override { return slice.length; }
  double chance() const override { return 1.0 / static_cast<double>(options_.values()); }
  std::string label() const override {
    return "V" + std::to_string(options_.vocabulary) + (options_.stacked() ? " stacked" : "");
  }
  void sample(const Slice& slice, std::uint64_t seed, std::int64_t index, Sample row) const override;

  std::vector<Unit> units(const Slice& slice, const Sample& row) const override {
    return {{content_hash(row.tokens), segment(slice).log2_space, divided(segment(slice))}};
  }

 private:
  struct Segment {
    std::int64_t rows = 0, length = 0, pairs = 0;
    double log2_space = 0.0;  // of the ordered choices of pairs; rows differ in more than that
  };
  /// The random numbers of a row.
  struct Streams {
    Purpose pairs, queries, fillers;
  };

  static bool divided(const Segment& segment) { return segment.log2_space >= log2_divided_space; }
  static Streams streams_of(const Slice& slice, const Segment& segment);
  const Segment& segment(const Slice& slice) const;
  std::vector<std::int32_t> draw_pairs(const Slice&, Purpose, std::uint64_t seed, std::int64_t index) const;
  void interleave(std::span<const std::int32_t> pairs, Draws queries, Draws fillers, Sample row) const;
  void stack(std::span<const std::int32_t> pairs, Draws orders, Sample row) const;

  Options options_;
  std::array<std::vector<Segment>, 3> segments_;  // by split
  std::vector<double> scale_;                     // of slot g: 1 / weight
};

std::string at_slice(const char* split, std::size_t i) {
  return std::string(split) + ", slice " + std::to_string(i) + ": ";
}

/// Why one slice cannot be made.
std::optional<std::string> refuses_slice(const Mqar::Options& options, std::int64_t length, std::int64_t pairs) {
  const auto text = [](std::int64_t n) { return std::to_string(n); };
  if (pairs > options.keys())
    return "found " + text(pairs) + " pairs, expected at most " + text(options.keys()) +
           ", the keys of a vocabulary of " + text(options.vocabulary);
  if (options.stacked()) {
    if (length == (options.passes + 1) * pairs) return std::nullopt;
    return "found length " + text(length) + ", expected " + text((options.passes + 1) * pairs) +
           ", (passes + 1) * pairs of stacked rows";
  }
  if (length % 2 != 0) return "found length " + text(length) + ", expected an even one";
  if (4 * pairs > length)
    return "found length " + text(length) + " for " + text(pairs) + " pairs, expected at least " + text(4 * pairs) +
           ": two positions to show a pair, two to ask for it";
  if (options.vocabulary <= length)
    return "found length " + text(length) + ", expected less than the vocabulary, " + text(options.vocabulary);
  return std::nullopt;
}

std::optional<std::string> refuses_split(const Mqar::Options& options, const char* split, const Segments& segments) {
  const std::size_t count = segments.pairs.size();
  if (count == 0 || segments.rows.size() != count || segments.lengths.size() != count)
    return std::string(split) + ": found " + std::to_string(segments.rows.size()) + " rows, " +
           std::to_string(segments.lengths.size()) + " lengths and " + std::to_string(count) +
           " pairs, expected lists of one size, an entry for each slice";
  for (std::size_t i = 0; i < count; ++i) {
    const auto before = segments.pairs.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(segments.pairs.begin(), before, *before) != before)
      return std::string(split) + ".pairs: found " + std::to_string(*before) + " twice, expected each number once";
    if (const auto reason = refuses_slice(options, segments.lengths[i], segments.pairs[i]))
      return at_slice(split, i) + *reason;
  }
  return std::nullopt;
}

std::optional<std::string> Mqar::refuses(const Options& options) {
  if (!options.stacked() && options.passes != 1)
    return "passes: found " + std::to_string(options.passes) + ", expected 1: interleaved rows show their pairs once";
  if (options.stacked() && (options.power_a != Options{}.power_a || !options.random_non_queries))
    return "power_a, random_non_queries: found other than default, expected neither: stacked rows have no gap";
  const std::pair<const char*, const Segments*> splits[] = {
      {"train", &options.train}, {"valid", &options.valid}, {"test", &options.test}};
  for (const auto& [name, segments] : splits)
    if (auto reason = refuses_split(options, name, *segments)) return reason;
  return std::nullopt;
}

Mqar::Mqar(const Options& options) : options_(options) {
  const Segments* const splits[] = {&options.train, &options.valid, &options.test};
  for (std::size_t split = 0; split < 3; ++split) {
    const Segments& all = *splits[split];
    for (std::size_t i = 0; i < all.pairs.size(); ++i) {
      Segment made{all.rows[i], all.lengths[i], all.pairs[i]};
      for (std::int64_t used = 0; used < made.pairs; ++used)
        made.log2_space += std::log2(static_cast<double>(options.keys() - used)) +
                           std::log2(static_cast<double>(options.values() - used));
      segments_[split].push_back(made);
      const auto slots = static_cast<std::size_t>(made.length / 2 - made.pairs);
      if (!options.stacked() && slots > scale_.size()) scale_.resize(slots);
    }
  }
  for (std::size_t g = 0; g < scale_.size(); ++g)
    scale_[g] = portable::exp((1.0 - options.power_a) * portable::log(static_cast<double>(g + 1)));
}

std::vector<Slice> Mqar::slices(Split split) const {
  std::vector<Slice> all;
  for (const Segment& segment : segments_[static_cast<std::size_t>(split)])
    all.push_back({split, segment.pairs, segment.rows, static_cast<std::int64_t>(all.size())});
  return all;
}

const Mqar::Segment& Mqar::segment(const Slice& slice) const {
  const auto& all = segments_[static_cast<std::size_t>(slice.split)];
  const auto at = static_cast<std::size_t>(slice.segment);
  PHASOR_CHECK(at < all.size() && all[at].pairs == slice.length, "a slice of this task");
  return all[at];
}

Mqar::Streams Mqar::streams_of(const Slice& slice, const Segment& segment) {
  std::uint64_t base = mix64(hash64("mqar") ^ static_cast<std::uint64_t>(slice.split));
  base = mix64(base ^ static_cast<std::uint64_t>(segment.pairs));
  base = mix64(base ^ static_cast<std::uint64_t>(segment.length));
  return {Purpose{mix64(base + 1)}, Purpose{mix64(base + 2)}, Purpose{mix64(base + 3)}};
}

/// Keys, then their values: [2 pairs].
std::vector<std::int32_t> Mqar::draw_pairs(const Slice& slice, Purpose purpose, std::uint64_t seed,
                                           std::int64_t index) const {
  const auto count = static_cast<std::size_t>(slice.length);
  std::vector<std::int32_t> pairs(2 * count);
  Distinct distinct(count);
  const auto draw = [&](Draws& draws) {
    distinct.draw(draws, options_.first_key(), options_.keys(), std::span(pairs).first(count));
    distinct.draw(draws, options_.first_value(), options_.values(), std::span(pairs).last(count));
    return content_hash(pairs);
  };
  if (divided(segment(slice))) {
    draw_in_split(slice.split, seed, purpose, index, draw);
  } else {
    Draws draws(seed, purpose, static_cast<std::uint64_t>(index));
    draw(draws);
  }
  return pairs;
}

void Mqar::interleave(std::span<const std::int32_t> pairs, Draws queries, Draws fillers, Sample row) const {
  const std::size_t count = pairs.size() / 2, context = 2 * count, slots = (row.tokens.size() - context) / 2;
  std::fill(row.tokens.begin(), row.tokens.end(), 0);
  // Successive weighted draws are an exponential race: slot g arrives at an exponential time of rate weight_g.
  std::vector<std::pair<double, std::size_t>> arrivals(slots);
  for (std::size_t g = 0; g < slots; ++g) arrivals[g] = {-portable::log(1.0 - queries.uniform()) * scale_[g], g};
  std::partial_sort(arrivals.begin(), arrivals.begin() + static_cast<std::ptrdiff_t>(count), arrivals.end());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t query = context + 2 * arrivals[i].second;
    row.tokens[2 * i] = row.tokens[query] = pairs[i];
    row.tokens[2 * i + 1] = row.targets[query] = pairs[count + i];
  }
  if (!options_.random_non_queries) return;
  for (std::int32_t& token : row.tokens)
    if (token == 0) token = static_cast<std::int32_t>(fillers.below(static_cast<std::uint64_t>(options_.vocabulary)));
}

void Mqar::stack(std::span<const std::int32_t> pairs, Draws orders, Sample row) const {
  const std::size_t count = pairs.size() / 2, positions = row.targets.size();
  const auto keys = row.tokens.first(positions), values = row.tokens.last(positions);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t t = 0; t < positions; ++t) {
    if (t > 0 && t % count == 0) orders.shuffle(std::span(order));  // the pairs are drawn in random order
    const std::size_t pair = order[t % count];
    const bool asked = t >= positions - count;
    keys[t] = pairs[pair];
    values[t] = asked ? -1 : pairs[count + pair];
    if (asked) row.targets[t] = pairs[count + pair] - static_cast<std::int32_t>(options_.first_value());
  }
}

void Mqar::sample(const Slice& slice, std::uint64_t seed, std::int64_t index, Sample row) const {
  const Segment& at = segment(slice);
  const auto positions = static_cast<std::size_t>(at.length);
  PHASOR_CHECK(row.targets.size() == positions && row.tokens.size() == positions * static_cast<std::size_t>(streams()),
               "room for a row of mqar");
  const Streams streams = streams_of(slice, at);
  const std::vector<std::int32_t> pairs = draw_pairs(slice, streams.pairs, seed, index);
  std::fill(row.targets.begin(), row.targets.end(), -1);
  const auto step = static_cast<std::uint64_t>(index);
  if (options_.stacked()) return stack(pairs, Draws(seed, streams.queries, step), row);
  interleave(pairs, Draws(seed, streams.queries, step), Draws(seed, streams.fillers, step), row);
}

}  // namespace
}  // namespace phasor::mqar

PHASOR_PLUGIN("mqar", "1.0", [](phasor::Registry& registry) {
  registry.task<phasor::mqar::Mqar>("mqar", 1, "multi-query associative recall: the value that a key came with");
})
