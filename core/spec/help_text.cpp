#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "core/spec/problems.h"

namespace phasor {

namespace {

/// name, default, admissible values, help
using Row = std::array<std::string, 4>;

std::string admissible(const Field& field) {
  switch (field.kind) {
    case FieldKind::boolean:
      return "true or false";
    case FieldKind::choice:
      return quoted_list(field.choices, 99);
    case FieldKind::integer:
    case FieldKind::integers: {
      const std::string range = range_text(field.range);
      return std::string(field.kind == FieldKind::integer ? "integer" : "integers") +
             (range.empty() ? "" : " " + range);
    }
    case FieldKind::number:
    case FieldKind::numbers: {
      const std::string range = range_text(field.range);
      return std::string(field.kind == FieldKind::number ? "number" : "numbers") + (range.empty() ? "" : " " + range);
    }
    case FieldKind::text:
      return "text";
    default:
      return "";
  }
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

/// One line per field; lines of nested fields are already made and follow their row.
std::string table(const std::vector<Row>& rows, const std::vector<std::string>& nested, int indent) {
  constexpr std::size_t widest = 28;  // one long default does not push the help of all others away
  std::array<std::size_t, 3> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], std::min(row[i].size(), widest));
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] > 0) line += padded(rows[r][i], widths[i]) + "  ";
    }
    line += rows[r][3];
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n' + nested[r];
  }
  return text;
}

}  // namespace

std::string help_text(const FieldList& fields, int indent) {
  std::vector<Row> rows;
  std::vector<std::string> nested;
  for (const Field& field : fields.all()) {
    std::string below;
    std::string initial = field.initial->is_null() ? "not set" : field.initial->canonical();
    if (field.kind == FieldKind::object) {
      initial.clear();
      below = help_text(*field.members, indent + 2);
    } else if (field.kind == FieldKind::named) {
      initial = field.initial_name.empty() ? "" : '"' + field.initial_name + '"';
      for (const std::string& choice : field.choices) {
        below += std::string(static_cast<std::size_t>(indent) + 2, ' ') + "name \"" + choice + "\"\n";
        below += help_text(field.preview(choice), indent + 4);
      }
    }
    const std::string renamed = field.former.empty() ? "" : " (formerly " + field.former + ")";
    rows.push_back({field.name, std::move(initial), admissible(field), field.help + renamed});
    nested.push_back(std::move(below));
  }
  return table(rows, nested, indent);
}

}  // namespace phasor
