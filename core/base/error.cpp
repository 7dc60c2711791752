#include "core/base/error.h"

#include <string_view>

namespace phasor {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::string_view name(file);
  if (const auto slash = name.find_last_of('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  throw InternalError(message + " [" + condition + " is false, " + std::string(name) + ":" + std::to_string(line) +
                      "]");
}

}  // namespace phasor
