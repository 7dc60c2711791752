#include "analysis/report/data.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "analysis/selection/metric.h"
#include "analysis/text.h"

namespace phasor::analysis {
namespace {

/// For a page: every digit, and texts for what JSON cannot say.
std::string number(double value) { return std::isfinite(value) ? shortest(value) : "\"" + shortest(value) + "\""; }
std::string number(const std::optional<double>& value) { return value ? number(*value) : "null"; }

/// For a curve: five digits are more than a screen shows.
std::string curve_number(double value) {
  if (!std::isfinite(value)) return "null";
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 5);
  return std::string(buffer, result.ptr);
}

template <class Range, class Take>
std::string list(const Range& range, Take take) {
  std::string text = "[";
  for (const auto& one : range) text += (text.size() == 1 ? "" : ",") + std::string(take(one));
  return text + "]";
}

std::string texts(const std::vector<std::string>& range) {
  return list(range, [](const std::string& one) { return json_quoted(one); });
}

std::string entries(const Commons::Entries& all) {
  std::string text = "{";
  for (const auto& [name, value] : all)
    text += (text.size() == 1 ? "" : ",") + json_quoted(name) + ":" + json_quoted(value);
  return text + "}";
}

std::string differences(const std::vector<std::pair<std::string, std::optional<std::string>>>& all) {
  std::string text = "{";
  for (const auto& [name, value] : all)
    text += (text.size() == 1 ? "" : ",") + json_quoted(name) + ":" + (value ? json_quoted(*value) : "null");
  return text + "}";
}

/// Of every span of steps the lowest and the highest, in order, so that no spike is lost; the first and the last
/// always.
std::vector<std::size_t> thinned(const std::vector<results::StepLog>& steps, std::size_t most) {
  std::vector<std::size_t> kept;
  if (steps.size() <= most) {
    for (std::size_t i = 0; i < steps.size(); ++i) kept.push_back(i);
    return kept;
  }
  const std::size_t spans = (most - 2) / 2;
  kept.push_back(0);
  for (std::size_t span = 0; span < spans; ++span) {
    const std::size_t first = 1 + span * (steps.size() - 2) / spans, last = 1 + (span + 1) * (steps.size() - 2) / spans;
    if (first == last) continue;
    const auto less = [](const results::StepLog& a, const results::StepLog& b) {
      return std::isfinite(b.loss) ? a.loss < b.loss : std::isfinite(a.loss);  // what is not finite is the highest
    };
    const auto from = steps.begin() + static_cast<std::ptrdiff_t>(first),
               to = steps.begin() + static_cast<std::ptrdiff_t>(last);
    const auto [low, high] = std::minmax_element(from, to, less);
    const auto a = static_cast<std::size_t>(low - steps.begin()), b = static_cast<std::size_t>(high - steps.begin());
    kept.push_back(std::min(a, b));
    if (a != b) kept.push_back(std::max(a, b));
  }
  kept.push_back(steps.size() - 1);
  return kept;
}

class Writer {
 public:
  Writer(const results::Manifest& manifest, const Frame& frame, const Table& table, const results::Folder& folder,
         const ReportOptions& options)
      : manifest_(manifest), frame_(frame), table_(table), options_(options) {
    for (const results::TrialRecord& record : folder.records) records_[record.id] = &record;
    most_points_ = frame.rows.size() > 1000 ? 48 : 200;
  }
  std::string text();

 private:
  std::string axes() const;
  std::string columns() const;
  std::string trial(std::size_t index);
  std::string curve(const results::TrialRecord& record) const;
  void add_evals(const FrameRow& row, std::string& text);
  std::string summary(const FrameRow& row) const;
  std::size_t series_of(const std::string& name);
  std::size_t grid_of(const std::string& grid);
  bool keeps_curve(const Series& series) const;

