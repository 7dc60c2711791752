#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"

namespace phasor {

/// What went wrong in a plugin's code: `encoding "my_rope": forward: boom`.
class PluginFailure : public UserError {
 public:
  using UserError::UserError;
};

/// Whose code runs on this thread, and what it was asked for: so that an exception, or the end of the process that a
/// throwing destructor brings, can be told with a name.
struct Blame {
  const char* who = nullptr;  // `encoding "my_rope"`; null: nobody but us
  const char* phase = "";     // "create", "forward", "backward", "destructor", ...
};
Blame& blame();  // of this thread

/// Blames somebody for as long as it lives. `who` must live longer.
class BlameScope {
 public:
  BlameScope(const char* who, const char* phase) : before_(blame()) { blame() = {who, phase}; }
  ~BlameScope() { blame() = before_; }
  BlameScope(const BlameScope&) = delete;
  BlameScope& operator=(const BlameScope&) = delete;

 private:
  Blame before_;
};

/// Inside a catch block: throws what was caught as a PluginFailure of whom is blamed; as it is when nobody is, when it
/// has a name already, or when memory ran out.
[[noreturn]] void rethrow_blamed();

/// Inside a catch block: what was caught, on one line, whatever its type: "boom", "a value of type int".
std::string exception_text();

/// What others wrote, fit for one line of a report; the type of a C++ name.
std::string one_line(std::string_view text);
std::string demangled(const char* name);

}  // namespace phasor
