#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phasor {

class Json;
class FieldList;

/// Admissible values of a number, both ends included unless marked open.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;

  static Range at_least(double low) { return {low, std::numeric_limits<double>::infinity(), false, false}; }
  static Range above(double low) { return {low, std::numeric_limits<double>::infinity(), true, false}; }
  static Range between(double low, double high) { return {low, high, false, false}; }
};

/// "above 0", "at least 1", "0 to 1", "0 (excluded) to 1"; empty when everything is admissible.
std::string range_text(const Range& range);
bool in_range(const Range& range, double value);

enum class FieldKind { boolean, integer, number, text, choice, integers, numbers, object, named };

/// One entry of a configuration: everything that reads, writes, documents and checks it.
struct Field {
  std::string name;
  std::string former;  // what it was called before, or empty
  FieldKind kind = FieldKind::number;
  std::string help;
  Range range;
  bool optional = false;                 // null is allowed and means "not set"
  std::vector<std::string> choices;      // of a choice; names of a named object
  std::shared_ptr<Json> initial;         // value when the list was made, that is, the default (object and named: null)
  std::function<void(const Json&)> set;  // the value has passed type and range
  std::function<Json()> get;
  std::shared_ptr<FieldList> members;  // of an object
  /// Of a named object: makes the chosen alternative and returns the fields bound to it (without "name").
  std::function<FieldList(const std::string&)> select;
  std::function<std::string()> selected;
  /// Of a named object: the fields of an alternative (for help, suggestions and the schema). They may be bound to an
  /// instance that is gone: only names, kinds, help, ranges, choices, `initial` and `preview` of them are used.
  std::function<FieldList(const std::string&)> preview;
  std::string initial_name;  // of a named object: what was selected when the list was made; "" = must be given

  /// Of a named object: makes the alternative `name` and keeps the fields bound to it. A name that is already bound
  /// keeps its instance and values.
  const FieldList& choose(const std::string& name) const;
  /// The fields below an object or the selected alternative of a named object. If nothing was chosen through this list
  /// yet, the alternative in force is made afresh by `select`, with its defaults. Empty when nothing is selected.
  const FieldList& bound() const;

  struct Binding {
    std::string name;
    std::shared_ptr<FieldList> members;
  };
  std::shared_ptr<Binding> binding;  // of a named object; shared by the copies of a field
};

/// One list of fields is the whole configuration of a thing: it reads and writes JSON, prints help, exports the schema.
///
///     struct Options {
///       double theta = 500000.0;
///       void fields(FieldList& f) { f.number("theta", theta, "base of the frequencies", Range::above(0.0)); }
///     };
///
/// The list keeps references to the members: it must not outlive the object, and the object must not move.
class FieldList {
 public:
  void boolean(std::string name, bool& target, std::string help);
  void boolean(std::string name, std::optional<bool>& target, std::string help);
  void integer(std::string name, std::int64_t& target, std::string help, Range range = {});
  void integer(std::string name, std::optional<std::int64_t>& target, std::string help, Range range = {});
  void number(std::string name, double& target, std::string help, Range range = {});
  void number(std::string name, std::optional<double>& target, std::string help, Range range = {});
  void text(std::string name, std::string& target, std::string help);
  void choice(std::string name, std::string& target, std::vector<std::string> choices, std::string help);
  void integers(std::string name, std::vector<std::int64_t>& target, std::string help, Range each = {});
  void numbers(std::string name, std::vector<double>& target, std::string help, Range each = {});

  template <class T>
  void object(std::string name, T& target, std::string help) {
    auto inner = std::make_shared<FieldList>();
    target.fields(*inner);
    add_object(std::move(name), std::move(inner), std::move(help));
  }

  /// An object whose "name" chooses among alternatives with fields of their own (a plugin, a schedule). `selected` may
  /// return "" when there is no default: then the file must give a name.
  void named(std::string name, std::vector<std::string> names, std::string help,
             std::function<FieldList(const std::string&)> select, std::function<std::string()> selected,
             std::function<FieldList(const std::string&)> preview);

  /// The field `name`, which is in the list, was called `former` when there were trials already: files may still say so, and
  /// the identity of a trial keeps that name. So old results stay found under their old ids.
  void formerly(const std::string& name, std::string former);

  /// Appends the fields of another list (bound to their own targets). As everywhere, a name that is there already is an
  /// InternalError.
  void append(FieldList other);

  const std::vector<Field>& all() const { return fields_; }
  const Field* find(const std::string& name) const;
  const Field* find_former(const std::string& name) const;

 private:
  void add(Field field);
  void add_object(std::string name, std::shared_ptr<FieldList> members, std::string help);
  std::vector<Field> fields_;
};

}  // namespace phasor
