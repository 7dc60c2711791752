#pragma once

namespace phasor {

/// Revision of the numbers that core makes (ops, model, optimiser, random streams). Raised when a change of code changes
/// results; stored with every trial, and a table refuses to mix revisions. Plugins have their own (core/plugin/registry.h).
inline constexpr int numerics_revision = 3;

}  // namespace phasor
