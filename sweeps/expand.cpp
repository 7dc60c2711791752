#include "sweeps/expand.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/blame.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "sweeps/misfits.h"
#include "sweeps/report.h"
#include "sweeps/table_section.h"

namespace phasor::sweeps {

namespace {

constexpr std::size_t most_cells = 1'000'000;

/// Whether the experiment has something at a dotted path, with the plugins that it chose.
bool has_path(const FieldList& fields, const std::string& path) {
  const std::size_t dot = path.find('.');
  const Field* field = fields.find(path.substr(0, dot));
  if (field == nullptr) return false;
  if (dot == std::string::npos) return true;
  const std::string rest = path.substr(dot + 1);
  if (field->kind == FieldKind::named) return rest == "name" || has_path(field->bound(), rest);
  return field->kind == FieldKind::object && has_path(*field->members, rest);
}

class Expander {
 public:
  Expander(const SweepSpec& spec, Document& sweep, Document& base, const Registry& registry)
      : spec_(spec), sweep_(sweep), base_(base), registry_(registry), misfits_(spec.axes) {}

  Expansion run();

 private:
  void read_base();
  void start_manifest();
  bool advance(Place& at) const;
  const Exclusion* excluded(const Place& at) const;
  void add_cell(const Place& at);
  std::optional<Trial> read_cell(const Place& at, results::ManifestTrial& cell);
  void add_trial(Trial trial);
  void count_awaiting();
  std::int64_t parameters_of(const ExperimentSpec& spec, const Json& resolved);
  void note_slices(const ExperimentSpec& spec, const Json& resolved);

  const SweepSpec& spec_;
  Document& sweep_;
  Document& base_;
  const Registry& registry_;
  Misfits misfits_;
  Expansion expansion_;
  std::set<std::pair<std::string, std::string>> base_problems_;
  std::map<std::string, std::size_t> trial_of_;     // id to its place in trials
  std::map<std::string, std::int64_t> parameters_;  // canonical model and task to their count
  std::set<std::string> tasks_;                     // canonical tasks whose slices are noted
  std::optional<KnownSlices> slices_;
};

void Expander::read_base() {
  ExperimentSpec spec(registry_);
  spec.read(base_);
  for (const Problem& problem : base_.problems()) base_problems_.insert({problem.path, problem.message});
  ExperimentSpec::complete(base_, registry_);  // what --set brought
  if (base_.problems().empty()) expansion_.manifest.base = base_identity(spec, base_.value());
}

void Expander::start_manifest() {
  results::Manifest& manifest = expansion_.manifest;
  manifest.name = spec_.name;
  manifest.note = spec_.note;
  manifest.table = spec_.table;
  std::set<std::string> varied;
  for (const Axis& axis : spec_.axes) {
    results::ManifestAxis out{axis.name, axis.role, axis.path, {}, {}, static_cast<std::int64_t>(axis.fresh)};
    for (const Point& point : axis.points) {
      out.labels.push_back(point.label);
      if (!axis.path.empty() || !point.value.is_null()) out.values.push_back(point.value);
      for (const Setting& setting : point.settings) varied.insert(setting.path);
    }
    manifest.axes.push_back(std::move(out));
  }
  manifest.varied.assign(varied.begin(), varied.end());
}

/// The next cell; the last axis moves fastest.
bool Expander::advance(Place& at) const {
  for (std::size_t axis = at.size(); axis-- > 0;) {
    if (++at[axis] < spec_.axes[axis].points.size()) return true;
    at[axis] = 0;
  }
  return false;
}

const Exclusion* Expander::excluded(const Place& at) const {
  const auto matches = [&](const Exclusion& rule) {
    return std::all_of(rule.conditions.begin(), rule.conditions.end(),
                       [&](const auto& condition) { return at[condition.first] == condition.second; });
  };
  const auto rule = std::find_if(spec_.exclude.begin(), spec_.exclude.end(), matches);
  return rule == spec_.exclude.end() ? nullptr : &*rule;
}

std::int64_t Expander::parameters_of(const ExperimentSpec& spec, const Json& resolved) {
  const std::string key = resolved.find("model")->canonical() + resolved.find("task")->canonical();
  const auto known = parameters_.find(key);
  if (known != parameters_.end()) return known->second;
  try {
    return parameters_[key] = spec.parameters();
  } catch (const PluginFailure&) {
    return 0;  // nobody knows; the trial will fail alike and say why
  }
}

/// Keeps the lengths that every cell has, in the order of the first.
void Expander::note_slices(const ExperimentSpec& spec, const Json& resolved) {
  if (!tasks_.insert(resolved.find("task")->canonical()).second) return;
  const std::unique_ptr<Task> task = spec.make_task();
  const auto lengths = [&](Split split) {
    std::vector<std::int64_t> all;
    for (const Slice& slice : task->slices(split)) all.push_back(slice.length);
    return all;
  };
  const auto positions = [&](Split split) {
    std::vector<std::int64_t> all;
    for (const Slice& slice : task->slices(split))
      for (const std::int64_t end : task->position_ends(slice)) all.push_back(end);
    return all;
  };
  const std::optional<std::string> missing = task->missing();
  std::vector<std::string>& known_missing = expansion_.missing;
  if (missing && std::find(known_missing.begin(), known_missing.end(), *missing) == known_missing.end())
    known_missing.push_back(*missing);
  KnownSlices here{lengths(Split::valid), lengths(Split::test), positions(Split::valid), positions(Split::test)};
  here.single_valid = here.valid.size() == 1;
  here.single_test = here.test.size() == 1;
  if (!slices_) {
    slices_ = here;
    return;
  }
  const auto keep = [](std::vector<std::int64_t>& known, const std::vector<std::int64_t>& found) {
    std::erase_if(known,
                  [&](std::int64_t length) { return std::find(found.begin(), found.end(), length) == found.end(); });
  };
  keep(slices_->valid, here.valid);
  keep(slices_->test, here.test);
  slices_->single_valid = slices_->single_valid && here.single_valid;
  slices_->single_test = slices_->single_test && here.single_test;
  keep(slices_->valid_positions, here.valid_positions);
  keep(slices_->test_positions, here.test_positions);
}

std::optional<Trial> Expander::read_cell(const Place& at, results::ManifestTrial& cell) {
  Document document = base_;
  const std::size_t before = document.problems().size();
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    for (const Setting& setting : spec_.axes[axis].points[at[axis]].settings) {
      document.set(setting.path, setting.value, "the sweep");
    }
  }
  ExperimentSpec spec(registry_);
  spec.read(document);
  for (std::size_t i = before; i < document.problems().size(); ++i) {
    const Problem& problem = document.problems()[i];
    if (!base_problems_.contains({problem.path, problem.message})) misfits_.add(at, problem.path, problem.message);
  }
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    for (const Setting& setting : spec_.axes[axis].points[at[axis]].settings) {
      if (!has_path(spec.fields(), setting.path)) misfits_.add_unknown(setting.path);
    }
  }
  if (!document.problems().empty()) return std::nullopt;

