#include "analysis/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "analysis/text.h"
#include "core/base/error.h"

namespace phasor::analysis {

/// The files of analysis/reference, as they are (made by CMakeLists.txt).
extern const char* const reference_texts[];
extern const std::size_t reference_count;

namespace {

const Json& member(const Json& json, const char* name) {
  const Json* found = json.find(name);
  PHASOR_CHECK(found != nullptr, std::string("a published table without \"") + name + "\"");
  return *found;
}

std::vector<std::string> texts(const Json& list) {
  std::vector<std::string> found;
  for (const Json& text : list.as_array()) found.push_back(text.as_string());
  return found;
}

/// The fewest decimals that say every value, up to four.
int decimals_of(const std::vector<Reference::Row>& rows, std::size_t column) {
  int most = 0;
  for (const Reference::Row& row : rows) {
    for (double scaled = row.values[column]; most < 4; ++most) {
      scaled = row.values[column] * std::pow(10.0, most);
      if (std::abs(scaled - std::round(scaled)) < 1e-6) break;
    }
  }
  return most;
}

}  // namespace

Reference::Reference(const Json& json)
    : json_(json), name_(member(json, "name").as_string()), title_(member(json, "title").as_string()) {
  for (const Json& row : member(json, "rows").as_array()) {
    rows_.push_back({texts(member(row, "labels")), {}});
    for (const Json& value : member(row, "values").as_array()) rows_.back().values.push_back(value.as_number());
  }
  for (const Json& column : member(json, "columns").as_array()) {
    columns_.push_back({member(column, "name").as_string(), member(column, "unit").as_string(), decimals_of(rows_, columns_.size())});
  }
}

std::string Reference::source() const {
  const Json& source = member(json_, "source");
  return member(source, "kind").as_string() + ": " + member(source, "paper").as_string() + ", " + member(source, "place").as_string();
}

std::size_t Reference::index_of(const std::string& column) const {
  const auto found = std::find_if(columns_.begin(), columns_.end(), [&](const Column& one) { return one.name == column; });
  PHASOR_CHECK(found != columns_.end(), "a published table without the column " + column);
  return static_cast<std::size_t>(found - columns_.begin());
}

std::vector<PublishedAverage> Reference::averages() const {
  std::vector<PublishedAverage> found;
  for (const Json& average : member(json_, "averages").as_array()) {
    const std::string column = member(average, "column").as_string();
    const double rounding = 0.5 * std::pow(10.0, -member(average, "decimals").as_number()) +
                            0.5 * std::pow(10.0, -member(average, "decimals_of").as_number());
    for (const Row& row : rows_) {
      std::vector<double> values;
      for (const std::string& of : texts(member(average, "of"))) values.push_back(row.values[index_of(of)]);
      const double mean = *describe(values).mean, printed = row.values[index_of(column)];
      found.push_back({row.labels, column, printed, mean, std::abs(printed - mean) <= rounding + 1e-9});
    }
  }
  return found;
}

Grid Reference::grid() const {
  const std::vector<PublishedAverage> recomputed = averages();
  Grid grid;
  grid.add(texts(member(json_, "row_keys")));
  for (const Column& column : columns_) grid.add_numeric({column.name});
  const std::size_t averaged = recomputed.size() / rows_.size();
  for (std::size_t i = 0; i < averaged; ++i) {
    const std::string& column = recomputed[i * rows_.size()].column;
    grid.add_numeric({column + "_recomputed"});
    grid.add({column + "_adds_up"});
  }
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    std::vector<std::string> line = rows_[row].labels;
    for (std::size_t i = 0; i < columns_.size(); ++i) line.push_back(fixed(rows_[row].values[i], columns_[i].decimals));
    for (std::size_t i = 0; i < averaged; ++i) {
      const PublishedAverage& average = recomputed[i * rows_.size() + row];
      line.push_back(fixed(average.mean, 2));
      line.push_back(average.adds_up ? "yes" : "no");
    }
    grid.lines.push_back(std::move(line));
  }
  return grid;
}

Footnotes Reference::footnotes() const {
  Footnotes notes = {{"source", source()}, {"note", member(json_, "note").as_string()}};
  std::size_t checked = 0, off = 0;
  for (const PublishedAverage& average : averages()) {
    ++checked;
    if (average.adds_up) continue;
    notes.emplace_back(off++ == 0 ? "does not add up" : "",
                       join(average.row, " / ") + ": " + average.column + " is printed as " + fixed(average.printed, columns_[index_of(average.column)].decimals) +
                           ", the mean of its columns is " + fixed(average.mean, 2));
  }
  if (checked > 0) notes.emplace_back("averages", std::to_string(checked) + " recomputed, " + std::to_string(off) + " do not add up");
  return notes;
}

const Json* Reference::redone_by(const std::string& sweep) const {
  const Json* sweeps = json_.find("sweeps");
  if (sweeps == nullptr) return nullptr;
  for (const Json& one : sweeps->as_array()) {
    if (member(one, "name") == Json(sweep)) return &one;
  }
  return nullptr;
}

std::vector<Reference> all_references() {
  std::vector<Reference> found;
  for (std::size_t i = 0; i < reference_count; ++i) found.emplace_back(parse_json(reference_texts[i], "a published table"));
  return found;
}

Reference find_reference(const std::string& name) {
  constexpr std::pair<const char*, const char*> of_paper[] = {
      {"table1", "mad_table1"}, {"table2", "language_modeling_table2"}, {"table3", "language_modeling_table3"}};
  std::string wanted = name;
  std::vector<std::string> names;
  for (const auto& [alias, reference] : of_paper) {
    names.push_back(alias);
    if (name == alias) wanted = reference;
  }
  for (Reference& reference : all_references()) {
    if (reference.name() == wanted) return std::move(reference);
    names.push_back(reference.name());
  }
  throw UserError("no published table is called \"" + name + "\", expected one of " + join(names, ", "));
}

}  // namespace phasor::analysis
