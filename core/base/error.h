#pragma once

#include <stdexcept>
#include <string>

namespace phasor {

/// Something the user can repair: a file, an option, a plugin. The text is lower case, says what was found, what was
/// expected and what to do, and ends without a full stop. The program ends with exit code 2.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A mistake of ours. PHASOR_CHECK throws it; it costs one trial, not the process.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);

}  // namespace phasor

/// PHASOR_CHECK(condition, message): `message` (anything that makes a std::string) is only evaluated on failure.
#define PHASOR_CHECK(condition, message)                                            \
  do {                                                                              \
    if (!(condition)) [[unlikely]]                                                  \
      ::phasor::check_failed(#condition, __FILE__, __LINE__, std::string(message)); \
  } while (false)
