#include "analysis/report/report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/charts/svg.h"
#include "analysis/figures/figures.h"
#include "analysis/report/data.h"
#include "analysis/report/resources.h"
#include "analysis/text.h"
#include "analysis/writers/cost_columns.h"
#include "analysis/writers/human.h"
#include "core/base/error.h"
#include "core/base/hash.h"

namespace phasor::analysis {
namespace {

/// Text with line breaks kept: escaped() makes spaces of them.
std::string lines_escaped(const std::string& text) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', from)) {
    out += escaped(text.substr(from, end - from)) + "\n";
    from = end + 1;
  }
  return out + escaped(text.substr(from));
}

/// "0.91 ± 0.11 2/3 e": a line may end before the sign and after the deviation, nowhere else.
std::string cell_text(const std::string& text) {
  const std::string sign = " ± ";
  const std::size_t found = text.find(sign);
  if (found == std::string::npos) return escaped(text);
  const std::size_t after = found + sign.size(), end = std::min(text.find(' ', after), text.size());
  const std::string rest = text.substr(std::min(text.find_first_not_of(' ', end), text.size()));
  std::string out = escaped(text.substr(0, found)) + " ±&nbsp;" + escaped(text.substr(after, end - after));
  if (!rest.empty()) out += " ";
  for (std::size_t at = 0; at < rest.size();) {
    const std::size_t space = std::min(rest.find(' ', at), rest.size());
    out += escaped(rest.substr(at, space - at)) + (space < rest.size() ? "&nbsp;" : "");
    at = space + 1;
  }
  return out;
}

/// Leads to the trials of a cell, or of a whole row: to those that are reported or to every candidate.
enum class Leads { reported, candidates };
std::string cell_button(std::size_t row, std::optional<std::size_t> column, const std::string& text,
                        Leads leads = Leads::reported) {
  if (text.empty()) return "";
  return "<button class=\"as-link\" data-cell=\"" + std::to_string(row) + "," +
         (column ? std::to_string(*column) : std::string("*")) + "\"" +
         (leads == Leads::candidates ? " data-candidates" : "") + ">" + cell_text(text) + "</button>";
}

std::string head_row(const std::vector<std::string>& heads) {
  std::string text = "<thead><tr>";
  for (const std::string& head : heads) text += "<th scope=\"col\">" + escaped(head) + "</th>";
  return text + "</tr></thead>\n";
}

