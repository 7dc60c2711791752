#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "analysis/text.h"
#include "analysis/writers/human.h"

namespace phasor::analysis {
namespace {

void add_list(Footnotes& notes, const std::string& head, const std::vector<std::string>& lines, const std::string& form) {
  constexpr std::size_t limit = 20;
  for (std::size_t i = 0; i < lines.size() && i < limit; ++i) notes.emplace_back(i == 0 ? head : "", lines[i]);
  if (lines.size() > limit) {
    notes.emplace_back("", "and " + grouped(static_cast<std::int64_t>(lines.size() - limit)) + " more" + form);
  }
}

/// Of the primary number of a cell: the only one that is shown to people.
bool any_flag(const Table& table, const std::string& ending) {
  const std::size_t primary = primary_of(table);
  for (const Cell& cell : table.cells) {
    for (const std::string& flag : cell.numbers[primary].flags) {
      if (flag.ends_with(ending)) return true;
    }
  }
  return false;
}

bool any_difference(const Table& table) {
  const std::size_t primary = primary_of(table);
  for (const Cell& cell : table.cells) {
    if (cell.numbers[primary].differs()) return true;
  }
  return false;
}

/// ".0469", ".25", "1"
std::string probability(double p) {
  std::string text = digits(p);
  if (text.find('e') != std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return short_digits(text);
}

void add_test(Footnotes& notes, const Table& table) {
  if (!table.family || table.family->comparisons == 0) return;
  const Family& family = *table.family;
  std::string seeds = counted(family.most_pairs, "seed");
  if (family.least_pairs != family.most_pairs) seeds = grouped(family.least_pairs) + " to " + seeds;
  const std::string smallest = "the smallest possible p is " + probability(family.smallest_p) + ", " + probability(family.smallest_holm) + " after Holm";
  const std::string level = table.spec.baseline + " at p < " + probability(significance) + ": with " + seeds + " ";
  if (any_difference(table)) {
    notes.emplace_back("*", "differs from " + level + smallest);
  } else {
    const bool possible = family.smallest_holm < significance;
    notes.emplace_back("test", (possible ? "no row differs from " : "no row can differ from ") + level + smallest);
  }
  notes.emplace_back("", "paired sign-flip over common seeds, Holm over " + counted(family.comparisons, "comparison") + " (" + family_name + ")");
}

void add_marks(Footnotes& notes, const Table& table) {
  if (any_flag(table, "bimodal")) notes.emplace_back("b", "the seeds fall in two groups: read what is solved, not the mean");
  if (any_flag(table, "floor")) notes.emplace_back("f", "at the floor: no seed is more than .05 above guessing");
  if (any_flag(table, "_edge")) notes.emplace_back("e", "the choice is at an edge of its grid: widen it");
  if (any_flag(table, "tied")) notes.emplace_back("tN", "N values of the chosen axis tied on the selection metric");
  if (any_flag(table, "parameters")) {
    notes.emplace_back("p", "more than 5 % more parameters than the smallest row of the column");
  }
  if (any_flag(table, "budget")) notes.emplace_back("u", "more trials spent on the choice than in another row of the column");
  if (any_flag(table, "settings_excluded")) notes.emplace_back("x", "averaged over fewer settings: some are excluded");
}

std::string names_of(const Table& table, const std::string& role) {
  std::vector<std::string> names;
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role == role) names.push_back(axis.name);
  }
  return join(names, ", ");
}

void add_selection(Footnotes& notes, const Table& table) {
  const std::string selects = names_of(table, "select");
  if (selects.empty()) return;
  const SelectRule& rule = *table.spec.select;
  std::string ties;
  for (const Tie& tie : rule.ties) ties += described(tie.series) + ", ";
  std::string text = "chosen per cell on " + described(rule.series) + ", " + to_text(rule.at) + ", " + to_text(rule.direction) + " the mean; ties: " + ties + "lowest";
  if (const std::string averages = names_of(table, "average"); !averages.empty()) {
    text += "; for each " + averages + " by itself";
  }
  notes.emplace_back(selects, text);
  if (table.confirms) {
    notes.emplace_back("seeds", "chosen on " + rule.series.split + " of " + names_of(table, "replicate") + " " +
                                    join(selection_replicates(table.axes), ", ") + "; reported on " + table.spec.primary.split +
                                    " of " + grouped(table.replicates) + " fresh ones, which chose nothing");
    return;
  }
  notes.emplace_back("seeds", "chosen on " + rule.series.split + " of the same seeds that are reported on " +
                                  table.spec.primary.split + ": the means are biased upward");
}

void add_averages(Footnotes& notes, const Table& table) {
  const std::string averages = names_of(table, "average");
  if (averages.empty()) return;
  notes.emplace_back("averages", "over " + averages + " within each replicate first, then mean and sd over replicates");
}

std::vector<std::string> not_eligible(const Table& table) {
  std::vector<std::string> lines;
  std::vector<std::string> heads;
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role == "select") heads.push_back(head_of(axis));
  }
  if (heads.empty()) return lines;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      for (const Setting& setting : table.cell(row, column).settings) {
        for (const Candidate& candidate : setting.candidates) {
          if (candidate.counts.whole()) continue;
          std::vector<std::string> place = table.rows[row];
          place.insert(place.end(), table.columns[column].begin(), table.columns[column].end());
          place.insert(place.end(), setting.labels.begin(), setting.labels.end());
          for (std::size_t i = 0; i < heads.size(); ++i) place.push_back(heads[i] + " " + candidate.labels[i]);
          const Counts& counts = candidate.counts;
          lines.push_back(join(place, " / ") + ": n=" + grouped(counts.finite) + " of " + grouped(counts.expected) +
                          ", diverged " + grouped(counts.diverged) + ", failed " + grouped(counts.failed) +
                          ", missing " + grouped(counts.missing));
        }
      }
    }
  }
  return lines;
}

