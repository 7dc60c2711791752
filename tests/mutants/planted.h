#pragma once

#include <cstdlib>
#include <cstring>

namespace phasor::mutants {

/// Whether this process is to make the mistake of that name (plant.py).
inline bool planted(const char* name) {
  const char* const wanted = std::getenv("PHASOR_PLANTED");
  return wanted != nullptr && std::strcmp(wanted, name) == 0;
}

}  // namespace phasor::mutants

/// The same, asked once for each place: it stands in loops over elements.
#define PHASOR_PLANTED(name)                                            \
  [] {                                                                  \
    static const bool alive = ::phasor::mutants::planted(name);         \
    return alive;                                                       \
  }()
