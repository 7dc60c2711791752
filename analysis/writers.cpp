#include <algorithm>
#include <cstddef>

#include "analysis/grid.h"
#include "analysis/text.h"

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

}  // namespace phasor::analysis