  Trial trial = make_trial(spec);
  cell.id = trial.id;
  cell.parameters = parameters_of(spec, trial.spec);
  note_slices(spec, trial.spec);
  return trial;
}

void Expander::add_trial(Trial trial) {
  if (!trial_of_.emplace(trial.id, expansion_.trials.size()).second) {
    ++expansion_.repeated;
    return;
  }
  expansion_.first_cell.push_back(expansion_.manifest.trials.size());
  expansion_.trials.push_back(std::move(trial));
}

void Expander::add_cell(const Place& at) {
  results::ManifestTrial cell;
  for (const std::size_t index : at) cell.at.push_back(static_cast<std::int64_t>(index));
  const bool fresh = results::is_fresh(expansion_.manifest.axes, cell.at);
  if (const Exclusion* rule = excluded(at)) {
    if (fresh) return;  // never chosen
    cell.excluded = rule->reason;
    ++expansion_.excluded;
  } else if (std::optional<Trial> trial = read_cell(at, cell)) {
    if (fresh) {
      expansion_.fresh.push_back({std::move(cell), std::move(*trial)});
      return;
    }
    add_trial(std::move(*trial));
  }
  if (!fresh) expansion_.manifest.trials.push_back(std::move(cell));
}

/// One value of the select axes will be confirmed at each place of the others.
void Expander::count_awaiting() {
  std::set<std::vector<std::int64_t>> trials, cells;
  for (const Expansion::Fresh& fresh : expansion_.fresh) {
    std::vector<std::int64_t> at = fresh.cell.at;
    for (const char* role : {"select", "replicate"}) {
      for (std::size_t i = 0; i < at.size(); ++i) {
        if (spec_.axes[i].role == role) at[i] = -1;
      }
      (role == std::string_view("select") ? trials : cells).insert(at);
    }
  }
  expansion_.manifest.awaiting = static_cast<std::int64_t>(trials.size());
  expansion_.confirmed_cells = static_cast<std::int64_t>(cells.size());
}

