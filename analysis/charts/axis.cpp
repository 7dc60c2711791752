#include "analysis/charts/axis.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "analysis/text.h"
#include "core/spec/json.h"

namespace phasor::analysis {
namespace {

/// 1, 2 or 5 times a power of ten, so that about `count` of them make `span`.
double round_step(double span, int count) {
  const double rough = span / std::max(count, 1);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10.0 * power;
}

std::string superscript(int exponent) {
  static const char* const figures[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "⁻" : "";
  for (const char c : std::to_string(std::abs(exponent))) text += figures[c - '0'];
  return text;
}

std::vector<double> linear_ticks(const ChartAxis& axis, int count) {
  double step = round_step(axis.high - axis.low, count);
  if (axis.whole) step = std::max(1.0, std::round(step));
  std::vector<double> values;
  const auto first = static_cast<std::int64_t>(std::ceil(axis.low / step - 1e-9));
  const auto last = static_cast<std::int64_t>(std::floor(axis.high / step + 1e-9));
  // 3 * 0.1 is not 0.3: a multiple is divided where the step is a fraction, so that labels are short.
  const double inverse = std::round(1.0 / step);
  for (std::int64_t i = first; i <= last; ++i) {
    values.push_back(step < 1.0 ? static_cast<double>(i) / inverse : static_cast<double>(i) * step);
  }
  return values;
}

/// Powers of the base; of ten also 2 and 5 times them when there are few.
std::vector<double> log_ticks(const ChartAxis& axis, int count) {
  const double base = axis.kind == AxisKind::log2 ? 2.0 : 10.0;
  const auto exponent = [&](double value) { return std::log(value) / std::log(base); };
  const int first = static_cast<int>(std::floor(exponent(axis.low) + 1e-9));
  const int last = static_cast<int>(std::ceil(exponent(axis.high) - 1e-9));
  const int stride = std::max(1, (last - first + count) / std::max(count, 1) - 1);
  std::vector<double> factors = {1.0};
  if (base == 10.0 && axis.high < 100.0 * axis.low) factors = {1.0, 2.0, 5.0};
  std::vector<double> values;
  for (int i = first; i <= last; i += stride) {
    for (const double factor : factors) {
      const double power = std::pow(base, std::abs(i));
      const double value = i < 0 ? factor / power : factor * power;
      if (value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9)) values.push_back(value);
    }
  }
  return values.size() < 2 ? std::vector<double>{axis.low, axis.high} : values;
}

/// "3×10⁻⁴", "10⁶"
std::string power_text(double value) {
  const double size = std::abs(value);
  const int exponent = static_cast<int>(std::floor(std::log10(size) + 1e-12));
  // Rounded to what is written: 0.0003 / 1e-4 is not 3.
  const double mantissa = std::round(size / std::pow(10.0, exponent) * 1e6) / 1e6;
  return std::string(value < 0 ? "−" : "") + (mantissa == 1.0 ? "" : shortest(mantissa) + "×") + "10" +
         superscript(exponent);
}

}  // namespace

const char* to_text(AxisKind kind) {
  return kind == AxisKind::linear ? "linear" : kind == AxisKind::log10 ? "log10" : "log2";
}

bool ChartAxis::fits(double value) const { return std::isfinite(value) && (kind == AxisKind::linear || value > 0.0); }

double ChartAxis::place(double value) const {
  if (kind == AxisKind::linear) return (value - low) / (high - low);
  return std::log(value / low) / std::log(high / low);
}

void span_axis(ChartAxis& axis, const std::vector<double>& values) {
  if (axis.low != 0.0 || axis.high != 0.0) return;
  double low = INFINITY, high = -INFINITY;
  for (const double value : values) {
    if (!axis.fits(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const bool linear = axis.kind == AxisKind::linear;
  if (low > high) low = linear ? 0.0 : 1.0, high = linear ? 1.0 : 10.0;  // nothing to show
  if (!linear) {
    const double room = low == high ? 2.0 : std::pow(high / low, 0.05);
    axis.low = low / room;
    axis.high = high * room;
    return;
  }
  if (low == high) {
    const double room = low == 0.0 ? 1.0 : std::abs(low) * 0.5;
    low -= room;
    high += room;
  }
  const double step = round_step(high - low, 5);
  axis.low = std::floor(low / step + 1e-9) * step;
  axis.high = std::ceil(high / step - 1e-9) * step;
}

std::vector<Tick> ticks_of(const ChartAxis& axis, int count) {
  std::vector<double> values;
  for (const double value : axis.at) {
    if (axis.fits(value) && axis.place(value) >= -1e-9 && axis.place(value) <= 1 + 1e-9) values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  if (values.empty()) values = axis.kind == AxisKind::linear ? linear_ticks(axis, count) : log_ticks(axis, count);
  std::vector<Tick> ticks;
  // One way of writing on an axis: 0.1 above 10⁻⁴ would be two.
  const bool powers = axis.kind == AxisKind::log10 && axis.at.empty() && values.front() < 1e-3;
  for (const double value : values)
    ticks.push_back({value, powers && value < 1.0 ? power_text(value) : tick_text(value)});
  return ticks;
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (value == 0.0) return "0";
  if (size < 1e-3 || size >= 1e6) return power_text(value);
  std::string text = value == std::round(value) && size >= 1e4 ? grouped(std::llround(value)) : shortest(value);
  if (text[0] == '-') text.replace(0, 1, "−");
  return text;
}

}  // namespace phasor::analysis
