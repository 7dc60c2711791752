#include "results/costs.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "results/files.h"

namespace phasor::results {
namespace {

constexpr std::int64_t format_version = 1;
constexpr const char* file_name = "costs.json";

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw UserError(file + ": " + what + "; `phasor bench DIR --decode` writes it anew");
}

Json json_of(const std::optional<Timing>& timing) {
  if (!timing) return {};
  Json json = Json::object();
  json["median"] = timing->median;
  json["low"] = timing->low;
  json["high"] = timing->high;
  return json;
}

Json json_of(const std::optional<std::int64_t>& bytes) { return bytes ? Json(*bytes) : Json(); }

Json json_of(const MeasuredCost& cost) {
  Json json = Json::object();
  json["key"] = cost.key;
  json["trial"] = cost.trial;
  json["problem"] = cost.problem;
  json["rows"] = cost.rows;
  json["tokens"] = cost.tokens;
  json["context"] = cost.context;
  json["training_ms"] = json_of(cost.training_ms);
  json["prefill_ms"] = json_of(cost.prefill_ms);
  json["decode_ms"] = json_of(cost.decode_ms);
  json["state_bytes"] = json_of(cost.state_bytes);
  json["training_bytes"] = json_of(cost.training_bytes);
  json["decoding_bytes"] = json_of(cost.decoding_bytes);
  return json;
}

/// Members of an object of the file; what has another type is a UserError that names it.
class Members {
 public:
  Members(const std::string& file, const Json& object) : file_(file), object_(object) {
    if (!object.is_object()) refuse(file, std::string("found a ") + object.type_name() + ", expected an object");
  }
  std::string text(const char* name) const {
    const Json& value = member(name);
    if (!value.is_string()) wrong(name, value, "a string");
    return value.as_string();
  }
  std::int64_t integer(const char* name) const {
    const Json& value = member(name);
    if (!value.is_integer()) wrong(name, value, "a whole number");
    return value.as_integer();
  }
  std::optional<std::int64_t> maybe_integer(const char* name) const {
    return member(name).is_null() ? std::nullopt : std::optional(integer(name));
  }
  std::optional<Timing> timing(const char* name) const {
    const Json& value = member(name);
    if (value.is_null()) return std::nullopt;
    const Members members(file_, value);
    return Timing{members.number("median"), members.number("low"), members.number("high")};
  }

 private:
  double number(const char* name) const {
    const Json& value = member(name);
    if (!value.is_number()) wrong(name, value, "a number");
    return value.as_number();
  }
  const Json& member(const char* name) const {
    const Json* found = object_.find(name);
    if (found == nullptr) refuse(file_, std::string("no \"") + name + "\"");
    return *found;
  }
  [[noreturn]] void wrong(const char* name, const Json& value, const char* expected) const {
    refuse(file_, std::string(name) + ": found a " + value.type_name() + ", expected " + expected);
  }
  const std::string& file_;
  const Json& object_;
};

MeasuredCost cost_of(const std::string& file, const Json& json) {
  const Members members(file, json);
  MeasuredCost cost;
  cost.key = members.text("key");
  cost.trial = members.text("trial");
  cost.problem = members.text("problem");
  cost.rows = members.integer("rows");
  cost.tokens = members.integer("tokens");
  cost.context = members.integer("context");
  cost.training_ms = members.timing("training_ms");
  cost.prefill_ms = members.timing("prefill_ms");
  cost.decode_ms = members.timing("decode_ms");
  cost.state_bytes = members.maybe_integer("state_bytes");
  cost.training_bytes = members.maybe_integer("training_bytes");
  cost.decoding_bytes = members.maybe_integer("decoding_bytes");
  return cost;
}

}  // namespace

std::optional<Timing> timing_of(std::vector<double> seconds) {
  if (seconds.empty()) return std::nullopt;
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  const double middle = n % 2 == 1 ? seconds[n / 2] : 0.5 * (seconds[n / 2 - 1] + seconds[n / 2]);
  return Timing{1e3 * middle, 1e3 * seconds[n / 4], 1e3 * seconds[n - 1 - n / 4]};
}

std::string Costs::fact(const std::string& name) const {
  for (const auto& [known, value] : facts)
    if (known == name) return value;
  return "";
}

const MeasuredCost* Costs::find(const std::string& key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const MeasuredCost& cost) { return cost.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

std::string cost_key(const Json& spec) {
  Json shape = spec;
  for (const char* name : {"$schema", "note", "seed", "run"}) shape.erase(name);
  if (Json* optimizer = shape.find("optimizer")) {
    const Json* name = optimizer->find("name");
    *optimizer = name == nullptr ? Json() : *name;
  }
  if (Json* train = shape.find("train"); train != nullptr && train->is_object())
    for (const char* name : {"steps", "eval_every", "solved_at"}) train->erase(name);
  if (Json* task = shape.find("task"); task != nullptr && task->is_object()) task->erase("eval_seed");
  ContentHash hash;
  hash.update(shape.canonical());
  return hash.hex();
}

void write_costs(const Costs& costs, const std::string& folder) {
  Json facts = Json::object();
  for (const auto& [name, value] : costs.facts) facts[name] = value;
  Json entries = Json::array();
  for (const MeasuredCost& cost : costs.entries) entries.push_back(json_of(cost));
  Json json = Json::object();
  json["format"] = format_version;
  json["facts"] = std::move(facts);
  json["entries"] = std::move(entries);
  write_whole(folder, file_name, "costs", json.pretty() + "\n");
}

std::optional<Costs> find_costs(const std::string& folder) {
  const std::string file = folder + "/" + file_name;
  if (!std::filesystem::exists(file)) return std::nullopt;
  const Json json = parse_json(read_file(file), file);
  if (const std::int64_t format = Members(file, json).integer("format"); format != format_version)
    refuse(file, "format: found " + std::to_string(format) + ", expected " + std::to_string(format_version));
  Costs costs;
  const Json *facts = json.find("facts"), *entries = json.find("entries");
  if (facts == nullptr || !facts->is_object() || entries == nullptr || !entries->is_array())
    refuse(file, "expected \"facts\", an object, and \"entries\", a list");
  for (const auto& [name, value] : facts->as_object()) costs.facts.emplace_back(name, Members(file, *facts).text(name.c_str()));
  for (const Json& entry : entries->as_array()) costs.entries.push_back(cost_of(file, entry));
  return costs;
}

}  // namespace phasor::results
