#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/nn/task.h"

namespace phasor {

/// The row that stands at `position` of the training stream: rows are seen once per epoch, in an order that is a function
/// of (seed, epoch), without any list in memory. 0 <= result < rows.
std::int64_t training_row(std::uint64_t seed, std::int64_t position, std::int64_t rows);

/// Where the rows of a batch come from: row i is training_row(seed, position + i, rows of the slice).
struct BatchSource {
  std::size_t slice = 0;
  std::int64_t position = 0;
};

/// Where the rows of a lane begin; those of lane `lanes` end the batch.
constexpr std::int64_t lane_begin(std::int64_t batch, std::int64_t lanes, std::int64_t lane) { return batch * lane / lanes; }

/// Of the batch of `step` (0 = first). An epoch has ceil(rows / batch) batches of every slice, each of one slice: in the
/// order of the slices when `curriculum`, else in an order that is a function of (seed, epoch).
BatchSource batch_source(std::uint64_t seed, std::int64_t step, const std::vector<Slice>& slices, std::int64_t batch,
                         bool curriculum);

}  // namespace phasor
