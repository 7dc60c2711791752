#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/spec/fields.h"

namespace phasor::example {

// A small experiment with all kinds of fields: what the readers of field lists are tested on.

struct Temperature {
  double theta = 1.0;
  bool learned = false;
  void fields(FieldList& f) {
    f.number("theta", theta, "base of the frequencies", Range::above(0.0));
    f.boolean("learned", learned, "train it");
  }
};

struct Encoding {
  virtual ~Encoding() = default;
  virtual void fields(FieldList& f) = 0;
};
struct Nope final : Encoding {
  void fields(FieldList&) override {}
};
struct Rope final : Encoding {
  double theta = 500000.0;
  void fields(FieldList& f) override { f.number("theta", theta, "base of the frequencies", Range::above(0.0)); }
};
struct Selective final : Encoding {
  std::int64_t rank = 8;
  Temperature temperature;
  void fields(FieldList& f) override {
    f.integer("rank", rank, "of the projection", Range::at_least(1));
    f.object("temperature", temperature, "of the phases");
  }
};

inline std::unique_ptr<Encoding> make_encoding(const std::string& name) {
  if (name == "nope") return std::make_unique<Nope>();
  if (name == "rope") return std::make_unique<Rope>();
  if (name == "selective_rope") return std::make_unique<Selective>();
  throw UserError("encoding \"" + name + "\" cannot be loaded");
}

/// What a registry of plugins does: an owned instance and the name it was made by.
struct EncodingChoice {
  std::string name = "nope";
  std::unique_ptr<Encoding> made = make_encoding("nope");

  void field(FieldList& f) {
    f.named(
        "encoding", {"nope", "rope", "selective_rope", "broken"}, "where position enters",
        [this](const std::string& chosen) {
          made = make_encoding(chosen);
          name = chosen;
          FieldList list;
          made->fields(list);
          return list;
        },
        [this] { return name; },
        [](const std::string& chosen) {
          FieldList list;
          if (chosen != "broken") make_encoding(chosen)->fields(list);  // dangling on purpose
          return list;
        });
  }
};

struct Model {
  std::int64_t dim = 32;
  std::int64_t heads = 2;
  EncodingChoice encoding;
  void fields(FieldList& f) {
    f.integer("dim", dim, "width", Range::between(1, 65536));
    f.integer("heads", heads, "number of heads", Range::at_least(1));
    encoding.field(f);
  }
};

struct Optimizer {
  double lr = 0.001;
  std::vector<double> betas = {0.9, 0.999};
  std::optional<double> clip = 1.0;
  std::string decay = "tagged";
  void fields(FieldList& f) {
    f.number("lr", lr, "learning rate", Range::above(0.0));
    f.numbers("betas", betas, "decay of the moments", {0.0, 1.0, false, true});
    f.number("clip", clip, "largest norm of the gradient", Range::above(0.0));
    f.choice("decay", decay, {"tagged", "all", "none"}, "which parameters decay");
  }
};

struct Split {
  std::int64_t rows = 1000;
  std::vector<std::int64_t> lengths = {32};
  void fields(FieldList& f) {
    f.integer("rows", rows, "number of rows", Range::at_least(1));
    f.integers("lengths", lengths, "of the sequences", Range::at_least(1));
  }
};

struct Task {
  std::string name;  // no default
  Split train, test;
  std::optional<std::int64_t> limit;
};

struct Experiment {
  std::int64_t seed = 0;
  std::string note;
  bool tie_head = false;
  Model model;
  Optimizer optimizer;
  Task task;

  Experiment() = default;
  Experiment(const Experiment&) = delete;
  Experiment& operator=(const Experiment&) = delete;

  FieldList task_fields() {
    FieldList list;
    list.object("train", task.train, "training rows");
    list.object("test", task.test, "test rows");
    list.integer("limit", task.limit, "at most so many", Range::at_least(0));
    return list;
  }

  void fields(FieldList& f) {
    f.integer("seed", seed, "of data order and initialisation", Range::at_least(0));
    f.text("note", note, "for people");
    f.boolean("tie_head", tie_head, "head and embedding share weights");
    f.object("model", model, "the network");
    f.object("optimizer", optimizer, "how it is trained");
    f.named(
        "task", {"parity", "copy"}, "what is learned",
        [this](const std::string& chosen) {
          task.name = chosen;
          return task_fields();
        },
        [this] { return task.name; },
        [](const std::string&) {
          Experiment other;
          return other.task_fields();  // dangling on purpose
        });
  }
};

inline FieldList fields_of(Experiment& experiment) {
  FieldList list;
  experiment.fields(list);
  return list;
}

}  // namespace phasor::example
