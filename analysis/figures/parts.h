#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/charts/chart.h"
#include "analysis/figures/figures.h"

namespace phasor::analysis {

/// What all figures of a table need to know of it.
class FigureParts {
 public:
  explicit FigureParts(const FigureSource& source);

  const Frame& frame;
  const Table& table;
  const results::Folder& folder;
  std::vector<std::string> rows, columns;  // labels, joined
  std::size_t primary = 0;                 // of Table::spec.report

  static constexpr std::size_t most_panels = 12;
  std::size_t panels() const { return std::min(columns.size(), most_panels); }

  /// Of a trial: index of its row and column of the table.
  std::size_t row_of(const std::vector<std::int64_t>& at) const { return place(at, "row"); }
  std::size_t column_of(const std::vector<std::int64_t>& at) const { return place(at, "column"); }

  /// Trials that a cell's numbers are made of, as indices of Table::trials (and of Frame::rows).
  const std::vector<std::size_t>& reported(std::size_t row, std::size_t column) const {
    return reported_[row * columns.size() + column];
  }

  /// Longest training sequence of a column, in the units of its slices, when its trials agree on one.
  std::optional<double> trained_to(std::size_t column) const;
  /// What slices count: "length", "key-value pairs"
  std::string slice_noun() const;

  Chart chart(const std::string& name) const;  // with the rows as series
  /// " Not drawn: NoPE on S2 (n/a)." for cells without a number, and columns beyond the most panels.
  std::string left_out(std::size_t number) const;
  std::string seeds() const;  // "3 seeds"

 private:
  std::size_t place(const std::vector<std::int64_t>& at, const std::string& role) const;
  std::vector<std::vector<std::size_t>> reported_;
};

/// The y axis of a metric: 0 to 1 for accuracies, otherwise by the values.
ChartAxis axis_of(const std::string& metric);
bool more_is_better(const std::string& metric);
std::string spoken(const std::string& metric);  // "sequence accuracy"
std::string sentence(std::string text);         // with a capital

void add_length_figures(const FigureParts& parts, std::vector<Figure>& figures);
void add_width_figure(const FigureParts& parts, std::vector<Figure>& figures);
void add_heatmap(const FigureParts& parts, std::vector<Figure>& figures);
void add_curves(const FigureParts& parts, std::vector<Figure>& figures);
void add_progress(const FigureParts& parts, std::vector<Figure>& figures);
void add_sensitivity(const FigureParts& parts, std::vector<Figure>& figures);

}  // namespace phasor::analysis
