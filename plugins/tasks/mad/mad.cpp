#include "plugins/tasks/mad/mad.h"

#include "core/base/error.h"
#include "core/base/hash.h"

namespace phasor::mad {

namespace {

constexpr std::uint64_t reference_seed = 12345;

/// Where a row stands in the released generator.
struct Place {
  std::int64_t of_chunk = 0;    // rows of its chunk before it
  std::int64_t of_process = 0;  // rows its worker made before it
};

Place place_of(std::int64_t index, std::int64_t rows, std::int64_t workers) {
  const std::int64_t chunk = (rows + 4 * workers - 1) / (4 * workers);
  const std::int64_t round = index / chunk / workers;  // chunks that its worker made before
  return {index % chunk, round * chunk + index % chunk};
}

}  // namespace

void Sizes::fields(FieldList& f, const std::string& vocabulary_help, const std::string& length_help) {
  f.integer("vocabulary", vocabulary, vocabulary_help, Range::between(2.0, 16777216.0));
  f.integer("length", length, length_help, Range::between(1.0, 1048576.0));
  f.object("train", train, "training data; rows are those before they repeat");
  f.object("valid", valid, "data that choices are made on; the reference has none and chooses on test");
  f.object("test", test, "data that is reported");
  f.integer(
      "released_workers", released_workers,
      "0: clean data. From 2: the reference's generator with so many workers (its default is 8), which repeats rows "
      "and puts training rows into test; valid stays clean. No speed is gained",
      Range::between(0.0, 1024.0));
}

std::string found(const char* option, std::int64_t value, const std::string& expected) {
  return std::string(option) + ": found " + std::to_string(value) + ", expected " + expected;
}

std::optional<std::string> refuses_sizes(const Sizes& sizes) {
  if (sizes.released_workers == 1)
    return found("released_workers", 1, "0 or at least 2: the reference has no fault with one process");
  return std::nullopt;
}

std::vector<Slice> MadTask::slices(Split split) const {
  const Rows& rows = split == Split::train ? sizes_.train : (split == Split::valid ? sizes_.valid : sizes_.test);
  return {{split, sizes_.length, rows.rows}};
}

std::string MadTask::label() const {
  return "V" + std::to_string(sizes_.vocabulary) + " L" + std::to_string(sizes_.length) +
         (sizes_.released_workers > 0 ? " released" : "");
}

void MadTask::sample(const Slice& slice, std::uint64_t seed, std::int64_t index, Sample row) const {
  const auto count = static_cast<std::size_t>(tokens(slice));
  PHASOR_CHECK(row.tokens.size() == count && row.targets.size() == count, "room for a row of MAD");
  const std::uint64_t base = mix64(hash64(name_) ^ static_cast<std::uint64_t>(slice.length));
  if (released(slice.split)) {
    const Place place = place_of(index, slice.rows, sizes_.released_workers);
    Draws draws(reference_seed, Purpose{mix64(base + 4)}, static_cast<std::uint64_t>(place.of_chunk));
    Draws process(reference_seed, Purpose{mix64(base + 5)}, static_cast<std::uint64_t>(place.of_process));
    return make(draws, process, slice.split, row);
  }
  const Purpose purpose{mix64(base + 1 + static_cast<std::uint64_t>(slice.split))};
  const auto draw = [&](Draws& draws) {
    make(draws, draws, slice.split, row);
    return content_hash(row.tokens);
  };
  if (log2_space(slice.split) >= log2_divided_space) return draw_in_split(slice.split, seed, purpose, index, draw);
  Draws draws(seed, purpose, static_cast<std::uint64_t>(index));
  draw(draws);
}

std::vector<Unit> MadTask::units(const Slice& slice, const Sample& row) const {
  const double space = log2_space(slice.split);
  // A clean row of valid is of its split, but released training rows are of any.
  return {{content_hash(row.tokens), space, sizes_.released_workers == 0 && space >= log2_divided_space}};
}

void Text::append(std::int32_t token, bool is_asked, bool is_trained) {
  tokens.push_back(token);
  asked.push_back(is_asked);
  trained.push_back(is_trained);
}

void Text::into(Sample row, Split split) const {
  PHASOR_CHECK(tokens.size() == row.tokens.size() + 1, "a token more than positions");
  const std::vector<bool>& scored = split == Split::train ? trained : asked;
  for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
    row.tokens[t] = tokens[t];
    row.targets[t] = scored[t + 1] ? tokens[t + 1] : -1;
  }
}

}  // namespace phasor::mad

PHASOR_PLUGIN("mad", "1.0", [](phasor::Registry& registry) {
  phasor::mad::register_recall(registry);
  phasor::mad::register_fuzzy_recall(registry);
  phasor::mad::register_memorisation(registry);
  phasor::mad::register_selective_copying(registry);
  phasor::mad::register_compression(registry);
})
