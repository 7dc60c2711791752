#include "sweeps/random_axis.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/hash.h"
#include "core/base/philox.h"
#include "core/base/portable_math.h"
#include "core/base/text.h"

namespace phasor::sweeps {

namespace {

constexpr std::int64_t most_points = 10'000;
constexpr std::uint64_t most_attempts = 64;  // at a point that was not drawn before

const std::vector<std::string> kinds = {"log_uniform", "uniform", "choice"};

/// How the values of one path are drawn.
struct Draw {
  std::string path, kind, place;
  double low = 0.0, high = 0.0;
  Json::Array choices;
};

/// The nearest number with four significant digits. Also hides the last bits of what was computed.
double rounded(double value) {
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, 3);
  double number = 0.0;
  std::from_chars(text.data(), written.ptr, number);
  return number;
}

Json draw(const Draw& from, std::uint64_t seed, std::uint64_t index) {
  const RandomStream stream(seed, Purpose{hash64("sweep")}, hash64(from.path));
  if (from.kind == "choice") return from.choices[stream.below(index, from.choices.size())];
  const double share = stream.uniform(index);
  const bool logarithmic = from.kind == "log_uniform";
  const double low = logarithmic ? portable::log(from.low) : from.low;
  const double high = logarithmic ? portable::log(from.high) : from.high;
  const double value = std::fma(share, high - low, low);
  return std::clamp(rounded(logarithmic ? portable::exp(value) : value), from.low, from.high);
}

void read_limits(Reader& reader, const Json& limits, Draw& found) {
  const bool two = limits.is_array() && limits.as_array().size() == 2 && limits.as_array()[0].is_number() &&
                   limits.as_array()[1].is_number();
  if (!two) {
    reader.problem(found.place, found_text(limits) + ", expected the lowest and the highest number in a list, such as [1e-4, 1e-1]");
    return;
  }
  found.low = limits.as_array()[0].as_number();
  found.high = limits.as_array()[1].as_number();
  const std::string text = "found " + limits.canonical();
  if (found.low >= found.high) {
    reader.problem(found.place, text + ", expected the lower number first");
  } else if (found.kind == "log_uniform" && found.low <= 0.0) {
    reader.problem(found.place, text + ", expected numbers above 0: the draw is uniform in their logarithms");
  }
}

std::optional<Draw> read_draw(Reader& reader, const std::string& path, const Json& json, const std::string& place) {
  if (!reader.object(json, place)) return std::nullopt;
  reader.keys(json, place, kinds);
  if (json.as_object().size() != 1) {
    reader.problem(place, "expected one of " + quoted_list(kinds) + ", such as {\"log_uniform\": [1e-4, 1e-1]}");
    return std::nullopt;
  }
  const auto& [kind, what] = json.as_object().front();
  Draw found{path, kind, below(place, kind), 0.0, 0.0, {}};
  if (kind != "choice") {
    read_limits(reader, what, found);
  } else if (!what.is_array() || what.as_array().empty()) {
    reader.problem(found.place, found_text(what) + ", expected a list of values with at least one");
  } else {
    found.choices = what.as_array();
  }
  return found;
}

std::optional<std::int64_t> whole(Reader& reader, const Json& json, const std::string& place, const char* key, std::int64_t low,
                                  std::int64_t high) {
  const Json* value = reader.member(json, place, key, true);
  if (value == nullptr || reader.document().broken(below(place, key))) return std::nullopt;
  if (value->is_integer() && value->as_integer() >= low && value->as_integer() <= high) return value->as_integer();
  reader.problem(below(place, key), found_text(*value) + ", expected an integer " + std::to_string(low) + " to " + std::to_string(high));
  return std::nullopt;
}

/// "lr 0.001322, dim 32"; whole paths where the last names are the same.
std::string label_of(const std::vector<Draw>& draws, const Json::Array& values) {
  std::vector<std::string> names;
  for (const Draw& one : draws) names.push_back(one.path.substr(one.path.rfind('.') + 1));
  std::string label;
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const bool own = std::count(names.begin(), names.end(), names[i]) == 1;
    label += (label.empty() ? "" : ", ") + (own ? names[i] : draws[i].path) + " " + label_text(values[i]);
  }
  return label;
}

/// The values of point `index`, other than those of all points before.
std::optional<Json::Array> draw_point(const std::vector<Draw>& draws, std::uint64_t seed, std::uint64_t index,
                                      const std::vector<Json::Array>& earlier) {
  for (std::uint64_t attempt = 0; attempt < most_attempts; ++attempt) {
    Json::Array values;
    for (const Draw& one : draws) values.push_back(draw(one, seed, index * most_attempts + attempt));
    if (std::find(earlier.begin(), earlier.end(), values) == earlier.end()) return values;
  }
  return std::nullopt;
}

}  // namespace

void read_random(Reader& reader, const Json& json, Axis& axis) {
  const std::string place = below(axis.place, "random");
  const Json& random = *json.find("random");
  if (!reader.object(random, place)) return;
  reader.keys(random, place, {"count", "seed", "draw"});
  if (!axis.role.empty() && axis.role != "select") {
    reader.problem(below(axis.place, "role"), "found " + json_quoted(axis.role) + " with \"random\", expected \"select\": the best draw is chosen");
  }
  const auto count = whole(reader, random, place, "count", 1, most_points);
  const auto seed = whole(reader, random, place, "seed", 0, std::int64_t{1} << 53);
  const Json* from = reader.member(random, place, "draw", true);
  const std::string from_place = below(place, "draw");
  if (from == nullptr || !reader.object(*from, from_place)) return;
  if (from->as_object().empty()) reader.problem(from_place, "found no path, expected one such as \"optimizer.lr\"");
  const std::size_t mistakes = reader.document().problems().size();
  std::vector<Draw> draws;
  for (const auto& [path, how] : from->as_object()) {
    const std::string where = below(from_place, path);
    if (!reader.experiment_path(path, where)) continue;
    if (auto found = read_draw(reader, path, how, where)) draws.push_back(std::move(*found));
  }
  if (!count || !seed || draws.empty() || reader.document().problems().size() > mistakes) return;

  if (draws.size() == 1) axis.path = draws.front().path;
  std::vector<Json::Array> points;
  for (std::int64_t k = 0; k < *count; ++k) {
    std::optional<Json::Array> values = draw_point(draws, static_cast<std::uint64_t>(*seed), static_cast<std::uint64_t>(k), points);
    if (!values) {
      reader.problem(below(place, "count"), "found " + std::to_string(*count) + ", but " + std::to_string(k) +
                                                " different points were all that could be drawn, expected fewer");
      return;
    }
    const bool single = draws.size() == 1;
    Point point{single ? label_text(values->front()) : label_of(draws, *values), {}, element(place, static_cast<std::size_t>(k)), {}};
    for (std::size_t i = 0; i < draws.size(); ++i) {
      point.settings.push_back({draws[i].path, (*values)[i], draws[i].place});
      if (!single) point.value[draws[i].path] = (*values)[i];
    }
    if (single) point.value = values->front();
    axis.points.push_back(std::move(point));
    points.push_back(std::move(*values));
  }
}

}  // namespace phasor::sweeps
