// Published numbers (analysis/reference/*.json): the shape of every file, and averages that add up, or are known not
// to.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>

#include "core/spec/problems.h"

namespace phasor {
namespace {

Json file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  Document document = Document::parse(text.str(), path);
  document.require_none();
  return document.value();
}

std::map<std::string, Json> all() {
  std::map<std::string, Json> tables;
  for (const auto& entry : std::filesystem::directory_iterator(PHASOR_REFERENCE))
    if (entry.path().extension() == ".json") tables[entry.path().stem()] = file(entry.path());
  return tables;
}

const Json::Array& list(const Json& table, const std::string& key) { return table.find(key)->as_array(); }
const std::string& text(const Json& object, const std::string& key) { return object.find(key)->as_string(); }

std::size_t index_of(const Json& table, const std::string& column) {
  const Json::Array& columns = list(table, "columns");
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (text(columns[i], "name") == column) return i;
  throw std::runtime_error("no column " + column);
}

std::string label(const Json& row) {
  std::string all;
  for (const Json& part : list(row, "labels")) all += (all.empty() ? "" : ", ") + part.as_string();
  return all;
}

double cell(const Json& table, const std::string& row, const std::string& column) {
  for (const Json& each : list(table, "rows"))
    if (label(each) == row) return list(each, "values")[index_of(table, column)].as_number();
  throw std::runtime_error("no row " + row);
}

double mean_of(const Json& table, const Json& average, const Json& row) {
  double sum = 0.0;
  for (const Json& column : list(average, "of"))
    sum += list(row, "values")[index_of(table, column.as_string())].as_number();
  return sum / static_cast<double>(list(average, "of").size());
}

TEST(Reference, TablesHaveTheirShape) {
  const std::set<std::string> units = {"percent", "share", "perplexity", "rows", "numbers"};
  const std::set<std::string> kinds = {"published", "derived", "measured", "read off"};
  std::set<std::string> names;
  for (const auto& [name, table] : all()) {
    names.insert(name);
    EXPECT_EQ(text(table, "name"), name);
    EXPECT_FALSE(text(table, "title").empty()) << name;
    EXPECT_FALSE(text(table, "note").empty()) << name;
    const Json& source = *table.find("source");
    EXPECT_TRUE(kinds.contains(text(source, "kind"))) << name;
    for (const char* key : {"paper", "place"}) EXPECT_FALSE(text(source, key).empty()) << name;
    std::set<std::string> columns, rows;
    for (const Json& column : list(table, "columns")) {
      EXPECT_TRUE(columns.insert(text(column, "name")).second) << name << ": two columns " << text(column, "name");
      EXPECT_TRUE(units.contains(text(column, "unit"))) << name << ": " << text(column, "unit");
      const Json* better = column.find("better");
      EXPECT_TRUE(better == nullptr || *better == Json("higher") || *better == Json("lower")) << name;
    }
    EXPECT_FALSE(list(table, "rows").empty()) << name;
    for (const Json& row : list(table, "rows")) {
      EXPECT_TRUE(rows.insert(label(row)).second) << name << ": two rows " << label(row);
      EXPECT_EQ(list(row, "labels").size(), list(table, "row_keys").size()) << name;
      ASSERT_EQ(list(row, "values").size(), columns.size()) << name << ": " << label(row);
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const double value = list(row, "values")[i].as_number();
        const std::string& unit = text(list(table, "columns")[i], "unit");
        EXPECT_GE(value, 0.0);
        EXPECT_LE(value, unit == "percent" ? 100.0 : unit == "share" ? 1.0 : 2e9) << name << ": " << label(row);
      }
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"copying_figure5", "language_modeling_preprint", "language_modeling_table2",
                                          "language_modeling_table3", "mad_poli", "mad_released_data", "mad_table1",
                                          "parameter_counts"}));
}

// Printed averages are of numbers that are rounded themselves: half a unit of each is admissible.
TEST(Reference, AveragesAddUpOrAreKnownNotTo) {
  std::set<std::string> off, listed;
  int checked = 0;
  for (const auto& [name, table] : all()) {
    for (const Json& average : list(table, "averages")) {
      const double unit = std::pow(10.0, -average.find("decimals")->as_number());
      const double unit_of = std::pow(10.0, -average.find("decimals_of")->as_number());
      for (const Json& row : list(table, "rows")) {
        const double printed = list(row, "values")[index_of(table, text(average, "column"))].as_number();
        ++checked;
        if (std::abs(printed - mean_of(table, average, row)) > 0.5 * unit + 0.5 * unit_of + 1e-9)
          off.insert(name + ": " + label(row));
      }
      for (const Json& known : list(average, "known_mismatches")) {
        listed.insert(name + ": " + label(known));
        EXPECT_EQ(cell(table, label(known), text(average, "column")), known.find("printed")->as_number());
        for (const Json& row : list(table, "rows")) {
          if (label(row) != label(known)) continue;
          EXPECT_NEAR(mean_of(table, average, row), known.find("mean")->as_number(), 0.005);
        }
      }
    }
  }
  EXPECT_EQ(checked, 38);
  EXPECT_EQ(off, (std::set<std::string>{"language_modeling_table3: FoX 370M, NoPE",
                                        "language_modeling_table3: FoX 370M, RoPE",
                                        "language_modeling_table3: FoX 370M, Selective RoPE"}));
  EXPECT_EQ(listed, off);
}

// Three rows of Table 2 are rows of Table 3: perplexity is the mean of its two, to rounding, accuracy is its average.
TEST(Reference, TheAblationAgreesWithTheTable) {
  const auto tables = all();
  const Json &ablation = tables.at("language_modeling_table2"), &table = tables.at("language_modeling_table3");
  const std::map<std::string, std::string> same = {
      {"NoPE", "NoPE"}, {"RoPE", "RoPE"}, {"Selective RoPE + SiLU + gate", "Selective RoPE"}};
  for (const auto& [in_ablation, in_table] : same) {
    const std::string one = "GLA 370M, " + in_ablation, other = "GLA 370M, " + in_table;
    const double perplexity = (cell(table, other, "wikitext_ppl") + cell(table, other, "lambada_ppl")) / 2.0;
    EXPECT_NEAR(cell(ablation, one, "average_ppl"), perplexity, 0.005 + 1e-9);
    EXPECT_EQ(cell(ablation, one, "average"), cell(table, other, "average"));
  }
}

// What the notes say of Table 1: the best row is 7.3 above NoPE and 0.7 above RoPE, plain Selective RoPE 0.5 below
// RoPE.
TEST(Reference, DistancesInTheMadTable) {
  const auto tables = all();
  const auto average = [&](const std::string& encoding) {
    return cell(tables.at("mad_table1"), "GLA, " + encoding, "average");
  };
  EXPECT_NEAR(average("Selective RoPE + gate + bias") - average("NoPE"), 7.3, 1e-9);
  EXPECT_NEAR(average("Selective RoPE + gate + bias") - average("RoPE"), 0.7, 1e-9);
  EXPECT_NEAR(average("Selective RoPE") - average("RoPE"), -0.5, 1e-9);
}

}  // namespace
}  // namespace phasor
