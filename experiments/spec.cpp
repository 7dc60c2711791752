#include "experiments/spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/blame.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/ops/revision.h"

namespace phasor {

namespace {

/// A section of the file that is made of several objects.
struct Section {
  std::function<void(FieldList&)> list;
  void fields(FieldList& f) { list(f); }
};

template <class Plugin>
std::vector<std::string> names_of(const std::vector<std::unique_ptr<Plugin>>& plugins) {
  std::vector<std::string> names;
  for (const auto& plugin : plugins) names.push_back(plugin->info.name);
  std::sort(names.begin(), names.end());
  return names;
}

/// A section whose "name" chooses a plugin; `extra` adds fields of the host.
template <class Find>
void plugin_field(FieldList& f, const std::string& name, std::vector<std::string> names, const std::string& help,
                  ExperimentSpec::Chosen& chosen, const Find& find, const std::function<void(FieldList&)>& extra = {}) {
  const auto fields_of = [extra](Options& options) {
    FieldList list;
    options.fields(list);
    if (extra) extra(list);
    return list;
  };
  f.named(
      name, std::move(names), help,
      [&chosen, find, fields_of](const std::string& plugin) {
        chosen.options = find(plugin)->options();  // throws for a name that several files bring: nothing is chosen then
        chosen.name = plugin;
        return fields_of(*chosen.options);
      },
      [&chosen] { return chosen.name; },
      [find, fields_of](const std::string& plugin) {
        try {
          return fields_of(*find(plugin)->options());
        } catch (const UserError&) {
          return FieldList();  // nobody can say which file is meant
        }
      });
}

/// The same where a plugin may be left out: the name is then "none".
template <class Find>
void optional_plugin_field(FieldList& f, const std::string& name, std::vector<std::string> names, const std::string& help,
                           ExperimentSpec::Chosen& chosen, const Find& find) {
  const auto fields_of = [](Options& options) {
    FieldList list;
    options.fields(list);
    return list;
  };
  names.insert(names.begin(), "none");
  chosen.name = "none";
  f.named(
      name, std::move(names), help,
      [&chosen, find, fields_of](const std::string& plugin) {
        chosen.options = plugin == "none" ? nullptr : find(plugin)->options();
        chosen.name = plugin;
        return chosen.options ? fields_of(*chosen.options) : FieldList();
      },
      [&chosen] { return chosen.name; },
      [find, fields_of](const std::string& plugin) {
        try {
          return plugin == "none" ? FieldList() : fields_of(*find(plugin)->options());
        } catch (const UserError&) {
          return FieldList();
        }
      });
}

}  // namespace

FieldList OptimizerOptions::fields_of(const std::string& which) {
  FieldList f;
  f.number("lr", lr, "peak learning rate", Range::at_least(0.0));
  if (which == "sgd")
    sgd.fields(f);
  else
    adamw.fields(f);
  f.named("schedule", ScheduleOptions::names(), "learning rate over training",
          [this](const std::string& n) { return schedule.fields_of(n); }, [this] { return schedule.name; },
          [](const std::string& n) { return ScheduleOptions().fields_of(n); });
  return f;
}

std::unique_ptr<Optimizer> OptimizerOptions::make(ParameterStore& parameters, bool dry) const {
  if (name == "sgd") return std::make_unique<Sgd>(sgd, parameters, dry);
  return std::make_unique<AdamW>(adamw, parameters, dry);
}

void TrainOptions::fields(FieldList& f) {
  f.integer("steps", steps, "updates", Range::between(1, 1e12));
  f.integer("batch", batch, "rows per update", Range::between(1, 1 << 24));
  f.integer("lanes", lanes, "gradient buffers the rows of a batch are dealt to; not set: from the shapes", Range::at_least(1));
  f.integer("micro_batch", micro_batch, "rows a lane works on at a time; not set: from the shapes", Range::at_least(1));
  f.choice("precision", precision, {"f32", "f64", "tf32", "bf16"},
           "tf32, bf16: f32, with the operands of maps by a weight rounded to that (a GPU's tensor cores are much faster "
           "at it, a processor is slower); f64 is slow and for checks");
  f.choice("attention", attention, {"own", "cudnn"},
           "cudnn: softmax attention by that library where it can, on a CUDA device and with precision bf16; other bits than own");
  f.choice("storage", storage, {"as_computed", "bf16"},
           "bf16: weights and the optimiser's memory are rounded to bfloat16 at the start and after every update");
  f.integer("eval_every", eval_every, "steps between evaluations on valid; 0: only after the last step", Range::at_least(0));
  f.number("solved_at", solved_at, "sequence accuracy on valid that counts as solved, for steps_to_solve", Range::between(0.0, 1.0));
}

void RunOptions::fields(FieldList& f) {
  f.choice("device", device, {"auto", "cpu", "cuda"},
           "where to train; auto takes what there is, and the record says what ran");
  f.integer("threads", threads, "of this trial; the result does not depend on it", Range::between(1, 1024));
  f.integer("log_every", log_every, "steps between stored points of the training curve; 1 stores every step", Range::at_least(1));
  f.boolean("capture", capture, "on a device: record the launches of a step once and replay them; off is slower, with the same bits");
  f.integer("checkpoint_every", checkpoint_every, "steps between checkpoints, from which the same command goes on; 0: none",
            Range::at_least(0));
  f.boolean("keep_checkpoint", keep_checkpoint, "keep the last checkpoint, with the trained parameters, beside the record");
}

ExperimentSpec::ExperimentSpec(const Registry& registry) : registry_(registry) {
  fields_.text("$schema", schema_, "for editors; ignored");
  fields_.text("extends", extends_, "file that this one changes, relative to this file: objects merge, lists are replaced");
  fields_.text("note", note, "for people; ignored");
  fields_.integer("seed", seed, "of initialisation, training data and order", Range::between(0, 9.2e18));
  plugin_field(fields_, "task", names_of(registry.tasks()), "what is learned", task,
               [&registry](const std::string& n) { return registry.find_task(n); },
               [this](FieldList& f) {
                 f.integer("eval_seed", eval_seed, "of valid and test data: one for a whole sweep", Range::between(0, 9.2e18));
               });
  Section model_section{[this, &registry](FieldList& f) {
    model.fields(f);
    plugin_field(f, "backbone", names_of(registry.backbones()), "mixing over time", backbone,
                 [&registry](const std::string& n) { return registry.find_backbone(n); });
    plugin_field(f, "encoding", names_of(registry.encodings()), "how position enters", encoding,
                 [&registry](const std::string& n) { return registry.find_encoding(n); });
    optional_plugin_field(f, "other_backbone", names_of(registry.backbones()), "mixing of the layers that pattern calls b",
                          other_backbone, [&registry](const std::string& n) { return registry.find_backbone(n); });
    optional_plugin_field(f, "other_encoding", names_of(registry.encodings()), "how position enters the layers called b",
                          other_encoding, [&registry](const std::string& n) { return registry.find_encoding(n); });
  }};
  fields_.object("model", model_section, "the network");
  fields_.named("optimizer", {"adamw", "sgd"}, "how parameters are updated",
                [this](const std::string& n) {
                  optimizer.name = n;
                  return optimizer.fields_of(n);
                },
                [this] { return optimizer.name; },
                [](const std::string& n) {
                  OptimizerOptions shown;
                  return shown.fields_of(n);
                });
  fields_.object("train", train, "steps and batches");
  fields_.object("run", run, "how this run is carried out; outside the trial's identity");
}

MixerChoice ExperimentSpec::mixer() const {
  const auto choice = [&](const Chosen& mixing, const Chosen& position) {
    return MixerChoice{registry_.find_backbone(mixing.name), mixing.options.get(), registry_.find_encoding(position.name),
                       position.options.get(), nullptr};
  };
  MixerChoice main = choice(backbone, encoding);
  if (other_backbone.options == nullptr) return main;
  other_ = choice(other_backbone, other_encoding);
  main.other = &other_;
  return main;
}

std::unique_ptr<Task> ExperimentSpec::make_task() const {
  return registry_.find_task(task.name)->make(*task.options);
}

std::int64_t ExperimentSpec::parameters() const {
  ParameterStore declared;
  const Model shape_only(model, data_shape(), mixer(), declared);
  return declared.total();
}

namespace {
void write_names(const FieldList& fields, Json& json) {
  if (!json.is_object()) return;
  for (const Field& field : fields.all()) {
    if (field.kind != FieldKind::object && field.kind != FieldKind::named) continue;
    const bool named = field.kind == FieldKind::named;
    if (named && field.selected().empty()) continue;
    if (json.find(field.name) == nullptr) json[field.name] = Json::object();
    Json& member = json[field.name];
    if (!member.is_object()) continue;
    if (named && member.find("name") == nullptr) member["name"] = field.selected();
    write_names(field.bound(), member);
  }
}
}  // namespace

void ExperimentSpec::complete(Document& document, const Registry& registry) {
  ExperimentSpec spec(registry);
  Document copy = document;
  read_fields(spec.fields_, copy.value(), "", copy, spec.fields_);  // chooses the plugins; mistakes are told when it is read
  use_present_names(spec.fields_, "", document);
  write_names(spec.fields_, document.value());
}

void ExperimentSpec::read(Document& document) {
  read_fields(fields_, document.value(), "", document, fields_);
  if (document.value().find("extends") != nullptr)
    document.problem("extends", "only a file can extend another, expected it in an experiment or sweep file");
  if (document.problems().empty()) check(document);
  if (document.problems().empty()) resolve();
}

namespace {
bool scores_nothing(const Task& task) {
  const std::vector<Slice> slices = task.slices(Split::train);
  return std::all_of(slices.begin(), slices.end(), [&](const Slice& slice) { return task.max_targets(slice) < 1; });
}
}  // namespace

void ExperimentSpec::check(Document& document) {
  const std::pair<const Chosen*, const char*> needed[] = {{&task, "task"}, {&backbone, "model.backbone"}, {&encoding, "model.encoding"}};
  for (const auto& [chosen, path] : needed)
    if (!chosen->options) document.problem(path, "no name is given; `phasor plugins` lists them");
  if (!document.problems().empty()) return;
  if (other_backbone.options != nullptr && other_encoding.options == nullptr)
    document.problem("model.other_encoding", "none, but there is an other_backbone: expected an encoding, such as nope");
  if (other_backbone.options == nullptr && other_encoding.options != nullptr)
    document.problem("model.other_backbone", "none, but there is an other_encoding: expected a backbone");
  if (!document.problems().empty()) return;
  if (optimizer.name == "adamw" && optimizer.adamw.betas.size() != 2)
    document.problem("optimizer.betas", fmt::format("{} values, expected 2", optimizer.adamw.betas.size()));
  const auto refused = registry_.find_task(task.name)->refuses(*task.options);
  if (refused) document.problem("task", task.name + ": " + *refused);
  const DataShape data = refused ? DataShape(1) : data_shape();
  try {
    if (const auto misfit = find_misfit(model, data, mixer())) document.problem(misfit->path, misfit->reason);
  } catch (const PluginFailure&) {  // costs the trial that it happens in, not a sweep
  }
  if (!refused && scores_nothing(*make_task())) document.problem("task", task.name + ": no training row has a scored position: there is nothing to learn");
  if (train.attention == "cudnn" && train.precision != "bf16")
    document.problem("train.attention", "cudnn computes in bf16, and train.precision is " + train.precision + ": expected bf16 there, or own here");
  if (train.attention == "cudnn" && run.device == "cpu")
    document.problem("train.attention", "cudnn is for CUDA devices, and run.device is cpu: expected cuda there, or own here");
  if (train.lanes && *train.lanes > train.batch)
    document.problem("train.lanes", fmt::format("{} lanes for a batch of {} rows, expected at most {}", *train.lanes, train.batch, train.batch));
}

std::int64_t default_lanes(std::int64_t batch, bool cuda) { return cuda ? 1 : std::min<std::int64_t>(4, batch); }

std::int64_t default_micro_batch(std::int64_t rows_per_lane, std::int64_t tokens, std::int64_t dim, bool cuda) {
  // About 32 k activations of the residual stream at a time; see docs/performance.md. A device wants wide launches and has no
  // caches to stay in: 16 M, 64 MB in f32.
  const std::int64_t activations = cuda ? 1 << 24 : 1 << 15;
  const std::int64_t rows = activations / std::max<std::int64_t>(1, tokens * dim);
  return std::clamp<std::int64_t>(rows, 1, rows_per_lane);
}

void ExperimentSpec::resolve() {
  task.options->resolve();
  const auto made = make_task();
  std::int64_t tokens = 0;
  for (const Slice& slice : made->slices(Split::train)) tokens = std::max(tokens, made->tokens(slice));
  const bool cuda = run.device == "cuda";
  if (!train.lanes) train.lanes = default_lanes(train.batch, cuda);
  const std::int64_t per_lane = (train.batch + *train.lanes - 1) / *train.lanes;
  if (!train.micro_batch) train.micro_batch = default_micro_batch(per_lane, tokens, model.dim, cuda);
}

std::vector<std::pair<std::string, std::string>> revisions_of(const ExperimentSpec& spec) {
  std::vector<std::pair<std::string, std::string>> facts;
  const auto add = [&](const std::string& part) {
    const std::string fact = "numerics." + part;
    facts.emplace_back(fact, std::to_string(revision_here(fact, spec.registry())));
  };
  add("core");
  add("task." + spec.task.name);
  add("backbone." + spec.backbone.name);
  add("encoding." + spec.encoding.name);
  if (spec.other_backbone.options == nullptr) return facts;
  if (spec.other_backbone.name != spec.backbone.name) add("backbone." + spec.other_backbone.name);
  if (spec.other_encoding.name != spec.encoding.name) add("encoding." + spec.other_encoding.name);
  return facts;
}

int revision_here(const std::string& fact, const Registry& registry) {
  if (fact == "numerics.core") return numerics_revision;
  const auto in = [&](const std::string& kind, const auto& plugins) {
    const std::string head = "numerics." + kind + ".";
    if (!fact.starts_with(head)) return 0;
    for (const auto& plugin : plugins)
      if (plugin->info.name == fact.substr(head.size())) return plugin->info.revision;
    return 0;
  };
  return in("task", registry.tasks()) + in("backbone", registry.backbones()) + in("encoding", registry.encodings());
}

Json identity(const Json& resolved, const std::string& device_kind) {
  Json out = resolved;
  for (const char* key : {"$schema", "extends", "note", "run"}) out.erase(key);
  out["device"] = device_kind;
  // Younger than many a trial: where they ask for nothing they leave their names alone.
  if (const Json* attention = out.at_path("train.attention"); attention != nullptr && *attention == Json("own"))
    out["train"].erase("attention");
  if (const Json* storage = out.at_path("train.storage"); storage != nullptr && *storage == Json("as_computed"))
    out["train"].erase("storage");
  return out;
}

Trial make_trial(const ExperimentSpec& spec) { return make_trial(spec, spec.run.device == "cuda" ? "cuda" : "cpu"); }

Trial make_trial(const ExperimentSpec& spec, const std::string& device_kind) {
  Json resolved = write_fields(spec.fields());
  for (const char* key : {"$schema", "extends"}) resolved.erase(key);
  std::string id = uuid5(identity(write_fields(spec.fields(), Names::former), device_kind).canonical());
  return {std::move(resolved), std::move(id)};
}

}  // namespace phasor
