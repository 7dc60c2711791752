#include "analysis/table/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/selection/paired.h"
#include "analysis/text.h"

namespace phasor::analysis {
namespace {

/// One for each seed that both have, ours less theirs; of logarithms on the logarithmic scale.
std::vector<double> differences_of(const Number& ours, const Number& theirs, Scale scale) {
  std::vector<double> differences;
  if (!ours.statistics.mean || !theirs.statistics.mean) return differences;
  const std::map<std::vector<std::int64_t>, double> others(theirs.values.begin(), theirs.values.end());
  for (const auto& [replicate, value] : ours.values) {
    const auto other = others.find(replicate);
    if (other == others.end()) continue;
    differences.push_back(scale == Scale::logarithmic ? std::log(value) - std::log(other->second) : value - other->second);
  }
  return differences;
}

/// Corrects p of the numbers `which`, over all rows and columns.
Family correct(Table& table, std::size_t which) {
  Family family;
  std::vector<Difference*> members;
  std::vector<double> p;
  for (Cell& cell : table.cells) {
    if (cell.numbers.size() <= which || !cell.numbers[which].difference) continue;
    Difference& difference = *cell.numbers[which].difference;
    members.push_back(&difference);
    p.push_back(difference.p);
    family.least_pairs = members.size() == 1 ? difference.pairs : std::min(family.least_pairs, difference.pairs);
    family.most_pairs = std::max(family.most_pairs, difference.pairs);
  }
  family.comparisons = static_cast<std::int64_t>(members.size());
  if (members.empty()) return family;
  const std::vector<double> corrected = holm(p);
  for (std::size_t i = 0; i < members.size(); ++i) members[i]->p_holm = corrected[i];
  family.smallest_p = smallest_sign_flip(family.most_pairs);
  family.smallest_holm = std::min(1.0, static_cast<double>(family.comparisons) * family.smallest_p);
  return family;
}

/// Whether the best of a column is better than its baseline; as the baseline itself, than every row compared with it.
bool holds(const Table& table, std::size_t column, std::size_t best, std::size_t which) {
  const std::optional<std::size_t> base = baseline_of(table, best);
  if (!base) return false;
  if (*base != best) return table.cell(best, column).numbers[which].differs();
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (row == best || baseline_of(table, row) != base) continue;
    if (!table.cell(row, column).numbers[which].differs()) return false;
  }
  return table.rows.size() > 1;
}

void mark_best(Table& table, std::size_t which) {
  const std::optional<Direction> direction = direction_of(table.spec.report[which].metric);
  if (!direction) return;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::optional<std::size_t> best;
    bool shared = false;
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      const std::optional<double>& mean = table.cell(row, column).numbers[which].statistics.mean;
      if (!mean) continue;
      const double most = best ? *table.cell(*best, column).numbers[which].statistics.mean : *mean;
      if (!best || (direction == Direction::maximise ? *mean > most : *mean < most)) {
        best = row;
        shared = false;
      } else {
        shared = shared || *mean == most;
      }
    }
    if (best && !shared && holds(table, column, *best, which)) {
      table.cells[*best * table.columns.size() + column].numbers[which].best = true;
    }
  }
}

}  // namespace

std::optional<std::size_t> baseline_of(const Table& table, std::size_t row) {
  const std::string& name = table.spec.baseline;
  if (name.empty()) return std::nullopt;
  const auto index_of = [&](const auto& wanted) -> std::optional<std::size_t> {
    const auto found = std::find_if(table.rows.begin(), table.rows.end(), wanted);
    return found == table.rows.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - table.rows.begin()));
  };
  if (const auto whole = index_of([&](const auto& labels) { return join(labels, " / ") == name; })) return whole;
  std::vector<std::string> labels = table.rows[row];
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    if (!index_of([&](const auto& other) { return other[axis] == name; })) continue;
    labels[axis] = name;
    return index_of([&](const auto& other) { return other == labels; });
  }
  return std::nullopt;
}

std::optional<double> step_against_baseline(const Table& table, std::size_t row, std::size_t column) {
  const std::optional<std::size_t> base = baseline_of(table, row);
  if (!base) return std::nullopt;
  const std::optional<double>&ours = table.cell(row, column).step_ms, &theirs = table.cell(*base, column).step_ms;
  if (!ours || !theirs || *theirs <= 0.0) return std::nullopt;
  return *ours / *theirs;
}

void compare_rows(Table& table) {
  if (table.spec.baseline.empty()) return;
  std::map<std::size_t, Bootstrap> bootstraps;  // by the number of seeds
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::optional<std::size_t> base = baseline_of(table, row);
    if (!base || *base == row) continue;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      Cell& cell = table.cells[row * table.columns.size() + column];
      for (std::size_t which = 0; which < cell.numbers.size(); ++which) {
        Number& number = cell.numbers[which];
        const Number& other = table.cell(*base, column).numbers[which];
        const std::vector<double> found = differences_of(number, other, table.spec.scale_of(number.series.metric));
        if (found.empty()) continue;
        Difference difference;
        difference.baseline = join(table.rows[*base], " / ");
        difference.pairs = static_cast<std::int64_t>(found.size());
        difference.mean = *describe(found).mean;
        if (found.size() > 1) difference.interval = bootstraps.try_emplace(found.size(), found.size()).first->second.interval(found);
        difference.p = sign_flip(found);
        number.difference = std::move(difference);
      }
    }
  }
  const std::size_t which = primary_of(table);
  table.family = correct(table, which);
  mark_best(table, which);
}

}  // namespace phasor::analysis
