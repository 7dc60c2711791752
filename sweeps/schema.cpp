#include "sweeps/schema.h"

#include <utility>

#include "core/spec/schema.h"
#include "results/record.h"
#include "experiments/spec.h"

namespace phasor::sweeps {

namespace {

constexpr const char* draft = "https://json-schema.org/draft/2020-12/schema";

/// Sweep files are lists of objects, which field lists do not describe. "paths" and "settings" are filled in.
constexpr const char* sweep_text = R"({
  "$schema": "",
  "title": "Phasor sweep",
  "type": "object",
  "properties": {
    "$schema": {"type": "string"},
    "extends": {"type": "string",
                "description": "file of a sweep that this one changes, relative to this file: objects merge, lists are replaced"},
    "name": {"type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9_.-]*$",
             "description": "also the folder of its results"},
    "note": {"type": "string", "description": "for people; ignored"},
    "base": {"type": "string", "description": "file of the experiment that every cell changes, relative to this file"},
    "axes": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/axis"}},
    "exclude": {"type": "array", "items": {"$ref": "#/$defs/rule"},
                "description": "cells left out: those that are at all these points"},
    "confirm": {"type": "object", "minProperties": 1, "maxProperties": 1,
                "additionalProperties": {"type": "array", "minItems": 1, "uniqueItems": true},
                "description": "fresh values of a replicate axis: what is chosen runs on them, and only they are reported"},
    "limits": {
      "type": "object",
      "properties": {
        "seconds": {"type": "integer", "minimum": 1, "description": "a trial that takes longer is ended: timeout"},
        "memory_mb": {"type": "integer", "minimum": 1, "description": "a trial that asks for more ends: oom"}
      },
      "additionalProperties": false,
      "description": "of each trial; no part of its identity"
    },
    "table": {"$ref": "#/$defs/table"}
  },
  "if": {"not": {"required": ["extends"]}},
  "then": {"required": ["name", "base", "axes", "table"]},
  "additionalProperties": false,
  "$defs": {
    "axis": {
      "type": "object",
      "properties": {
        "name": {"$ref": "#/$defs/line", "not": {"const": "reason"}},
        "role": {"enum": ["row", "column", "select", "replicate", "average"],
                 "description": "what the table does with it; select: chosen, such as the learning rate"},
        "points": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/point"}},
        "path": {"$ref": "#/$defs/path"},
        "values": {"type": "array", "minItems": 1},
        "random": {
          "type": "object",
          "properties": {
            "count": {"type": "integer", "minimum": 1, "maximum": 10000, "description": "more adds points and changes none"},
            "seed": {"type": "integer", "minimum": 0},
            "draw": {"type": "object", "minProperties": 1, "propertyNames": {"$ref": "#/$defs/path"},
                     "additionalProperties": {"$ref": "#/$defs/draw"}}
          },
          "required": ["count", "seed", "draw"],
          "additionalProperties": false
        }
      },
      "required": ["name", "role"],
      "oneOf": [
        {"required": ["points"], "properties": {"path": false, "values": false, "random": false}},
        {"required": ["path", "values"], "properties": {"points": false, "random": false}},
        {"required": ["random"], "properties": {"role": {"const": "select"}, "points": false, "path": false, "values": false}}
      ],
      "allOf": [],
      "additionalProperties": false
    },
    "draw": {
      "type": "object",
      "properties": {
        "log_uniform": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number", "exclusiveMinimum": 0},
                        "description": "lowest and highest; uniform in the logarithm, four significant digits"},
        "uniform": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"},
                    "description": "lowest and highest; four significant digits"},
        "choice": {"type": "array", "minItems": 1}
      },
      "minProperties": 1,
      "maxProperties": 1,
      "additionalProperties": false
    },
    "point": {
      "type": "object",
      "properties": {"label": {"$ref": "#/$defs/line"}, "set": {"$ref": "#/$defs/settings"}},
      "required": ["label", "set"],
      "additionalProperties": false
    },
    "rule": {"type": "object", "properties": {"reason": {"type": "string"}}, "minProperties": 1},
    "table": {
      "type": "object",
      "properties": {
        "select": {
          "type": "object",
          "properties": {
            "split": {"const": "valid", "description": "what is chosen on test cannot be reported on test"},
            "metric": {"$ref": "#/$defs/metric"},
            "slice": {"$ref": "#/$defs/length"},
            "at": {"type": "string", "pattern": "^(final|best|mean_last_[1-9][0-9]*)$", "default": "final"},
            "ties": {"type": "array", "items": {"type": "string",
                     "pattern": "^(lowest|valid\\.(loss|token_accuracy|sequence_accuracy|class_accuracy|perplexity|byte_perplexity|bits_per_byte)(@[0-9]+)?)$"}}
          },
          "required": ["split", "metric", "slice"],
          "additionalProperties": false
        },
        "report": {"type": "array", "minItems": 1, "items": {
          "type": "object",
          "properties": {
            "split": {"enum": ["valid", "test"]},
            "metric": {"$ref": "#/$defs/metric"},
            "slices": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/length"}}
          },
          "required": ["split", "metric", "slices"],
          "additionalProperties": false
        }},
        "primary": {
          "type": "object",
          "properties": {"metric": {"$ref": "#/$defs/metric"}, "slice": {"$ref": "#/$defs/length"}},
          "required": ["metric", "slice"],
          "additionalProperties": false
        },
        "solved_at": {"type": ["number", "null"], "minimum": 0, "maximum": 1,
                      "description": "sequence accuracy that counts as solved"},
        "baseline": {"type": "string", "description": "label of a row"},
        "test": {
          "type": "object",
          "properties": {
            "name": {"const": "sign_flip"}, "correct": {"const": "holm"}, "family": {"const": "rows x columns at primary"}
          },
          "additionalProperties": false,
          "description": "of every row against the baseline, over common seeds; made whether or not this says so"
        },
        "averages": {"type": "array", "maxItems": 0}
      },
      "required": ["report"],
      "additionalProperties": false
    },
    "metric": {"enum": []},
    "length": {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "all"}],
               "description": "all: of a split that has a single length, which may differ from cell to cell"},
    "line": {"type": "string", "minLength": 1, "pattern": "^[^\\u0000-\\u001f]*$"},
    "path": {"enum": []},
    "settings": {"type": "object", "properties": {}, "additionalProperties": false}
  }
})";

}  // namespace

