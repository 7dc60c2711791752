#include "sweeps/same_sweep.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>
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

/// "variant (row) x lr (select) x seed (replicate)"
std::string axes_text(const std::vector<results::ManifestAxis>& axes) {
  std::string text;
  for (const results::ManifestAxis& axis : axes) text += (text.empty() ? "" : " x ") + axis.name + " (" + axis.role + ")";
  return text;
}

std::string list_of(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : ", ") + label;
  return text;
}

/// What the table shows is another thing: other axes, or no row or no column of before.
std::string difference_of(const std::vector<results::ManifestAxis>& before, const std::vector<results::ManifestAxis>& now) {
  if (axes_text(before) != axes_text(now)) return "axes: " + axes_text(before) + " there, " + axes_text(now) + " now";
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i].role != "row" && now[i].role != "column") continue;
    const std::vector<std::string>& there = before[i].labels;
    const auto is_there = [&](const std::string& label) { return std::find(there.begin(), there.end(), label) != there.end(); };
    if (std::none_of(now[i].labels.begin(), now[i].labels.end(), is_there))
      return "axis " + now[i].name + ": " + list_of(there) + " there, " + list_of(now[i].labels) + " now";
  }
  return "";
}

void refuse_other_sweep(const std::string& folder, const results::Manifest& before, const Sweep& sweep) {
  std::set<std::string> here, recorded;
  for (const Trial& trial : sweep.expansion.trials) here.insert(trial.id);
  bool common = false;
  for (const results::ManifestTrial& trial : before.trials) {
    common = common || here.contains(trial.id);
    if (trial.excluded.empty() && std::filesystem::exists(folder + "/" + trial.id + ".h5")) recorded.insert(trial.id);
  }
  std::string text;
  if (before.name != sweep.spec.name) text += "\n  name: \"" + before.name + "\" there, \"" + sweep.spec.name + "\" now";
  const std::string difference = common || recorded.empty() ? "" : difference_of(before.axes, sweep.expansion.manifest.axes);
  if (!difference.empty()) text += "\n  " + difference + "; no trial is in both";
  if (text.empty()) return;
  throw UserError(folder + ": holds another sweep, with records of " + std::to_string(recorded.size()) + " of its trials:" + text +
                  "\nexpected the same sweep (new values of axes only add cells); choose another folder with --out, or remove " + folder +
                  "/sweep.json to give the folder to this one (records stay, and count where they are of its cells)");
}

void refuse_other_base(const std::string& folder, Json before, const Sweep& sweep, const Registry& registry) {
  if (before.is_null()) return;  // of before bases were kept
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

}  // namespace

std::string require_same_sweep(const std::string& folder, const Sweep& sweep, const Registry& registry) {
  if (!std::filesystem::exists(folder + "/sweep.json")) return "";
  results::refuse_other_manifest(folder);
  results::Manifest before;
  try {
    before = results::read_manifest(folder);
  } catch (const UserError& damage) {
    return damage.what();
  }
  refuse_other_sweep(folder, before, sweep);
  refuse_other_base(folder, std::move(before.base), sweep, registry);
  return "";
}

}  // namespace phasor::sweeps
