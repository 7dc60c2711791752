#include "experiments/data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "core/base/hash.h"
#include "experiments/order.h"

namespace phasor {

void Rows::resize(const Task& task, const Slice& slice, std::int64_t rows) {
  count = rows;
  tokens = task.tokens(slice);
  streams = task.streams();
  ids.resize(static_cast<std::size_t>(rows * streams * tokens));
  targets.resize(static_cast<std::size_t>(rows * tokens));
  starts.resize(task.packs() ? targets.size() : 0);
}

std::int64_t Rows::scored(std::int64_t row) const {
  const auto begin = targets.begin() + row * tokens;
  return std::count_if(begin, begin + tokens, [](std::int32_t target) { return target >= 0; });
}

Sample Rows::row(std::int64_t index) {
  const auto part = [index](std::vector<std::int32_t>& all, std::int64_t length) {
    if (all.empty()) return std::span<std::int32_t>();
    return std::span(all).subspan(static_cast<std::size_t>(index * length), static_cast<std::size_t>(length));
  };
  return {part(ids, streams * tokens), part(targets, tokens), part(starts, tokens)};
}

EvaluationData make_evaluation_data(const Task& task, const Slice& slice, std::uint64_t eval_seed) {
  EvaluationData data{slice, {}, {}};
  data.rows.resize(task, slice, slice.rows);
  for (std::int64_t i = 0; i < slice.rows; ++i) {
    task.sample(slice, eval_seed, i, data.rows.row(i));
    data.text_bytes += task.text_bytes(slice, i);
  }
  ContentHash hash;
  hash.update_values(std::span<const std::int32_t>(data.rows.ids));
  hash.update_values(std::span<const std::int32_t>(data.rows.targets));
  data.hash = hash.hex();
  return data;
}

namespace {

/// The units of evaluation data by their hash: whether training shows them.
using Wanted = std::unordered_map<std::uint64_t, bool>;

/// How many units of each size of space training drew.
using Drawn = std::map<double, double>;

void search(const Task& task, const Slice& slice, std::uint64_t seed, std::int64_t rows, Wanted& wanted, Drawn& drawn) {
  Rows one;
  one.resize(task, slice, 1);
  for (std::int64_t i = 0; i < rows; ++i) {
    const Sample row = one.row(0);
    task.sample(slice, seed, training_row(seed, i, slice.rows), row);
    for (const Unit& unit : task.units(slice, row)) {
      drawn[unit.log2_space] += 1.0;
      const auto found = wanted.find(unit.hash);
      if (found != wanted.end()) found->second = true;
    }
  }
}

double chance_of(const Unit& unit, const Drawn& drawn) {
  const auto same = drawn.find(unit.log2_space);
  if (unit.disjoint || same == drawn.end()) return 0.0;
  return -std::expm1(same->second * std::log1p(-std::exp2(-unit.log2_space)));
}

}  // namespace

OverlapReport measure_overlap(const Task& task, std::uint64_t seed, std::int64_t rows_seen, const std::vector<EvaluationData>& all,
                              std::int64_t most) {
  std::vector<std::vector<Unit>> units;  // of every evaluation slice
  Wanted wanted;
  for (const EvaluationData& data : all) {
    std::vector<Unit>& own = units.emplace_back();
    Rows rows = data.rows;
    for (std::int64_t i = 0; i < rows.count; ++i)
      for (const Unit& unit : task.units(data.slice, rows.row(i))) {
        own.push_back(unit);
        wanted.emplace(unit.hash, false);
      }
  }

  OverlapReport report;
  Drawn drawn;
  for (const Slice& slice : task.slices(Split::train)) {
    // With several slices each is visited by a share of the rows; all of them is the safe side.
    const std::int64_t visited = std::min(slice.rows, rows_seen), compared = std::min(visited, most);
    search(task, slice, seed, compared, wanted, drawn);
    report.rows_compared += compared;
    report.all_compared = report.all_compared && compared == visited;
  }
  for (const std::vector<Unit>& own : units) {
    Overlap& overlap = report.slices.emplace_back();
    overlap.units = static_cast<std::int64_t>(own.size());
    overlap.disjoint = std::all_of(own.begin(), own.end(), [](const Unit& unit) { return unit.disjoint; });
    std::unordered_set<std::uint64_t> different;
    for (const Unit& unit : own) {
      different.insert(unit.hash);
      overlap.shared += wanted.at(unit.hash) ? 1 : 0;
      overlap.by_chance += chance_of(unit, drawn);
    }
    overlap.distinct = static_cast<std::int64_t>(different.size());
  }
  return report;
}

}  // namespace phasor
