#pragma once

#include <string>
#include <vector>

namespace phasor::analysis {

enum class AxisKind { linear, log10, log2 };
const char* to_text(AxisKind kind);  // "linear", "log10", "log2"

struct Tick {
  double value = 0.0;
  std::string label = {};
};

/// One axis. `low` and `high` are its ends; where both are 0 they follow from the values.
struct ChartAxis {
  std::string label = {};
  AxisKind kind = AxisKind::linear;
  double low = 0.0, high = 0.0;
  std::vector<double> at = {};  // where ticks are wanted: the values of a grid; by itself when empty
  bool whole = false;           // ticks at whole numbers only: lengths, steps

  bool fits(double value) const;     // finite, and above zero on a logarithmic axis
  double place(double value) const;  // 0 at `low`, 1 at `high`
};

/// Sets the ends of an axis from values when they are not given: a linear one to round numbers, a logarithmic one with
/// a little room; one value only gets room on both sides.
void span_axis(ChartAxis& axis, const std::vector<double>& values);

/// Ticks within the ends: at the wanted values, or about `count` round ones.
std::vector<Tick> ticks_of(const ChartAxis& axis, int count);

/// As on an axis: "0.25", "12,000", "3×10⁻⁴".
std::string tick_text(double value);

}  // namespace phasor::analysis