  const results::Manifest& manifest_;
  const Frame& frame_;
  const Table& table_;
  const ReportOptions& options_;
  std::map<std::string, const results::TrialRecord*> records_;
  std::map<std::string, std::size_t> series_, grids_;
  std::vector<std::string> series_names_, grid_texts_, summary_names_;
  std::optional<Commons> spec_, facts_;
  std::size_t most_points_ = 0;
};

Commons::Entries spec_entries(const FrameRow& row) {
  Commons::Entries all;
  for (const auto& [path, value] : row.columns) all.emplace_back(path, value.canonical());
  return all;
}

/// Sorted by name; a trial's own id in the command it was started with is left open.
Commons::Entries fact_entries(const FrameRow& row) {
  Commons::Entries all = row.provenance;
  for (auto& [name, value] : all) {
    for (std::size_t at = value.find(row.id); name == "command" && at != std::string::npos;
         at = value.find(row.id, at + 1)) {
      value.replace(at, row.id.size(), "{id}");
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::size_t index_in(std::map<std::string, std::size_t>& known, std::vector<std::string>& names,
                     const std::string& name) {
  const auto [found, fresh] = known.emplace(name, names.size());
  if (fresh) names.push_back(name);
  return found->second;
}

std::size_t Writer::series_of(const std::string& name) { return index_in(series_, series_names_, name); }
std::size_t Writer::grid_of(const std::string& grid) { return index_in(grids_, grid_texts_, grid); }

std::string Writer::axes() const {
  return list(frame_.axes, [](const results::ManifestAxis& axis) {
    const bool numbers = !axis.values.empty() && std::all_of(axis.values.begin(), axis.values.end(),
                                                             [](const Json& v) { return v.is_number(); });
    return "{\"name\":" + json_quoted(axis.name) + ",\"role\":" + json_quoted(axis.role) +
           ",\"path\":" + json_quoted(axis.path) + ",\"numbers\":" + (numbers ? "true" : "false") +
           ",\"labels\":" + texts(axis.labels) + "}";
  });
}

/// Which reported numbers are columns of the list: those of the primary metric, the first six.
std::string Writer::columns() const {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < table_.spec.report.size() && shown.size() < 6; ++i) {
    const Series& series = table_.spec.report[i];
    if (series.metric == table_.spec.primary.metric && series.split == table_.spec.primary.split) shown.push_back(i);
  }
  return list(shown, [](std::size_t i) { return std::to_string(i); });
}

std::string Writer::curve(const results::TrialRecord& record) const {
  const std::vector<std::size_t> kept = thinned(record.steps, most_points_);
  std::int64_t before = 0;
  const std::string steps = list(kept, [&](std::size_t i) {
    const std::int64_t step = record.steps[i].step, difference = step - before;
    before = step;
    return std::to_string(difference);
  });
  const std::string losses = list(kept, [&](std::size_t i) { return curve_number(record.steps[i].loss); });
  return "[" + steps + "," + losses + "," +
         std::to_string(kept.size() < record.steps.size() ? record.steps.size() : 0) + "]";
}

/// Curves of what is reported and of what was chosen by, and of losses; of the others the last value only.
bool Writer::keeps_curve(const Series& series) const {
  if (table_.spec.select && series == table_.spec.select->series) return true;
  if (series.metric == "loss") return true;
  return std::find(table_.spec.report.begin(), table_.spec.report.end(), series) != table_.spec.report.end();
}

void Writer::add_evals(const FrameRow& row, std::string& text) {
  std::map<Series, std::map<std::int64_t, double>> by_series;
  for (const results::EvalPoint& point : row.evals)
    by_series[{point.split, point.metric, point.slice}][point.step] = point.value;
  std::string curves, last;
  for (const auto& [series, values] : by_series) {
    const std::size_t name = series_of(to_text(series));
    if (keeps_curve(series) && values.size() > 1) {
      const std::size_t grid = grid_of(list(values, [](const auto& v) { return std::to_string(v.first); }));
      curves += (curves.empty() ? "[" : ",[") + std::to_string(name) + "," + std::to_string(grid) + "," +
                list(values, [](const auto& v) { return curve_number(v.second); }) + "]";
    }
    last += (last.empty() ? "[" : ",[") + std::to_string(name) + "," + number(values.rbegin()->second) + "]";
  }
  if (!curves.empty()) text += ",\"x\":[" + curves + "]";
  // Every last value of many trials would be most of the page; the reported ones are there anyway.
  if (!last.empty() && frame_.rows.size() <= 2000) text += ",\"g\":[" + last + "]";
}

std::string Writer::summary(const FrameRow& row) const {
  const std::map<std::string, double> known(row.summary.begin(), row.summary.end());
  return list(summary_names_, [&](const std::string& name) {
    const auto found = known.find(name);
    return found == known.end()           ? std::string("null")
           : std::isfinite(found->second) ? curve_number(found->second)
                                          : number(found->second);
  });
}

std::string Writer::trial(std::size_t index) {
  const FrameRow& row = frame_.rows[index];
  const TrialLine& line = table_.trials[index];
  std::string text = "{\"i\":" + json_quoted(row.id) +
                     ",\"a\":" + list(row.at, [](std::int64_t at) { return std::to_string(at); }) +
                     ",\"s\":" + json_quoted(to_text(row.status)) +
                     ",\"v\":" + number(line.selected ? std::optional(line.selected->value) : std::nullopt) +
                     ",\"r\":" + list(line.reported, [](const std::optional<double>& value) { return number(value); }) +
                     ",\"t\":" + number(line.step_ms);
  if (!row.message.empty()) text += ",\"m\":" + json_quoted(row.message);
  if (line.chosen && line.fresh == table_.confirms && row.status != TrialStatus::excluded) text += ",\"c\":1";
  if (line.fresh) text += ",\"f\":1";
  if (row.parameters > 0) text += ",\"p\":" + std::to_string(row.parameters);
  if (row.has_record()) {
    text += ",\"d\":" + differences(spec_->own(spec_entries(row))) +
            ",\"e\":" + differences(facts_->own(fact_entries(row)));
    text += ",\"u\":" + summary(row);
    const auto record = records_.find(row.id);
    if (record != records_.end() && !record->second->steps.empty()) text += ",\"l\":" + curve(*record->second);
    add_evals(row, text);
  }
  if (options_.log && row.status != TrialStatus::excluded) {
    const TrialLog log = options_.log(manifest_.trials[index], row.status == TrialStatus::done);
    if (!log.link.empty() || !log.tail.empty())
      text += ",\"o\":[" + json_quoted(log.link) + "," + json_quoted(log.tail) + "]";
  }
  return text + "}";
}

std::string Writer::text() {
  std::vector<Commons::Entries> specs, facts;
  std::map<std::string, bool> names;
  for (const FrameRow& row : frame_.rows) {
    if (!row.has_record()) continue;
    specs.push_back(spec_entries(row));
    facts.push_back(fact_entries(row));
    for (const auto& [name, value] : row.summary) {
      if (name.find('.') == std::string::npos) names[name] = true;  // the others are of a split and a length
    }
  }
  for (const auto& [name, known] : names) summary_names_.push_back(name);
  spec_.emplace(specs);
  facts_.emplace(facts);
  specs.clear();
  facts.clear();
  std::string trials;
  for (std::size_t i = 0; i < frame_.rows.size(); ++i) trials += (i == 0 ? "\n" : ",\n") + trial(i);
  std::vector<std::string> reported;
  for (const Series& series : table_.spec.report) reported.push_back(to_text(series));
  std::string text =
      "{\"name\":" + json_quoted(manifest_.name) + ",\"folder\":" + json_quoted(options_.folder) +
      ",\"axes\":" + axes() + ",\"reported\":" + texts(reported) + ",\"columns\":" + columns() +
      ",\"selected\":" + (table_.spec.select ? json_quoted(to_text(table_.spec.select->series)) : "null") +
      ",\"summary\":" + texts(summary_names_) + ",\"spec\":" + entries(spec_->common()) +
      ",\"facts\":" + entries(facts_->common()) + ",\"series\":" + texts(series_names_) +
      ",\"grids\":" + list(grid_texts_, [](const std::string& grid) { return grid; }) + ",\"trials\":[" + trials + "]";
  return text;
}

}  // namespace

Commons::Commons(const std::vector<Entries>& all) {
  std::map<std::string, std::map<std::string, std::size_t>> counts;
  for (const Entries& one : all) {
    for (const auto& [name, value] : one) ++counts[name][value];
  }
  for (const auto& [name, values] : counts) {
    const auto most = std::max_element(values.begin(), values.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (2 * most->second > all.size()) common_.emplace_back(name, most->first);
  }
}

std::vector<std::pair<std::string, std::optional<std::string>>> Commons::own(const Entries& own) const {
  std::vector<std::pair<std::string, std::optional<std::string>>> found;
  auto common = common_.begin();
  auto mine = own.begin();
  while (common != common_.end() || mine != own.end()) {
    if (mine == own.end() || (common != common_.end() && common->first < mine->first)) {
      found.emplace_back((common++)->first, std::nullopt);
    } else if (common == common_.end() || mine->first < common->first) {
      found.emplace_back(*mine++);
    } else {
      if (mine->second != common->second) found.emplace_back(*mine);
      ++mine;
      ++common;
    }
  }
  return found;
}

std::string report_data(const results::Manifest& manifest, const Frame& frame, const Table& table,
                        const results::Folder& folder, const ReportOptions& options) {
  return Writer(manifest, frame, table, folder, options).text();
}

}  // namespace phasor::analysis
