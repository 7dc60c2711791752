#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct EmbeddingForward {
  View ids, weight, y;
  std::int64_t batch, time, dim;
};

struct EmbeddingBackward {
  View ids, dy, dweight;  // dweight is always accumulated
  std::int64_t batch, time, dim, vocabulary, padding;
};

extern const Kernel<EmbeddingForward> embedding_forward;
extern const Kernel<EmbeddingBackward> embedding_backward;

}  // namespace phasor::ops
