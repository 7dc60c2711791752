#pragma once

#include "cli/commands.h"

namespace phasor::cli {

// What makes pictures and pages of results.
int plot(const Arguments& arguments);
int report(const Arguments& arguments);
int serve(const Arguments& arguments);

}  // namespace phasor::cli
