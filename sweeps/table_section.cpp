#include "sweeps/table_section.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/base/text.h"
#include "results/record.h"
#include "sweeps/reader.h"

namespace phasor::sweeps {

namespace {

const std::vector<std::string> splits = {"valid", "test"};

/// Trials are evaluated by length; "all" is for splits of a single length, which may differ from cell to cell.
bool is_slice(const Json& value) { return value == Json("all") || (value.is_integer() && value.as_integer() >= 1); }

void read_slice(Reader& reader, const Json& object, const std::string& path) {
  const Json* value = reader.member(object, path, "slice", true);
  if (value == nullptr || is_slice(*value)) return;
  reader.problem(path + ".slice", found_text(*value) + ", expected a length of at least 1, or \"all\"");
}

bool is_rule(const std::string& rule) {
  if (rule == "final" || rule == "best") return true;
  constexpr std::string_view mean = "mean_last_";
  if (!rule.starts_with(mean)) return false;
  int k = 0;
  const char* end = rule.data() + rule.size();
  const auto [stop, error] = std::from_chars(rule.data() + mean.size(), end, k);
  return error == std::errc() && stop == end && k >= 1;
}

/// "lowest" (the last word, always), or a metric of a split such as "valid.loss" or "valid.loss@32".
void read_tie(Reader& reader, const Json& tie, const std::string& path) {
  const std::string text = tie.is_string() ? tie.as_string() : "";
  if (text == "lowest") return;
  const std::vector<std::string>& names = results::metric_names();
  const std::size_t dot = text.find('.'), at = std::min(text.find('@'), text.size());
  const bool good = dot != std::string::npos && dot < at && text.substr(0, dot) == "valid" &&
                    std::find(names.begin(), names.end(), text.substr(dot + 1, at - dot - 1)) != names.end();
  if (!good) {
    reader.problem(path, found_text(tie) + ", expected \"lowest\" or a metric of valid, such as \"valid.loss\"");
  }
}

void read_select(Reader& reader, Json& table) {
  const std::string path = "table.select";
  Json& select = *table.find("select");
  if (!reader.object(select, path)) return;
  reader.keys(select, path, {"split", "metric", "slice", "at", "ties"});
  if (const auto split = reader.choice(select, path, "split", splits, true); split == "test") {
    reader.problem(path + ".split",
                   "found \"test\", expected \"valid\": what is chosen on the test split cannot be reported on it");
  }
  reader.choice(select, path, "metric", results::metric_names(), true);
  read_slice(reader, select, path);
  if (select.find("at") == nullptr) select["at"] = "final";
  if (const auto rule = reader.text(select, path, "at", true); rule && !is_rule(*rule)) {
    reader.problem(path + ".at", "found " + json_quoted(*rule) +
                                     ", expected \"final\", \"best\", or \"mean_last_3\" for the mean of the last 3");
  }
  if (select.find("ties") == nullptr) select["ties"] = Json::Array{"valid.loss", "lowest"};
  const Json::Array* ties = reader.list(select, path, "ties", true);
  for (std::size_t i = 0; ties != nullptr && i < ties->size(); ++i) {
    const std::string place = element(path + ".ties", i);
    read_tie(reader, (*ties)[i], place);
    if ((*ties)[i] == Json("lowest") && i + 1 < ties->size()) {
      reader.problem(place, "found \"lowest\" before another rule, expected it last: it leaves no ties");
    }
  }
}

void read_report(Reader& reader, const Json& table) {
  const Json::Array* report = reader.list(table, "table", "report", true);
  if (report == nullptr) return;
  if (report->empty()) reader.problem("table.report", "found an empty list, expected at least one entry");
  for (std::size_t i = 0; i < report->size(); ++i) {
    const std::string path = element("table.report", i);
    const Json& entry = (*report)[i];
    if (!reader.object(entry, path)) continue;
    reader.keys(entry, path, {"split", "metric", "slices"});
    reader.choice(entry, path, "split", splits, true);
    reader.choice(entry, path, "metric", results::metric_names(), true);
    const Json::Array* slices = reader.list(entry, path, "slices", true);
    if (slices == nullptr) continue;
    if (slices->empty()) reader.problem(path + ".slices", "found an empty list, expected lengths");
    for (std::size_t j = 0; j < slices->size(); ++j) {
      if (is_slice((*slices)[j])) continue;
      reader.problem(element(path + ".slices", j), found_text((*slices)[j]) + ", expected a length of at least 1, or \"all\"");
    }
  }
}

bool is_reported(const Json& table, const Json& metric, const Json& slice) {
  const Json* report = table.find("report");
  if (report == nullptr || !report->is_array()) return true;  // told already
  for (const Json& entry : report->as_array()) {
    const Json *reported = entry.find("metric"), *slices = entry.find("slices");
    if (reported == nullptr || slices == nullptr || !slices->is_array() || *reported != metric) continue;
    if (std::find(slices->as_array().begin(), slices->as_array().end(), slice) != slices->as_array().end()) return true;
  }
  return false;
}

void read_primary(Reader& reader, const Json& table) {
  const Json* primary = table.find("primary");
  if (primary == nullptr || !reader.object(*primary, "table.primary")) return;
  reader.keys(*primary, "table.primary", {"metric", "slice"});
  const auto metric = reader.choice(*primary, "table.primary", "metric", results::metric_names(), true);
  read_slice(reader, *primary, "table.primary");
  const Json* slice = primary->find("slice");
  if (metric && slice != nullptr && !is_reported(table, *metric, *slice)) {
    reader.problem("table.primary", "found a metric and slice that are not in \"report\", expected one that is");
  }
}

void read_solved_at(Reader& reader, const Json& table) {
  const Json* solved = table.find("solved_at");
  if (solved == nullptr || solved->is_null()) return;
  if (solved->is_number() && solved->as_number() >= 0.0 && solved->as_number() <= 1.0) return;
  reader.problem("table.solved_at", found_text(*solved) + ", expected a number 0 to 1, such as 0.95");
}

void read_baseline(Reader& reader, const Json& table, const std::vector<Axis>& axes) {
  const auto baseline = reader.text(table, "table", "baseline", false);
  if (!baseline) return;
  std::vector<std::string> labels;
  for (const Axis& axis : axes) {
    if (axis.role != "row") continue;
    for (const Point& point : axis.points) labels.push_back(point.label);
  }
  if (labels.empty()) {
    reader.problem("table.baseline", "found " + json_quoted(*baseline) + ", and no axis has the role \"row\"; give one that role, or leave the baseline out");
    return;
  }
  if (std::find(labels.begin(), labels.end(), *baseline) != labels.end()) return;
  const std::optional<std::string> meant = nearest(*baseline, labels);
  reader.problem("table.baseline", "found " + json_quoted(*baseline) +
                                       ", expected the label of a row: " + quoted_list(labels) +
                                       (meant ? ", did you mean " + json_quoted(*meant) + "?" : ""));
}

/// There is one test so far; a file may say which, so that it is known by name.
void read_test(Reader& reader, const Json& table) {
  const Json* test = table.find("test");
  if (test == nullptr || !reader.object(*test, "table.test")) return;
  reader.keys(*test, "table.test", {"name", "correct", "family"});
  reader.choice(*test, "table.test", "name", {"sign_flip"}, false);
  reader.choice(*test, "table.test", "correct", {"holm"}, false);
  reader.choice(*test, "table.test", "family", {"rows x columns at primary"}, false);
}

void check_slice(Document& document, const Json* slice, const std::string& path,
                 const std::vector<std::int64_t>& known, bool single, const std::string& split, const std::string& what) {
  if (!is_slice(*slice)) return;  // told already
  if (slice->is_string()) {
    if (!single) document.problem(path, "found \"all\", but " + split + " has several " + what + "s in some cell; expected one of them");
    return;
  }
  if (std::find(known.begin(), known.end(), slice->as_integer()) != known.end()) return;
  std::string expected;
  for (const std::int64_t value : known) expected += (expected.empty() ? "" : ", ") + std::to_string(value);
  document.problem(path, "found " + slice->canonical() + ", expected a " + what + " that " + split +
                             " has in every cell: " + (expected.empty() ? "there is none" : expected));
}

/// Checks a slice of `metric` of `split`.
void check_slice(Document& document, const Json* slice, const std::string& path, const KnownSlices& known, const Json* metric,
                 const std::string& split) {
  const bool valid = split == "valid";
  if (metric != nullptr && metric->is_string() && metric->as_string().starts_with("position_"))
    check_slice(document, slice, path, valid ? known.valid_positions : known.test_positions, false, split, "range end");
  else
    check_slice(document, slice, path, valid ? known.valid : known.test, valid ? known.single_valid : known.single_test, split, "length");
}

}  // namespace

Json read_table_section(Document& document, const std::vector<Axis>& axes) {
  Reader reader(document);
  const Json* found = reader.member(document.value(), "", "table", true);
  if (found == nullptr || !reader.object(*found, "table")) return Json::object();
  Json table = *found;
  reader.keys(table, "table", {"select", "report", "primary", "solved_at", "baseline", "test", "averages"});
  const auto select = std::find_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.role == "select"; });
  if (table.find("select") != nullptr) {
    read_select(reader, table);
  } else if (select != axes.end()) {
    reader.problem("table", "missing \"select\": the axis " + json_quoted(select->name) +
                                " is chosen, say on which split, metric and slice");
  }
  read_report(reader, table);
  read_primary(reader, table);
  read_solved_at(reader, table);
  read_baseline(reader, table, axes);
  read_test(reader, table);
  if (const Json::Array* averages = reader.list(table, "table", "averages", false); averages && !averages->empty()) {
    reader.problem("table.averages", "not supported yet: give the axis to average over the role \"average\"");
  }
  return table;
}

void check_slices(Document& document, const KnownSlices& known) {
  const Json* table = document.value().find("table");
  if (table == nullptr || !table->is_object()) return;
  if (const Json* slice = table->at_path("select.slice")) {
    check_slice(document, slice, "table.select.slice", known, table->at_path("select.metric"), "valid");
  }
  const Json* report = table->find("report");
  if (report == nullptr || !report->is_array()) return;
  for (std::size_t i = 0; i < report->as_array().size(); ++i) {
    const Json& entry = report->as_array()[i];
    const Json *slices = entry.find("slices"), *split = entry.find("split");
    if (slices == nullptr || !slices->is_array() || split == nullptr) continue;
    const std::string of_split = *split == Json("valid") ? "valid" : "test";
    for (std::size_t j = 0; j < slices->as_array().size(); ++j) {
      check_slice(document, &slices->as_array()[j], element(element("table.report", i) + ".slices", j), known,
                  entry.find("metric"), of_split);
    }
  }
}

}  // namespace phasor::sweeps