Expansion Expander::run() {
  read_base();
  start_manifest();
  std::size_t cells = 1, selected = 1;
  for (const Axis& axis : spec_.axes) {
    cells *= axis.points.size();
    selected *= axis.visited();
    if (cells > most_cells) {
      sweep_.problem("axes",
                     "found more than " + std::to_string(most_cells) + " cells, expected fewer: split the sweep");
      return std::move(expansion_);
    }
  }
  Place at(spec_.axes.size(), 0);
  // Excluded cells first: they agree with every mistake of the others.
  do {
    if (excluded(at)) misfits_.exclude(at);
  } while (advance(at));
  do add_cell(at);
  while (advance(at));
  count_awaiting();
  if (expansion_.excluded == static_cast<std::int64_t>(selected)) {
    sweep_.problem("exclude", "takes out every cell, expected at least one to stay");
  }
  misfits_.report(sweep_);
  if (slices_) check_slices(sweep_, *slices_);
  return std::move(expansion_);
}

/// A setting of the command line that every cell overwrites would be silently without effect.
void check_settings(const SweepSpec& spec, const std::vector<std::string>& settings,
                    std::vector<std::string>& mistakes) {
  for (const std::string& setting : settings) {
    const std::string path = setting.substr(0, setting.find('='));
    for (const Axis& axis : spec.axes) {
      const bool always = std::all_of(axis.points.begin(), axis.points.end(), [&](const Point& point) {
        return std::any_of(point.settings.begin(), point.settings.end(),
                           [&](const Setting& s) { return s.path == path; });
      });
      if (always) {
        mistakes.push_back("--set " + setting + ": the axis " + json_quoted(axis.name) + " sets " + path +
                           " in every cell, expected a path that it does not; change the axis instead");
      }
    }
  }
}

}  // namespace

Json base_identity(const ExperimentSpec& spec, const Json& given) {
  Json base = identity(make_trial(spec).spec, "cpu");
  base.erase("device");
  for (const char* key : {"lanes", "micro_batch"}) {
    const Json* value = given.at_path(std::string("train.") + key);
    if (value == nullptr || value->is_null()) base["train"].erase(key);
  }
  return base;
}

Sweep load_sweep(const std::string& file, const std::vector<std::string>& settings, const Registry& registry) {
  Document document = Document::read_extended(file);
  const Json& given = document.value();
  if (given.is_object() && given.find("axes") == nullptr && (given.find("model") != nullptr || given.find("task") != nullptr))
    throw UserError(file + ": found an experiment (it has no \"axes\"), expected a sweep; `" + shell_words({"phasor", "run", file}) +
                    "` trains it, a sweep names it as its \"base\"");
  Sweep sweep;
  sweep.spec = read_sweep_spec(document);
  std::vector<std::string> mistakes;
  std::vector<const Document*> documents = {&document};
  std::optional<Document> base;
  const auto complete = [&](Document& read) { ExperimentSpec::complete(read, registry); };
  if (!sweep.spec.base.empty()) {
    try {
      base = Document::read_extended(sweep.spec.base, complete);
      complete(*base);
    } catch (const UserError& error) {
      document.problem("base", error.what());
    }
  }
  if (base) {
    documents.push_back(&*base);
    apply_settings(*base, settings, mistakes);
    check_settings(sweep.spec, settings, mistakes);
    sweep.expansion = Expander(sweep.spec, document, *base, registry).run();
  }
  require_none(documents, mistakes);
  return sweep;
}

void confirm(Expansion& expansion, const std::vector<std::vector<std::int64_t>>& chosen) {
  std::set<std::string> known;
  for (const Trial& trial : expansion.trials) known.insert(trial.id);
  const std::set<std::vector<std::int64_t>> places(chosen.begin(), chosen.end());
  for (const Expansion::Fresh& fresh : expansion.fresh) {
    std::vector<std::int64_t> place = fresh.cell.at;
    for (std::size_t i = 0; i < place.size(); ++i) {
      if (expansion.manifest.axes[i].role == "replicate") place[i] = -1;
    }
    if (!places.contains(place)) continue;
    if (known.insert(fresh.trial.id).second) {
      expansion.first_cell.push_back(expansion.manifest.trials.size());
      expansion.trials.push_back(fresh.trial);
    }
    expansion.manifest.trials.push_back(fresh.cell);
  }
  expansion.manifest.awaiting = 0;
}

std::string cell_name(const results::Manifest& manifest, const results::ManifestTrial& cell) {
  std::string name;
  for (std::size_t i = 0; i < manifest.axes.size(); ++i) {
    const results::ManifestAxis& axis = manifest.axes[i];
    name += name.empty() ? "" : " / ";
    if (!axis.path.empty()) name += axis.name + " ";
    name += axis.labels[static_cast<std::size_t>(cell.at[i])];
  }
  return name;
}

}  // namespace phasor::sweeps
