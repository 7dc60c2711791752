#pragma once

#include <string>

namespace phasor::cli {

/// Commands read their file more than once, which a pipe behind /dev/stdin or /dev/fd/N gives only once: then its bytes are kept in
/// memory in its place. UserError for a pipe that has a name of its own.
void keep_piped(const std::string& file);

}  // namespace phasor::cli
