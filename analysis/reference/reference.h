#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "analysis/table/table.h"
#include "analysis/writers/grid.h"
#include "analysis/writers/human.h"
#include "core/spec/json.h"

namespace phasor::analysis {

/// A published average and the mean of the columns it is of.
struct PublishedAverage {
  std::vector<std::string> row;  // labels
  std::string column;
  double printed = 0.0, mean = 0.0;
  bool adds_up = true;  // to half a unit of the last digit of both: what is printed is rounded
};

/// A published table (analysis/reference/*.json), which the program carries within it.
class Reference {
 public:
  struct Column {
    std::string name, unit;
    int decimals = 0;  // of the numbers as printed
  };
  struct Row {
    std::vector<std::string> labels;
    std::vector<double> values;
  };

  explicit Reference(const Json& json);
  const std::string& name() const { return name_; }
  const std::string& title() const { return title_; }
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<Row>& rows() const { return rows_; }
  /// "published: Selective Rotary Position Embedding, ICLR 2026 (...), Table 3"
  std::string source() const;
  /// Every printed average, recomputed.
  std::vector<PublishedAverage> averages() const;
  /// Its numbers as printed, and beside each average the recomputed one and whether it adds up.
  Grid grid() const;
  /// Source, note, and the averages that do not add up.
  Footnotes footnotes() const;
  /// How a sweep's rows and columns are called here; null where the sweep redoes nothing of it.
  const Json* redone_by(const std::string& sweep) const;

 private:
  std::size_t index_of(const std::string& column) const;

  Json json_;
  std::string name_, title_;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

/// All that there are, by name.
std::vector<Reference> all_references();
/// By name, or table1, table2, table3 for those of the paper. UserError that lists the names.
Reference find_reference(const std::string& name);
std::string render(const Reference& reference, Format format);

/// Our primary numbers beside the published ones, in the published unit, and what of the published averages does not add up.
/// `reference`: a name, or "paper" for what the sweep redoes by its own account. UserError where nothing corresponds.
std::string compare(const Table& table, const std::string& reference, Format format);

}  // namespace phasor::analysis
