#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/problems.h"

namespace phasor::sweeps {

/// Keys that mean something in a later version, with what to do until then.
using LaterKeys = std::vector<std::pair<std::string, std::string>>;

/// Reads lists of objects, which field lists do not describe. Every mistake becomes a problem of the document; what is
/// wrong is returned as nothing.
class Reader {
 public:
  explicit Reader(Document& document) : document_(document) {}

  bool object(const Json& value, const std::string& path);
  /// Unknown keys, with the nearest known one.
  void keys(const Json& object, const std::string& path, const std::vector<std::string>& known,
            const LaterKeys& later = {});
  /// A missing member is a problem of the object when it is required.
  const Json* member(const Json& object, const std::string& path, const char* key, bool required);
  std::optional<std::string> text(const Json& object, const std::string& path, const char* key, bool required);
  std::optional<std::string> choice(const Json& object, const std::string& path, const char* key,
                                    const std::vector<std::string>& choices, bool required);
  /// Whether an axis can vary a dotted path: it is well formed, and changes results. Experiments decide whether it exists.
  bool experiment_path(const std::string& path, const std::string& place);
  const Json::Array* list(const Json& object, const std::string& path, const char* key, bool required);

  void problem(const std::string& path, std::string message) { document_.problem(path, std::move(message)); }
  Document& document() { return document_; }

 private:
  Document& document_;
};

/// "axes" + "name" -> "axes.name"
std::string below(const std::string& path, const std::string& key);
std::string element(const std::string& path, std::size_t index);

/// What stands for a value in names and tables: every digit, a text without its quotes.
std::string label_text(const Json& value);

/// `found 3`, `found a list`: how messages begin.
std::string found_text(const Json& value);

}  // namespace phasor::sweeps
