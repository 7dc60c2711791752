#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/spec/fields.h"
#include "core/spec/json.h"

namespace phasor {

/// Where something stands in a file; lines and columns count from 1, 0 = unknown (e.g. from --set).
struct Position {
  int line = 0;
  int column = 0;
  int file = 0;  // 0 = the document's own, then those it extends, the nearest first
};

/// One mistake in a file of the user.
struct Problem {
  std::string path;  // "optimizer.lr"; "axes[1].points[0].set" for lists; empty = the file as a whole
  Position position;
  std::string message;  // "unknown key \"learnig_rate\", did you mean \"optimizer.lr\"?"
  std::string origin;   // "--set" when the value came from there; empty = the file
};

/// A JSON document with the place of every value, and every mistake found so far. Mistakes are collected, never thrown
/// one by one: `require_none` throws one UserError that lists them all, sorted by line, each as
/// `FILE:line:column: path: message`.
class Document {
 public:
  /// Reads and scans a file (UserError when it cannot be opened). Syntax mistakes (comments, trailing commas, duplicate
  /// keys, unterminated strings, single quotes, ...) become problems; what can be understood is still in `value()`.
  /// An empty file, one that is not UTF-8 and one nested too deeply are problems too.
  static Document read(const std::string& file);
  static Document parse(std::string text, std::string name);

  /// As `read`, on top of the file that a member "extends" names, relative to the file that says so, and so on down: objects
  /// merge, lists are replaced (see `merge`), every value keeps its place, mistakes of all files are in one report. A file
  /// that comes to extend itself is a mistake that shows the chain. "extends" is gone from the value. `complete` is called
  /// for every file before another is merged into it, to write out names that it leaves to their defaults.
  using Complete = std::function<void(Document&)>;
  static Document read_extended(const std::string& file, const Complete& complete = {});

  const std::string& name() const { return files_.front(); }  // file name as given
  const std::string& file_of(const std::string& path) const;  // where the value at the path was given
  const Json& value() const { return value_; }
  Json& value() { return value_; }
  Position position_of(const std::string& path) const;      // of the value at the path; its nearest parent if unknown
  Position key_position_of(const std::string& path) const;  // of the key

  /// Merges a value from elsewhere (the command line) at a path. Positions at and below it are forgotten; mistakes
  /// there are reported with `origin` ("--set") in place of the file.
  void set(const std::string& path, const Json& value, const std::string& origin);

  /// Calls the member `from` of the object at `path` ("" = the root) `to`, where it stands.
  void rename(const std::string& path, const std::string& from, const std::string& to);

  /// A mistake at a value. Ignored where the scanner could not read the value: that has been reported.
  void problem(std::string path, std::string message);
  void key_problem(std::string path, std::string message);            // at the key
  const std::vector<Problem>& problems() const { return problems_; }  // in the order of discovery
  bool broken(const std::string& path) const;  // the scanner could not read the value; it stands as null
  void require_none() const;

 private:
  std::vector<std::string> files_;  // its own name, then those it extends
  Json value_;
  std::vector<std::pair<std::string, Position>> values_, keys_;  // sorted by path
  std::vector<std::string> broken_;                              // sorted
  std::vector<std::pair<std::string, std::string>> origins_;     // (path, origin), the latest last
  std::vector<Problem> problems_;

  void add_problem(std::string path, Position position, std::string message);
  void put_on(Document below);
  static Document read_link(const std::string& file, std::vector<std::string>& chain, const Complete& complete);
};

/// Reads `value` (an object) into the targets of `fields`. Unknown keys, wrong types (a quoted number, 3.5 for an
/// integer, 1e400), values out of range and unknown names become problems of `document` at `path`.<key>; an unknown key
/// names the nearest valid key of this object, and, when the key is valid in another section of `root` or under another
/// name of this object, that one. Everything that is right is read, whatever else is wrong; a key that is not there
/// keeps its value, an object without "name" the selected alternative. A former name (`FieldList::formerly`) is read as the
/// present one, unless that is there too.
void read_fields(const FieldList& fields, const Json& value, const std::string& path, Document& document,
                 const FieldList& root);

/// Gives members that a file calls by a former name their present one, so that values of other files merge with them.
void use_present_names(const FieldList& fields, const std::string& path, Document& document);

/// The current values with every default written out; a named object begins with its "name". `former`: a field that was
/// renamed has its first name, as in the identity of trials from before.
enum class Names { present, former };
Json write_fields(const FieldList& fields, Names names = Names::present);

/// Values that differ from the defaults of the chosen names: (path, value, default). A chosen name is listed where it
/// differs from a default name ("optimizer.schedule.name").
struct Difference {
  std::string path;
  Json value, initial;
};
std::vector<Difference> differences(const FieldList& fields);

/// Help text: one line per field (name, default, range or choices, help); nested objects indented.
std::string help_text(const FieldList& fields, int indent = 0);

/// Parses `path=value` of a `--set`: JSON where it is JSON, otherwise a string. `1e-3` is a number; `"true"` is a
/// string. UserError for a missing "=", a malformed path, broken JSON in brackets or quotes, and a number that does not
/// fit.
std::pair<std::string, Json> parse_setting(const std::string& setting);

/// Deep merge of a patch: objects merge, lists are replaced; when a patch changes an object's "name" the object is
/// replaced, so that it takes the new plugin's defaults. An object without "name" counts as changed by a patch with
/// one: merge into complete values (`write_fields`) to keep the settings of a name that was left to its default.
void merge(Json& base, const Json& patch);

}  // namespace phasor
