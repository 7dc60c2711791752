#pragma once

#include <string>

#include "core/spec/fields.h"

namespace phasor {

/// Where an unknown key was found.
struct KeyPlace {
  const FieldList& fields;       // valid here
  const Field* named = nullptr;  // the named object these are the fields of, and
  std::string alternative;       // which of its alternatives
  std::string path;              // of the object
  const FieldList& root;
};

/// `unknown key "num-heads", did you mean "heads"?`, or what else helps: the section the key belongs to, the other
/// alternative that has it, the keys that are valid here.
std::string unknown_key_message(const std::string& key, const KeyPlace& place);

/// `, did you mean "rope"?` or nothing.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace phasor
