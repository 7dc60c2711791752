#pragma once

#include <string>
#include <vector>

#include "core/spec/problems.h"

namespace phasor::sweeps {

/// Merges the `path=value` of every `--set` (or of another `option`) into an experiment. Those that cannot be understood are
/// added to `mistakes`.
void apply_settings(Document& experiment, const std::vector<std::string>& settings, std::vector<std::string>& mistakes,
                    const std::string& option = "--set");

/// One UserError with every mistake of all documents and the extra ones, a line each; nothing when there is none.
void require_none(const std::vector<const Document*>& documents, const std::vector<std::string>& mistakes);

}  // namespace phasor::sweeps
