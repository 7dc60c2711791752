#include "sweeps/base_change.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "experiments/spec.h"
#include "results/other_format.h"

namespace phasor::sweeps {

namespace {

/// One path with two values; nothing where one side has it not.
struct Change {
  std::string path;
  const Json* before = nullptr;
  const Json* now = nullptr;
};

void compare(const Json& before, const Json& now, const std::string& path, std::vector<Change>& changes) {
  if (before == now) return;
  if (!before.is_object() || !now.is_object()) {
    changes.push_back({path, &before, &now});
    return;
  }
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  for (const auto& [key, value] : before.as_object()) {
    if (const Json* other = now.find(key)) {
      compare(value, *other, below(key), changes);
    } else {
      changes.push_back({below(key), &value, nullptr});
    }
  }
  for (const auto& [key, value] : now.as_object()) {
    if (before.find(key) == nullptr) changes.push_back({below(key), nullptr, &value});
  }
}

/// What an older program wrote, with the defaults of options that came later and the present names.
Json completed(const Json& base, const Registry& registry) {
  Document document = Document::parse(base.canonical(), "base");
  ExperimentSpec::complete(document, registry);
  ExperimentSpec spec(registry);
  spec.read(document);
  return document.problems().empty() ? base_identity(spec, document.value()) : base;
}

/// Whether every point of some axis sets the path or what it is part of.
bool set_everywhere(const SweepSpec& spec, const std::string& path) {
  const auto covers = [&](const Setting& s) { return path == s.path || path.starts_with(s.path + "."); };
  return std::any_of(spec.axes.begin(), spec.axes.end(), [&](const Axis& axis) {
    return std::all_of(axis.points.begin(), axis.points.end(), [&](const Point& point) {
      return std::any_of(point.settings.begin(), point.settings.end(), covers);
    });
  });
}

std::string text_of(const Json* value) { return value == nullptr ? "absent" : value->canonical(); }

}  // namespace

void require_same_base(const std::string& folder, const Sweep& sweep, const Registry& registry) {
  if (!std::filesystem::exists(folder + "/sweep.json")) return;
  results::refuse_other_manifest(folder);
  Json before;
  try {
    before = results::read_manifest(folder).base;
  } catch (const UserError&) {  // a damaged one is written anew
    return;
  }
  if (before.is_null()) return;
  before = completed(before, registry);
  std::vector<Change> changes;
  compare(before, sweep.expansion.manifest.base, "", changes);
  std::erase_if(changes, [&](const Change& change) { return set_everywhere(sweep.spec, change.path); });
  if (changes.empty()) return;
  std::string text = folder + ": its trials are of another base experiment:";
  for (const Change& change : changes) text += "\n  " + change.path + ": " + text_of(change.before) + " there, " + text_of(change.now) + " now";
  throw UserError(text + "\nexpected the same base (new values of axes only add cells); choose another folder with --out, or remove " +
                  folder + "/sweep.json to let the old trials go");
}

}  // namespace phasor::sweeps
