#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/spec/json.h"

namespace phasor {

struct StrictError {
  std::size_t offset = 0;  // in bytes
  std::string message;
};

/// The value of a text that is JSON and nothing else, read by nlohmann/json; nothing and the first error otherwise.
std::optional<Json> strict_json(std::string_view text, StrictError& error);

}  // namespace phasor
