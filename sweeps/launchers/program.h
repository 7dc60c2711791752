#pragma once

#include <string>
#include <vector>

namespace phasor::sweeps {

/// What another program said.
struct Said {
  bool found = true;  // there is such a program
  int code = 0;       // its exit code; -1 when a signal ended it, or we did
  std::string out, error;
  bool well() const { return found && code == 0; }
};

/// Runs a program that is looked for along PATH, with nothing to read, and waits for it; after `seconds` it is ended.
Said run_program(const std::vector<std::string>& words, double seconds);

/// Its error output, or what became of it, as one line without "<program>: error: ".
std::string complaint(const std::string& program, const Said& said);

}  // namespace phasor::sweeps
