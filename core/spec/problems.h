#pragma once

#include <string>
#include <vector>

#include "core/spec/fields.h"
#include "core/spec/json.h"

namespace phasor {

/// Where something stands in a file; lines and columns count from 1, 0 = unknown (e.g. from --set).
struct Position {
  int line = 0;
  int column = 0;
};

/// One mistake in a file of the user.
struct Problem {
  std::string path;      // "optimizer.lr"; "axes[1].points[0].set" for lists; empty = the file as a whole
  Position position;
  std::string message;   // "unknown key \"learnig_rate\", did you mean \"optimizer.lr\"?"
};

/// A JSON document with the place of every value, and every mistake found so far. Mistakes are collected, never thrown
/// one by one: `require_none` throws one UserError that lists them all, sorted by line, each as
/// `FILE:line:column: path: message`.
class Document {
 public:
  /// Reads and scans a file (UserError when it cannot be opened). Syntax mistakes (comments, trailing commas, duplicate
  /// keys, unterminated strings, single quotes, ...) become problems; what can be understood is still in `value()`.
  static Document read(const std::string& file);
  static Document parse(std::string text, std::string name);

  const std::string& name() const { return name_; }  // file name as given
  const Json& value() const { return value_; }
  Json& value() { return value_; }
  Position position_of(const std::string& path) const;      // of the value at the path; its nearest parent if unknown
  Position key_position_of(const std::string& path) const;  // of the key

  void problem(std::string path, std::string message);       // at the value
  void key_problem(std::string path, std::string message);   // at the key
  const std::vector<Problem>& problems() const { return problems_; }
  void require_none() const;

 private:
  std::string name_;
  Json value_;
  std::vector<std::pair<std::string, Position>> values_, keys_;  // sorted by path
  std::vector<Problem> problems_;
};

/// Reads `value` (an object) into the targets of `fields`. Unknown keys, wrong types (a quoted number, 3.5 for an
/// integer, 1e400), values out of range and unknown names become problems of `document` at `path`.<key>; an unknown key
/// names the nearest valid key of this object, and, when the key is valid in another section of `root`, that section.
void read_fields(const FieldList& fields, const Json& value, const std::string& path, Document& document,
                 const FieldList& root);

/// The current values with every default written out.
Json write_fields(const FieldList& fields);

/// Values that differ from the defaults of the chosen names: (path, value, default).
struct Difference {
  std::string path;
  Json value, initial;
};
std::vector<Difference> differences(const FieldList& fields);

/// Help text: one line per field (name, default, range or choices, help); nested objects indented.
std::string help_text(const FieldList& fields, int indent = 0);

/// Parses the value of a `--set path=value`: JSON where it is JSON, otherwise a string. `1e-3` is a number; `"true"` is a string.
std::pair<std::string, Json> parse_setting(const std::string& setting);

/// Deep merge of a patch: objects merge, lists are replaced; when a patch changes an object's "name" the object is
/// replaced, so that it takes the new plugin's defaults.
void merge(Json& base, const Json& patch);

}  // namespace phasor
