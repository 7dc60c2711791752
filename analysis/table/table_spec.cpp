#include "analysis/table/table_spec.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace phasor::analysis {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& message) {
  throw UserError("table" + path + ": " + message);
}

const Json& need(const Json& object, const std::string& path, const char* name) {
  if (!object.is_object()) refuse(path, std::string("found a ") + object.type_name() + ", expected an object");
  const Json* value = object.find(name);
  if (value == nullptr) refuse(path, std::string("no \"") + name + "\"");
  return *value;
}

std::string text(const Json& object, const std::string& path, const char* name) {
  const Json& value = need(object, path, name);
  if (!value.is_string()) refuse(path + "." + name, std::string("found a ") + value.type_name() + ", expected a string");
  return value.as_string();
}

std::optional<std::int64_t> whole_number(std::string_view digits) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  return number;
}

std::int64_t slice_of(const Json* value, const std::string& path) {
  if (value == nullptr || value->is_null()) return -1;
  if (value->is_string() && value->as_string() == "all") return -1;
  if (!value->is_integer() || value->as_integer() < -1) refuse(path, "expected a length, or \"all\"");
  return value->as_integer();
}

At at_of(const Json& select, const std::string& path) {
  const Json* value = select.find("at");
  if (value == nullptr) return {};
  const std::string rule = value->is_string() ? value->as_string() : std::string();
  if (rule == "final") return {At::Rule::final, 1};
  if (rule == "best") return {At::Rule::best, 1};
  constexpr std::string_view mean = "mean_last_";
  if (rule.starts_with(mean)) {
    const std::string_view rest = std::string_view(rule).substr(mean.size());
    const Json* member = select.find("k");
    std::optional<std::int64_t> k = whole_number(rest);
    if (rest == "k" && member != nullptr && member->is_integer()) k = member->as_integer();
    if (k && *k >= 1) return {At::Rule::mean_last, *k};
  }
  refuse(path + ".at", "found " + value->canonical() + ", expected final, best, or mean_last_3 for the mean of the last 3");
}

Tie tie_of(const std::string& rule, const Series& select, const std::string& path) {
  const std::size_t dot = rule.find('.');
  if (dot == std::string::npos) refuse(path, "found \"" + rule + "\", expected \"lowest\" or split.metric");
  const std::size_t mark = std::min(rule.find('@', dot), rule.size());
  Tie tie{{rule.substr(0, dot), rule.substr(dot + 1, mark - dot - 1), select.slice}, mark < rule.size()};
  if (mark < rule.size()) {
    const std::optional<std::int64_t> slice = whole_number(std::string_view(rule).substr(mark + 1));
    if (!slice) refuse(path, "found \"" + rule + "\", expected a length after the @");
    tie.series.slice = *slice;
  }
  if (!direction_of(tie.series.metric)) {
    refuse(path, "whether more or less " + tie.series.metric + " is better is not known");
  }
  return tie;
}

SelectRule select_of(const Json& json) {
  const std::string path = ".select";
  SelectRule rule;
  rule.series = {text(json, path, "split"), text(json, path, "metric"), slice_of(json.find("slice"), path + ".slice")};
  rule.at = at_of(json, path);
  const std::optional<Direction> direction = direction_of(rule.series.metric);
  if (!direction) {
    refuse(path + ".metric", "whether more or less " + rule.series.metric +
                                 " is better is not known, expected a name that ends in accuracy, loss or perplexity");
  }
  rule.direction = *direction;
  const Json* ties = json.find("ties");
  if (ties == nullptr) return rule;
  if (!ties->is_array()) refuse(path + ".ties", "expected a list");
  bool decided = false;
  for (const Json& tie : ties->as_array()) {
    if (!tie.is_string()) refuse(path + ".ties", "expected a list of strings");
    if (decided) refuse(path + ".ties", "nothing can come after \"lowest\"");
    decided = tie.as_string() == "lowest";
    if (!decided) rule.ties.push_back(tie_of(tie.as_string(), rule.series, path + ".ties"));
  }
  return rule;
}

std::vector<Series> report_of(const Json& json) {
  if (!json.is_array() || json.as_array().empty()) refuse(".report", "expected a list of at least one entry");
  std::vector<Series> report;
  for (std::size_t i = 0; i < json.as_array().size(); ++i) {
    const Json& entry = json.as_array()[i];
    const std::string path = ".report[" + std::to_string(i) + "]";
    Series series{text(entry, path, "split"), text(entry, path, "metric"), -1};
    const Json* slices = entry.find("slices");
    if (slices == nullptr || slices->is_null()) {
      report.push_back(series);
      continue;
    }
    if (!slices->is_array() || slices->as_array().empty()) refuse(path + ".slices", "expected a list of lengths");
    for (const Json& slice : slices->as_array()) {
      series.slice = slice_of(&slice, path + ".slices");
      report.push_back(series);
    }
  }
  return report;
}

Series primary_of(const Json* json, const std::vector<Series>& report) {
  if (json == nullptr || json->is_null()) return report.front();
  const std::string metric = text(*json, ".primary", "metric");
  const std::int64_t slice = slice_of(json->find("slice"), ".primary.slice");
  for (const Series& series : report) {
    if (series.metric == metric && series.slice == slice) return series;
  }
  refuse(".primary", metric + " at " + slice_to_text(slice) + " is not among the reported");
}

void check_test(const Json& test) {
  const std::pair<const char*, const char*> known[] = {
      {"name", "sign_flip"}, {"correct", "holm"}, {"family", "rows x columns at primary"}};
  if (!test.is_object()) refuse(".test", std::string("found a ") + test.type_name() + ", expected an object");
  for (const auto& [key, value] : test.as_object()) {
    const auto* expected = std::find_if(std::begin(known), std::end(known), [&](const auto& one) { return one.first == key; });
    if (expected == std::end(known)) refuse(".test." + key, "expected name, correct and family alone");
    if (value != Json(expected->second)) {
      refuse(".test." + key, "found " + value.canonical() + ", expected \"" + expected->second + "\"; there is no other so far");
    }
  }
}

}  // namespace

TableSpec read_table_spec(const Json& table) {
  TableSpec spec;
  if (const Json* select = table.is_object() ? table.find("select") : nullptr; select != nullptr && !select->is_null()) {
    spec.select = select_of(*select);
  }
  spec.report = report_of(need(table, "", "report"));
  spec.primary = primary_of(table.find("primary"), spec.report);
  if (const Json* solved = table.find("solved_at"); solved != nullptr && !solved->is_null()) {
    if (!solved->is_number()) refuse(".solved_at", "expected a number");
    if (!direction_of(spec.primary.metric)) {
      refuse(".solved_at", "whether more or less " + spec.primary.metric + " is better is not known");
    }
    spec.solved_at = solved->as_number();
  }
  if (const Json* baseline = table.find("baseline"); baseline != nullptr && baseline->is_string()) {
    spec.baseline = baseline->as_string();
  }
  if (const Json* test = table.find("test"); test != nullptr && !test->is_null()) check_test(*test);
  if (const Json* averages = table.find("averages");
      averages != nullptr && averages->is_array() && !averages->as_array().empty()) {
    refuse(".averages", "averages over columns are not made yet; give the axis the role average");
  }
  return spec;
}

}  // namespace phasor::analysis
