#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/model.h"
#include "core/optim/adamw.h"
#include "core/optim/sgd.h"
#include "core/optim/schedule.h"
#include "core/plugin/registry.h"
#include "core/spec/fields.h"
#include "core/spec/json.h"
#include "core/spec/problems.h"

namespace phasor {

struct OptimizerOptions {
  std::string name = "adamw";
  double lr = 1e-3;
  AdamWOptions adamw;
  SgdOptions sgd;
  ScheduleOptions schedule;
  /// Of the one in use.
  const DecayOptions& decay() const { return name == "sgd" ? sgd.decay : adamw.decay; }
  std::unique_ptr<Optimizer> make(ParameterStore&, bool dry = false) const;
  FieldList fields_of(const std::string& name);
};

struct TrainOptions {
  std::int64_t steps = 1000;
  std::int64_t batch = 64;                   // rows per update
  std::optional<std::int64_t> lanes;         // gradient buffers a batch is dealt to; resolved from the shapes
  std::optional<std::int64_t> micro_batch;   // rows a lane works on at a time; resolved from the shapes
  std::string precision = "f32";
  std::string attention = "own";             // or cudnn: on a CUDA device, in bf16
  std::string storage = "as_computed";       // or bf16: weights and the optimiser's memory are rounded after every update
  std::int64_t eval_every = 0;               // 0 = only after the last step
  double solved_at = 0.95;                   // sequence accuracy on valid that counts as solved (steps_to_solve)
  void fields(FieldList&);
};

/// Outside a trial's identity: none of it changes a bit of the result.
struct RunOptions {
  std::string device = "cpu";
  std::int64_t threads = 1;
  std::int64_t log_every = 1;
  bool capture = true;                // on a device
  std::int64_t checkpoint_every = 0;  // steps between checkpoints; 0 = none
  bool keep_checkpoint = false;       // of a finished trial: the trained parameters
  void fields(FieldList&);
};

/// One experiment, resolved: task x backbone x encoding x optimiser, every default filled in. The object owns the
/// options of the chosen plugins and must not move while its field list is in use.
class ExperimentSpec {
 public:
  explicit ExperimentSpec(const Registry& registry);
  ExperimentSpec(const ExperimentSpec&) = delete;
  ExperimentSpec& operator=(const ExperimentSpec&) = delete;

  std::string note;
  std::int64_t seed = 0;
  std::int64_t eval_seed = 20261129;  // task.eval_seed: evaluation data of a whole sweep
  ModelOptions model;
  OptimizerOptions optimizer;
  TrainOptions train;
  RunOptions run;

  struct Chosen {
    std::string name;
    std::unique_ptr<Options> options;
  };
  Chosen task, backbone, encoding;
  Chosen other_backbone, other_encoding;  // of the layers that model.pattern calls b; no options when there are none

  /// The whole file as one list of fields, bound to this object.
  const FieldList& fields() const { return fields_; }
  /// Refers to this object.
  MixerChoice mixer() const;
  DataShape data_shape() const { return DataShape(*make_task()); }
  std::unique_ptr<Task> make_task() const;
  /// Of the model, frozen ones too, from their declarations: nothing is allocated.
  std::int64_t parameters() const;

  /// Reads `document.value()` (after patches) into this object and checks everything that can be checked before
  /// training: keys, types, ranges, plugins, and whether the pair fits. All mistakes become problems of the document.
  /// On success lanes and micro-batch are resolved.
  void read(Document& document);

  /// Writes out the names that a file leaves to their defaults, so that a patch without a name merges into the chosen plugin
  /// and one with the same name keeps its settings (see `merge`), and calls renamed members by their present names. Nothing
  /// else is written out: what depends on other values, such as the micro-batch, is resolved after the patches.
  static void complete(Document& document, const Registry& registry);

  const Registry& registry() const { return registry_; }

 private:
  void check(Document& document);
  void resolve();

  const Registry& registry_;
  std::string schema_, extends_;
  mutable MixerChoice other_;  // what mixer() refers to
  FieldList fields_;
};

/// One point of a sweep, or a single run: complete, and named by its content.
struct Trial {
  Json spec;       // resolved, every default written out, with `run` and `note`
  std::string id;  // UUID v5 of identity(spec)
};

/// The part of a resolved spec that decides the bits: without $schema, note and run, with the device kind; train.storage
/// only where it rounds, train.attention only where it is not our own.
Json identity(const Json& resolved, const std::string& device_kind);
/// `device_kind`: where it trains ("cpu", or Device::kind).
Trial make_trial(const ExperimentSpec& spec, const std::string& device_kind);
/// Where run.device asks for; for `auto` the processor.
Trial make_trial(const ExperimentSpec& spec);

/// Revisions of the numbers that a trial's parts make, as its record has them: "numerics.core", "numerics.encoding.rope".
std::vector<std::pair<std::string, std::string>> revisions_of(const ExperimentSpec& spec);
/// The revision of such a fact in this program; 0 when there is no such part here.
int revision_here(const std::string& fact, const Registry& registry);

/// Default lanes and micro-batch: from the shapes and the kind of device alone, never from the machine, since they are part of
/// the bits.
std::int64_t default_lanes(std::int64_t batch, bool cuda = false);
std::int64_t default_micro_batch(std::int64_t rows_per_lane, std::int64_t tokens, std::int64_t dim, bool cuda = false);

}  // namespace phasor
