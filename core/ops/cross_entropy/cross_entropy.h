#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Cross entropy of every row against its target class, in natural units:
///     p = softmax(z) = exp(z - m) / s, m = max_v z_v, s = sum_v exp(z_v - m);  loss = log s - (z_target - m)
///     dz = (p - onehot(target)) * dloss;  loss and dz are 0 where the target is negative (not scored)
/// logits z [rows, vocabulary]; targets i32 [rows], below the vocabulary (builds with assertions check it). Result
/// [rows]. Nothing is averaged here: a mean over the scored tokens of a whole batch is a cotangent of 1 / number scored
/// for every row, exact whatever parts the batch is cut into. `correct`, if given, receives i32 [rows]: 1 where the
/// first largest logit is the target's, else 0; 0 where not scored.
Tensor cross_entropy(Tape& tape, const Tensor& logits, const Tensor& targets, Tensor* correct = nullptr);

}  // namespace phasor::ops
