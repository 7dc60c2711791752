#pragma once

#include <cstdint>
#include <span>

#include "core/base/function_ref.h"
#include "core/graph/tape.h"
#include "core/nn/model.h"
#include "experiments/data.h"

namespace phasor {

/// A fixed part of the batch and its gradient.
struct Lane {
  std::int64_t first_row = 0, row_count = 0;  // of the batch
  Rows rows;
  Tensor gradients;  // flat
  std::int64_t targets = 0;
  double loss_sum = 0.0;
};

/// A micro-batch as the model sees it.
struct MicroBatch {
  Columns ids;     // per stream, i32 [rows, tokens]
  Tensor starts;   // i32 [rows, tokens], or empty
  Tensor index;    // i32 [capacity], scored positions in order, then -1
  Tensor targets;  // i32 [capacity], then -1
};

/// For `count` rows that are like these, in memory from `make`, which gets the shape of i32 tensors. Nothing is written.
MicroBatch make_micro_batch(const Rows& like, std::int64_t count, std::int64_t capacity, FunctionRef<Tensor(const Shape&)> make);
/// Rows `first` and following, as many as it has room for; it lies in memory of the processor.
void fill_micro_batch(const MicroBatch& to, const Rows& rows, std::int64_t first);

/// Loss of every scored position [capacity]; 0 beyond those that there are. `correct`: as ops::cross_entropy has it.
Tensor losses_of(Tape& tape, const Model& model, const MicroBatch& batch, const SequenceContext& context, Tensor* correct = nullptr);

}  // namespace phasor
