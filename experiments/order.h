#pragma once

#include <cstdint>

namespace phasor {

/// The row that stands at `position` of the training stream: rows are seen once per epoch, in an order that is a function
/// of (seed, epoch), without any list in memory. 0 <= result < rows.
std::int64_t training_row(std::uint64_t seed, std::int64_t position, std::int64_t rows);

}  // namespace phasor