std::vector<std::string> exclusions(const Table& table) {
  std::vector<std::string> lines;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      for (const Setting& setting : table.cell(row, column).settings) {
        if (setting.excluded.empty()) continue;
        std::vector<std::string> place = table.rows[row];
        place.insert(place.end(), table.columns[column].begin(), table.columns[column].end());
        place.insert(place.end(), setting.labels.begin(), setting.labels.end());
        lines.push_back(join(place, " / ") + ": " + setting.excluded);
      }
    }
  }
  return lines;
}

/// "; 18 a row", or every row's where they differ.
std::string budget_text(const Table& table) {
  std::vector<std::int64_t> spent(table.rows.size(), 0);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) spent[row] += table.cell(row, column).trials;
  }
  const auto [least, most] = std::minmax_element(spent.begin(), spent.end());
  if (spent.size() < 2) return "";
  if (*least == *most) return "; " + grouped(*most) + " a row";
  std::string text;
  for (std::size_t row = 0; row < spent.size(); ++row) {
    text += (row == 0 ? "; in rows: " : ", ") + join(table.rows[row], " / ") + " " + grouped(spent[row]);
  }
  return text;
}

}  // namespace

Footnotes footnotes(const Table& table) {
  Footnotes notes;
  add_test(notes, table);
  add_marks(notes, table);
  add_selection(notes, table);
  add_averages(notes, table);
  std::string trials = grouped(table.expected) + " expected, " + grouped(table.done) + " done, " +
                       grouped(table.diverged) + " diverged, " + grouped(table.failed) + " failed, " +
                       grouped(table.missing) + " missing";
  if (table.excluded > 0) trials += "; " + grouped(table.excluded) + " excluded";
  trials += budget_text(table);
  notes.emplace_back("trials", trials);
  add_list(notes, "", unfinished(table), ", all in --form trials");
  add_list(notes, "not eligible", not_eligible(table), ", all in --form candidates");
  add_list(notes, "excluded", exclusions(table), "");
  std::vector<std::string> damaged;
  for (const results::Damaged& file : table.damaged) damaged.push_back(file.file + ": " + file.reason);
  add_list(notes, "damaged", damaged, "");
  add_list(notes, "ignored", table.ignored, " that the sweep does not expect");
  add_list(notes, "data", table.data, "");
  add_list(notes, "build", table.build, "");
  add_list(notes, "cost", table.costs, "");
  if (table.spec.as_paper) notes.emplace_back("as paper", "perplexities are averaged themselves: their mean is not the perplexity of the mean loss");
  add_list(notes, "note", table.notes, "");
  return notes;
}

}  // namespace phasor::analysis