/// What was chosen; leads to what it was chosen from.
std::string chosen_html(const Table& table) {
  const Grid chosen = chosen_grid(table);
  if (chosen.lines.empty()) return "";
  std::string text = "<div class=\"wide\"><table id=\"chosen\">" + head_row(chosen.heads) + "<tbody>\n";
  for (std::size_t row = 0; row < chosen.lines.size(); ++row) {
    const std::vector<std::string>& line = chosen.lines[row];
    const std::size_t labels = line.size() - table.columns.size();
    text += "<tr>";
    for (std::size_t i = 0; i < line.size(); ++i) {
      text += "<td>" + (i < labels ? escaped(line[i]) : cell_button(row, i - labels, line[i], Leads::candidates)) + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

/// The table as in every other form; numbers lead to their trials.
std::string table_html(const Table& table) {
  const Grid grid = human_grid(table, Dress::page);
  const std::size_t first = table.rows.empty() ? 0 : table.rows.front().size();
  std::string text = "<p class=\"title\">" + escaped(title(table, Dress::page)) +
                     ". A click on a number lists its trials, a click on a trial opens it.</p>\n";
  text += "<div class=\"wide\"><table id=\"table\">" + head_row(grid.heads) + "<tbody>\n";
  for (std::size_t row = 0; row < grid.lines.size(); ++row) {
    text += "<tr>";
    for (std::size_t i = 0; i < grid.lines[row].size(); ++i) {
      const std::string& field = grid.lines[row][i];
      const bool of_cell = i >= first && i < first + table.columns.size();
      const auto column = of_cell ? std::optional(i - first) : std::nullopt;
      text += "<td>" + (i < first ? escaped(field) : cell_button(row, column, field)) + "</td>";
    }
    text += "</tr>\n";
  }
  text += "</tbody></table></div>\n";
  text += chosen_html(table);
  if (const Grid costs = cost_grid(table); !costs.lines.empty()) {
    text += "<div class=\"wide\"><table>" + head_row(costs.heads) + "<tbody>\n";
    for (const std::vector<std::string>& line : costs.lines) {
      text += "<tr>";
      for (const std::string& field : line) text += "<td>" + escaped(field) + "</td>";
      text += "</tr>\n";
    }
    text += "</tbody></table></div>\n";
  }
  text += "<dl class=\"notes\">\n";
  for (const auto& [head, note] : footnotes(table))
    text += "<dt>" + escaped(head) + "</dt><dd>" + escaped(note) + "</dd>\n";
  return text + "</dl>\n";
}

/// Every reported number with its statistics; the whole long form is one command away.
std::string numbers_html(const Table& table) {
  constexpr std::size_t most = 2000;
  std::vector<std::string> heads;
  for (const char* role : {"row", "column"}) {
    for (const results::ManifestAxis& axis : table.axes) {
      if (axis.role == role) heads.push_back(axis.name);
    }
  }
  heads.insert(heads.end(), {"reported", "mean", "sd", "median", "lowest", "highest", "n of expected", "flags"});
  std::string text = "<details><summary>Every reported number</summary>\n<div class=\"wide\"><table id=\"numbers\">" +
                     head_row(heads) + "<tbody>\n";
  std::size_t lines = 0;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      for (const Number& number : table.cell(row, column).numbers) {
        if (++lines > most) continue;
        std::vector<std::string> fields = table.rows[row];
        fields.insert(fields.end(), table.columns[column].begin(), table.columns[column].end());
        fields.push_back(to_text(number.series));
        const Statistics& s = number.statistics;
        text += "<tr>";
        for (const std::string& field : fields) text += "<td>" + escaped(field) + "</td>";
        text += "<td>" + cell_button(row, column, s.mean ? digits(s.mean) : "n/a") + "</td>";
        for (const auto& value : {s.sd, s.median, s.min, s.max}) text += "<td>" + digits(value) + "</td>";
        text += "<td>" + std::to_string(number.counts.finite) + " of " + std::to_string(number.counts.expected) +
                "</td><td>" + escaped(join(number.flags, ", ")) + "</td></tr>\n";
      }
    }
  }
  text += "</tbody></table></div>\n";
  if (lines > most)
    text += "<p>The first " + grouped(most) + " of " + grouped(static_cast<std::int64_t>(lines)) +
            "; <code>phasor table --form long</code> has all.</p>\n";
  return text + "</details>\n";
}

std::string figures_html(const std::vector<Figure>& figures) {
  std::string text;
  for (const Figure& figure : figures) {
    text += "<figure id=\"" + escaped(figure.name) + "\">\n" + figure.svg + "<figcaption><b>" + escaped(figure.title) +
            ".</b> " + escaped(figure.caption) +
            "<button class=\"as-link save\">SVG</button></figcaption>\n</figure>\n";
  }
  if (text.empty()) return "<p>No trial has ended well yet: there is nothing to draw.</p>\n";
  return "<p class=\"title\">A click on a name hides its series, a drag zooms, a double click brings all back.</p>\n" +
         text;
}

std::string facts_line(const results::Manifest& manifest, const Table& table) {
  std::vector<std::string> parts;
  for (const results::ManifestAxis& axis : manifest.axes)
    parts.push_back(std::to_string(axis.labels.size()) + " " + axis.name);
  std::string text = escaped(join(parts, " × ")) + " &ensp; <b>" + grouped(table.expected) + "</b> trials, <b>" +
                     grouped(table.done) + "</b> done";
  for (const auto& [count, word] : {std::pair(table.diverged, "diverged"), std::pair(table.failed, "failed"),
                                    std::pair(table.missing, "missing")}) {
    if (count > 0) text += std::string(", <b class=\"bad\">") + grouped(count) + "</b> " + word;
  }
  return text;
}

/// Facts of all trials that ended: one value, or how many have which.
std::string facts_html(const Frame& frame, bool data) {
  std::map<std::string, std::map<std::string, std::int64_t>> seen;
  std::int64_t records = 0;
  for (const FrameRow& row : frame.rows) {
    if (!row.has_record()) continue;
    ++records;
    for (const auto& [name, value] : row.provenance) {
      if (name.starts_with("data.") == data && name != "command") ++seen[name][value];
    }
  }
  if (seen.empty()) return "<p>No trial has a record yet.</p>\n";
  std::string text = "<div class=\"wide\"><table><tbody>\n";
  for (const auto& [name, values] : seen) {
    text += "<tr><td>" + escaped(name) + "</td><td class=\"hash\">";
    std::size_t listed = 0;
    for (const auto& [value, count] : values) {
      if (++listed > 6) break;
      text += (listed == 1 ? "" : "<br>") + escaped(value);
      if (count < records) text += " (" + counted(count, "trial") + ")";
    }
    if (values.size() > 6) text += "<br>and " + std::to_string(values.size() - 6) + " more, each under its trial";
    text += "</td></tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string hygiene_html(const Frame& frame, const Table& table) {
  std::string text = "<h2 id=\"hygiene\">Data hygiene</h2>\n<dl class=\"notes\">\n";
  for (const std::string& note : table.data) text += "<dt>overlap</dt><dd>" + escaped(note) + "</dd>\n";
  text += "<dt>choice</dt><dd>" +
          escaped(table.confirms      ? "values were chosen on other seeds than are reported"
                  : table.spec.select ? "values were chosen on " + table.spec.select->series.split +
                                            " of the seeds that are reported on " + table.spec.primary.split +
                                            ": the means are biased upward"
                                      : "nothing was chosen") +
          "</dd>\n";
  for (const std::string& note : table.build) text += "<dt>build</dt><dd>" + escaped(note) + "</dd>\n";
  return text + "</dl>\n<h3>Evaluation data, by content</h3>\n" + facts_html(frame, true);
}

std::string rerun_html(const results::Manifest& manifest, const Frame& frame, const ReportOptions& options) {
  std::set<std::string> commits;
  for (const FrameRow& row : frame.rows) {
    if (const std::string commit = provenance_of(row, "commit"); !commit.empty()) commits.insert(commit);
  }
  std::string text = "<h2 id=\"rerun\">How to rerun</h2>\n<pre>";
  for (const std::string& commit : commits)
    text += escaped("git checkout " + commit + (commits.size() > 1 ? "   # of some trials" : "")) + "\n";
  text +=
      lines_escaped("./run                                # builds\nphasor sweep sweeps/" + manifest.name + ".json --out " +
              options.folder + "   # runs what is missing; another folder runs all\nphasor table " + options.folder +
              "\nphasor report " + options.folder + " --out report.html") +
      "</pre>\n";
  text +=
      "<p>Each trial above has its own command, and its whole spec, which can be saved and run from this page alone. "
      "On the same build and processor model a rerun gives the same bits.</p>\n";
  if (!manifest.base.is_null()) {
    text += "<details><summary>The base experiment, every default written out</summary><pre>" +
            lines_escaped(manifest.base.pretty()) + "</pre></details>\n";
  }
  text += "<details><summary>The table section of the sweep</summary><pre>" + lines_escaped(manifest.table.pretty()) +
          "</pre></details>\n";
  return text;
}

/// A table without numbers, for a page that says why there is none: its trials are listed all the same.
Table bare_table(const results::Manifest& manifest, const Frame& frame) {
  Table table;
  table.name = manifest.name;
  table.axes = manifest.axes;
  for (const FrameRow& row : frame.rows) {
    TrialLine line;
    line.id = row.id;
    line.name = name_of(frame.axes, row.at);
    line.message = row.message;
    line.at = row.at;
    line.status = row.status;
    line.fresh = results::is_fresh(frame.axes, row.at);
    table.trials.push_back(std::move(line));
  }
  return table;
}

/// What stands in a script element must not end it.
std::string safe_in_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

Report make_report(const results::Manifest& manifest, const results::Folder& folder, const ReportOptions& options) {
  const Frame frame = flatten(manifest, folder);
  std::optional<Table> made;
  std::string refusal;
  try {
    made = make_table(manifest, folder, {.allow_mixed = options.allow_mixed, .costs = options.costs});
  } catch (const UserError& error) {
    if (!options.tolerant) throw;
    refusal = error.what();
  }
  const Table table = made ? std::move(*made) : bare_table(manifest, frame);
  Report report;
  report.name = manifest.name;
  report.top = "<h1>" + escaped(manifest.name) + "</h1>\n";
  if (!manifest.note.empty()) report.top += "<p class=\"question\">" + escaped(manifest.note) + "</p>\n";
  if (!options.state.empty())
    report.top += "<p class=\"facts\"><b id=\"live-state\">live</b> &ensp; " + escaped(options.state) + "</p>\n";
  if (refusal.empty()) report.top += "<p class=\"facts\">" + facts_line(manifest, table) + "</p>\n";
  report.top +=
      "<nav><a href=\"#results\">Table</a><a href=\"#figures\">Figures</a><a href=\"#trials\">Trials</a><a "
      "href=\"#hygiene\">Data hygiene</a>"
      "<a href=\"#provenance\">Provenance</a><a href=\"#rerun\">How to rerun</a></nav>\n<h2 "
      "id=\"results\">Table</h2>\n";
  if (refusal.empty()) {
    report.top += table_html(table) + numbers_html(table) + "<h2 id=\"figures\">Figures</h2>\n" +
                  figures_html(figures({frame, table, folder}));
    report.bottom = hygiene_html(frame, table);
  } else {
    report.top += "<p class=\"error\">" + escaped("no table can be made: " + refusal) + "</p>\n";
  }
  report.bottom +=
      "<h2 id=\"provenance\">Provenance</h2>\n" + facts_html(frame, false) + rerun_html(manifest, frame, options);
  report.data = report_data(manifest, frame, table, folder, options);
  ContentHash hash;
  for (const std::string* part : {&report.top, &report.bottom, &report.data}) hash.update_text(*part);
  report.version = hash.hex();
  report.data += ",\"version\":" + json_quoted(report.version) + "}";
  return report;
}

std::string report_page(const Report& report, bool live) {
  const std::map<std::string, std::string> parts = {{"title", escaped(report.name)},
                                                    {"css", report_css},
                                                    {"js", report_js},
                                                    {"top", report.top},
                                                    {"bottom", report.bottom},
                                                    {"data", safe_in_script(report.data)},
                                                    {"live", live ? "yes" : "no"}};
  const std::string page = report_html;
  std::string out;
  std::size_t from = 0;
  for (std::size_t open = page.find("{{"); open != std::string::npos; open = page.find("{{", from)) {
    const std::size_t close = page.find("}}", open);
    out += page.substr(from, open - from) + parts.at(page.substr(open + 2, close - open - 2));
    from = close + 2;
  }
  return out + page.substr(from);
}

std::string report_news(const Report& report) {
  return "{\"top\":" + json_quoted(report.top) + ",\"bottom\":" + json_quoted(report.bottom) +
         ",\"data\":" + report.data + "}";
}

}  // namespace phasor::analysis
