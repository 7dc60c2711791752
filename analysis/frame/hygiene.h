#pragma once

#include <string>
#include <vector>

#include "analysis/frame/frame.h"

namespace phasor::analysis {

/// What a reader must know of evaluation rows that training showed too, one line each: "no evaluation row is a training
/// row", or the slices where some are, the most of any trial, with the number expected by chance. Trials that did not
/// measure it are named by count.
std::vector<std::string> overlap_notes(const Frame& frame);

}  // namespace phasor::analysis
