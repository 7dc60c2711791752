#include "analysis/charts/svg.h"

#include <charconv>
#include <cmath>
#include <cstdint>

#include "analysis/text.h"
#include "core/base/text.h"

namespace phasor::analysis {

std::string escaped(const std::string& text) {
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t good = find_bad_utf8(rest).value_or(rest.size());
    for (const char c : rest.substr(0, good)) {
      switch (c) {
        case '&':
          out += "&amp;";
          break;
        case '<':
          out += "&lt;";
          break;
        case '>':
          out += "&gt;";
          break;
        case '"':
          out += "&quot;";
          break;
        case '\'':
          out += "&#39;";
          break;
        default:
          out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
      }
    }
    if (good == rest.size()) break;
    append_utf8(out, 0xFFFD);
    rest.remove_prefix(good + 1);
  }
  return out;
}

std::string coordinate(double value) {
  if (!std::isfinite(value)) return "0";
  char buffer[400];
  const double rounded = std::round(value * 100.0) / 100.0 + 0.0;  // + 0: no "-0"
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, rounded, std::chars_format::fixed, 2);
  std::string text(buffer, result.ptr);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

double text_width(const std::string& text, double size) {
  double width = 0.0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) == 0x80U) continue;  // not the first of its character
    if (byte >= 0xE0U) {
      width += byte >= 0xE2U ? 0.42 : 0.6;  // superscripts, dashes
    } else if (std::string_view("ijl.,:;'|!()[] /ftIr-").find(c) != std::string_view::npos) {
      width += 0.3;
    } else if (std::string_view("mwMW%@").find(c) != std::string_view::npos) {
      width += 0.86;
    } else if (c >= 'A' && c <= 'Z') {
      width += 0.69;
    } else {
      width += 0.556;
    }
  }
  return width * size * 1.05;  // a substitute font may be wider
}

std::string fitted(const std::string& text, double width, double size) {
  if (text_width(text, size) <= width) return text;
  std::string cut = text;
  while (!cut.empty() && text_width(cut + "…", size) > width) {
    while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xC0U) == 0x80U) cut.pop_back();
    if (!cut.empty()) cut.pop_back();
  }
  return cut + "…";
}

std::string marker(std::size_t index, double x, double y, double radius, const std::string& attributes,
                   const std::string& tip) {
  const auto r = [&](double factor) { return coordinate(radius * factor); };
  const auto pair = [&](double u, double v) { return r(u) + " " + r(v); };
  std::string shape;
  switch (index % marker_count) {
    case 0:
      break;
    case 1:
      shape = "M" + pair(-.9, -.9) + "H" + r(.9) + "V" + r(.9) + "H" + r(-.9) + "Z";
      break;
    case 2:
      shape = "M" + pair(0, -1.2) + "L" + pair(1.1, .8) + "H" + r(-1.1) + "Z";
      break;
    case 3:
      shape = "M" + pair(0, -1.3) + "L" + pair(1.3, 0) + "L" + pair(0, 1.3) + "L" + pair(-1.3, 0) + "Z";
      break;
    case 4:
      shape = "M" + pair(0, 1.2) + "L" + pair(1.1, -.8) + "H" + r(-1.1) + "Z";
      break;
    default:
      shape = "M" + pair(-1.2, 0) + "L" + pair(-.4, -1.2) + "H" + r(.4) + "L" + pair(1.2, 0) + "L" + pair(.4, 1.2) +
              "H" + r(-.4) + "Z";
  }
  const std::string tag = shape.empty() ? "circle" : "path";
  return "<" + tag + (shape.empty() ? " r=\"" + r(1) : " d=\"" + shape) + "\" transform=\"translate(" + coordinate(x) +
         " " + coordinate(y) + ")\" " + attributes +
         (tip.empty() ? "/>\n" : "><title>" + escaped(tip) + "</title></" + tag + ">\n");
}

std::string text_at(double x, double y, const std::string& text, const TextStyle& style) {
  std::string out = "<text x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" font-size=\"" +
                    coordinate(style.size) + "\" fill=\"" + style.fill + "\"";
  if (std::string_view(style.anchor) != "start") out += std::string(" text-anchor=\"") + style.anchor + "\"";
  if (style.bold) out += " font-weight=\"600\"";
  if (style.classes[0] != '\0') out += std::string(" class=\"") + style.classes + "\"";
  return out + ">" + escaped(text) + "</text>\n";
}

std::string svg_head(double width, double height, const std::string& id, const std::string& attributes) {
  // 72 units to the inch of a page of 7.1 inches: what is 8 points there is 8 points in print.
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" id=\"" + escaped(id) + "\" viewBox=\"0 0 " +
         coordinate(width) + " " + coordinate(height) + "\" width=\"" + coordinate(width) + "\" height=\"" +
         coordinate(height) + "\" font-family=\"Helvetica, Arial, 'Liberation Sans', 'Nimbus Sans', sans-serif\"" +
         (attributes.empty() ? "" : " " + attributes) + ">\n";
}

}  // namespace phasor::analysis
