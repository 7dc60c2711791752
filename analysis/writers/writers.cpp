#include <algorithm>
#include <cstddef>

#include "analysis/text.h"
#include "analysis/writers/grid.h"
#include "analysis/writers/human.h"
#include "core/spec/json.h"

namespace phasor::analysis {
namespace {

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string text = "\"";
  for (const char c : field) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + "\"";
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string text;
  for (std::size_t i = 0; i < fields.size(); ++i) text += (i == 0 ? "" : ",") + quoted(fields[i]);
  return text + "\n";
}

std::string pipe_line(const std::vector<std::string>& fields) {
  std::string text = "|";
  for (const std::string& field : fields) {
    text += ' ';
    for (const char c : field) {
      if (c == '|' || c == '\\') text += '\\';
      text += c == '\n' || c == '\r' ? ' ' : c;
    }
    text += " |";
  }
  return text + "\n";
}

std::string tabular_line(const std::vector<std::string>& fields) {
  std::string text;
  for (std::size_t i = 0; i < fields.size(); ++i) text += (i == 0 ? "" : " & ") + fields[i];
  return text + " \\\\\n";
}

/// Our digits are JSON's; what JSON has no number for is text.
std::string json_number(const std::string& field) {
  if (field.empty() || field == not_available) return "null";
  return field == "nan" || field == "inf" || field == "-inf" ? json_quoted(field) : field;
}

}  // namespace

std::string csv(const Grid& grid) {
  std::string text = csv_line(grid.heads);
  for (const auto& line : grid.lines) text += csv_line(line);
  return text;
}

std::string markdown(const Grid& grid) {
  std::string text = pipe_line(grid.heads) + "|";
  for (std::size_t i = 0; i < grid.heads.size(); ++i) text += " --- |";
  text += "\n";
  for (const auto& line : grid.lines) text += pipe_line(line);
  return text;
}

std::string latex(const Grid& grid) {
  std::string text = "\\begin{tabular}{" + std::string(grid.heads.size(), 'l') + "}\n\\toprule\n" + tabular_line(grid.heads) + "\\midrule\n";
  for (const auto& line : grid.lines) text += tabular_line(line);
  return text + "\\bottomrule\n\\end{tabular}\n";
}

Grid latex_escaped(Grid grid) {
  for (std::string& head : grid.heads) head = latex_escaped(head);
  for (std::vector<std::string>& line : grid.lines) {
    for (std::string& field : line) field = latex_escaped(field);
  }
  return grid;
}

std::string json(const Grid& grid) {
  std::vector<bool> numeric;
  for (const std::string& head : grid.heads) numeric.push_back(grid.numeric.contains(head));
  std::string text = "[";
  for (std::size_t i = 0; i < grid.lines.size(); ++i) {
    text += i == 0 ? "\n  {" : ",\n  {";
    for (std::size_t k = 0; k < grid.heads.size(); ++k) {
      const std::string& field = grid.lines[i][k];
      text += (k == 0 ? "" : ", ") + json_quoted(grid.heads[k]) + ": " + (numeric[k] ? json_number(field) : json_quoted(field));
    }
    text += "}";
  }
  return text + "\n]";
}

std::string aligned(const Grid& grid) {
  std::vector<std::size_t> widths;
  for (const std::string& head : grid.heads) widths.push_back(width_of(head));
  for (const auto& line : grid.lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string text;
  const auto add = [&](const std::vector<std::string>& fields) {
    std::string line;
    for (std::size_t i = 0; i < fields.size(); ++i) line += padded(fields[i], widths[i]) + "   ";
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add(grid.heads);
  for (const auto& line : grid.lines) add(line);
  return text;
}

std::string terminal_notes(const Footnotes& notes) {
  std::size_t width = 0;
  for (const auto& [head, note] : notes) width = std::max(width, width_of(head));
  std::string text;
  for (const auto& [head, note] : notes) text += padded(head, width) + "  " + note + "\n";
  return text;
}

std::string markdown_notes(const Footnotes& notes) {
  std::string text;
  for (const auto& [head, note] : notes) {
    text += head.empty() ? "  - " + note + "\n" : "- **" + (head == "*" ? "\\*" : head) + "**: " + note + "\n";
  }
  return text;
}

std::string latex_notes(const Footnotes& notes) {
  std::string text = "\\begin{itemize}\n";
  for (const auto& [head, note] : notes) {
    text += "\\item" + (head.empty() ? std::string() : "[" + latex_escaped(head) + "]") + " " + latex_escaped(note) + "\n";
  }
  return text + "\\end{itemize}\n";
}

std::string json_of(const std::string& name, const std::string& title, const Grid& grid, const Footnotes& notes) {
  std::string text = "{\n\"name\": " + json_quoted(name) + ",\n\"title\": " + json_quoted(title) + ",\n\"lines\": " + json(grid) + ",\n\"notes\": [";
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const auto& [head, note] = notes[i];
    text += std::string(i == 0 ? "" : ",") + "\n  {\"head\": " + json_quoted(head) + ", \"text\": " + json_quoted(note) + "}";
  }
  return text + "\n]\n}\n";
}

}  // namespace phasor::analysis
