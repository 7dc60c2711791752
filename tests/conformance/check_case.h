#pragma once

#include <string>
#include <vector>

#include "core/base/function_ref.h"
#include "core/graph/device.h"
#include "core/ops/case.h"

namespace phasor::ops {

/// Everything an op must hold, checked on one case; one line per broken promise, none when all hold.
std::vector<std::string> check_case(const OpCase& op);

/// The forward pass and the pullback of a case on a device, in both precisions, dense and strided, on memory filled with NaN:
/// against the reference and against the gradients of the processor, the same bits twice, and gradients added to what is there.
/// `before_pass` is called with 0 and 1 before the two that must agree in every bit, with 2 before the one that adds.
std::vector<std::string> check_case_on(Device& device, const OpCase& op, FunctionRef<void(int)> before_pass);

/// The same in f32 and strided alone, with operands of products rounded to bf16; `tolerance` is relative to the
/// largest value of an output or a gradient. `library`: see Stream::library_attention.
std::vector<std::string> check_case_in_bf16_on(Device& device, const OpCase& op, double tolerance,
                                               FunctionRef<void(int)> before_pass, bool library = false);

}  // namespace phasor::ops
