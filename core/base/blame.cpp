#include "core/base/blame.h"

#include <cstdlib>
#include <cxxabi.h>
#include <exception>
#include <memory>
#include <new>
#include <typeinfo>

namespace phasor {

Blame& blame() {
  thread_local Blame current;
  return current;
}

void rethrow_blamed() {
  const Blame now = blame();
  try {
    throw;
  } catch (const PluginFailure&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    if (now.who == nullptr) throw;
    throw PluginFailure(std::string(now.who) + ": " + now.phase + ": " + exception_text());
  }
}

std::string exception_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return one_line(error.what());
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    return type == nullptr ? "something that is no C++ exception" : "a value of type " + demangled(type->name());
  }
}

std::string one_line(std::string_view text) {
  constexpr std::size_t limit = 300;
  std::string line(text.substr(0, limit));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  if (text.size() > limit) line += "...";
  return line;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace phasor