Json experiment_schema(const Registry& registry) {
  const ExperimentSpec spec(registry);
  Json schema = Json::object();
  schema["$schema"] = draft;
  schema["title"] = "Phasor experiment";
  Json fields = object_schema(spec.fields());
  for (auto& [key, value] : fields.as_object()) schema[key] = std::move(value);
  // A file that extends another may leave all of this to it.
  Json& properties = *schema.find("properties");
  Json& parts = *properties.find("model")->find("properties");
  properties.find("task")->erase("required");
  for (const char* part : {"backbone", "encoding"}) parts.find(part)->erase("required");
  schema["if"] = parse_json(R"({"not": {"required": ["extends"]}})", "the schema of experiments");
  schema["then"] = parse_json(R"({
    "required": ["task", "model"],
    "properties": {
      "task": {"required": ["name"]},
      "model": {"required": ["backbone", "encoding"],
                "properties": {"backbone": {"required": ["name"]}, "encoding": {"required": ["name"]}}}
    }
  })", "the schema of experiments");
  return schema;
}

Json sweep_schema(const Registry& registry) {
  Json schema = parse_json(sweep_text, "the schema of sweeps");
  schema["$schema"] = draft;
  Json& known = *schema.find("$defs");
  const ExperimentSpec spec(registry);
  Json paths = Json::array();
  Json& settings = *known.find("settings")->find("properties");
  Json& typed = *known.find("axis")->find("allOf");
  for (PathSchema& at : path_schemas(spec.fields())) {
    if (at.path == "$schema" || at.path == "extends" || at.path == "note") continue;
    paths.push_back(at.path);
    Json chosen = Json::object(), values = Json::object();
    chosen.make_path("properties.path.const") = at.path;
    chosen["required"] = Json::Array{"path"};
    values.make_path("properties.values.items") = at.schema;
    Json branch = Json::object();
    branch["if"] = std::move(chosen);
    branch["then"] = std::move(values);
    typed.push_back(std::move(branch));
    settings[at.path] = std::move(at.schema);
  }
  (*known.find("path"))["enum"] = std::move(paths);
  Json metrics = Json::array();
  for (const std::string& metric : results::metric_names()) metrics.push_back(metric);
  (*known.find("metric"))["enum"] = std::move(metrics);
  return schema;
}

}  // namespace phasor::sweeps
