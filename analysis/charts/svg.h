#pragma once

#include <cstddef>
#include <string>

namespace phasor::analysis {

/// Text for XML and HTML, also inside attributes: markup is escaped, control characters become spaces, and bytes that
/// are not UTF-8 become U+FFFD.
std::string escaped(const std::string& text);

/// A coordinate: at most two decimals, no trailing zeros.
std::string coordinate(double value);

/// About how wide `text` is in Helvetica or Arial of this size: enough to place labels.
double text_width(const std::string& text, double size);

/// `text` cut with an ellipsis so that it is no wider.
std::string fitted(const std::string& text, double width, double size);

/// A marker at (x, y): circle, square, triangle, diamond, ... by index; with `tip` as its title where that is not
/// empty.
std::string marker(std::size_t index, double x, double y, double radius, const std::string& attributes,
                   const std::string& tip = "");
inline constexpr std::size_t marker_count = 6;

struct TextStyle {
  double size = 11.0;
  const char* anchor = "start";
  const char* fill = "#222";
  bool bold = false;
  const char* classes = "";
};
std::string text_at(double x, double y, const std::string& text, const TextStyle& style = {});

/// The beginning of a document of this size; `attributes` go to the root element.
std::string svg_head(double width, double height, const std::string& id, const std::string& attributes = "");

}  // namespace phasor::analysis
