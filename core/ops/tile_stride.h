#pragma once

#include <cstdint>

// What a kernel.h needs of tile_product.h for the size of its scratch memory; CUDA's compiler cannot read that one.

namespace phasor::tile {

constexpr std::int64_t row_block = 6;

/// Distance between the rows of a packed matrix, in elements: an odd multiple of 16, so that neighbouring rows fall into
/// different sets of the L1 cache.
constexpr std::int64_t stride(std::int64_t width) { return ((width + 15) / 16 | 1) * 16; }

}  // namespace phasor::tile
