#pragma once

#include <cstdint>
#include <string>

#include "experiments/spec.h"

namespace phasor {

/// Bytes that a training on the processor cannot do without, reckoned from shapes alone: nothing is allocated, however large the
/// model. Parameters, gradients, the optimiser's memory and evaluation rows are exact; of the activations it is the input of every
/// layer, a small part of what `count_cost` finds by walking through a step.
struct MemoryNeed {
  double parameter_bytes = 0.0, gradient_bytes = 0.0, optimizer_bytes = 0.0, activation_bytes = 0.0, data_bytes = 0.0;
  double bytes() const { return parameter_bytes + gradient_bytes + optimizer_bytes + activation_bytes + data_bytes; }
};
MemoryNeed least_memory(const ExperimentSpec& spec);

/// Of this machine, or what a control group lets this process have of it.
double machine_memory();

/// "51.2 GB"
std::string bytes_text(double bytes);
/// "at least 205.1 GB: parameters 29.3 GB, gradients of 4 lanes 117.2 GB, ..."
std::string memory_text(const ExperimentSpec& spec, const MemoryNeed& need);
/// Why the experiment cannot be trained on the processor of this machine, with what to do; empty when nothing is known against it, or
/// where this process has a limit of its own.
std::string memory_problem(const ExperimentSpec& spec);

}  // namespace phasor
