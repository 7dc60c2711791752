#include "core/ops/embedding/embedding.h"

#include <algorithm>

#include "core/graph/place.h"
#include "core/ops/embedding/kernel.h"

namespace phasor::ops {

namespace {

#ifndef NDEBUG
void check_range(const Tensor& ids, std::int64_t vocabulary) {
  for (std::int64_t b = 0; b < ids.rows(); ++b)
    for (std::int64_t t = 0; t < ids.width(); ++t) {
      const std::int32_t id = row<std::int32_t>(ids.view(), b)[t];
      PHASOR_CHECK(id >= -1 && id < vocabulary,
                   "token id " + std::to_string(id) + " with a vocabulary of " + std::to_string(vocabulary));
    }
}
#else
void check_range(const Tensor&, std::int64_t) {}
#endif

}  // namespace

Tensor embedding(Tape& tape, const Tensor& ids, const Tensor& weight, std::int64_t padding) {
  PHASOR_CHECK(
      ids.dtype() == Dtype::i32 && ids.shape().rank() == 2,
      "embedding ids i32 [batch, time], found " + std::string(name_of(ids.dtype())) + " " + ids.shape().text());
  PHASOR_CHECK(weight.shape().rank() == 2, "embedding weight [vocabulary, dim], found " + weight.shape().text());
  PHASOR_CHECK(padding >= -1 && padding < weight.size(0),
               "embedding padding " + std::to_string(padding) + " for weight " + weight.shape().text());
  if (tape.stream().device == nullptr && !tape.stream().dry) check_range(ids, weight.size(0));
  const std::int64_t batch = ids.size(0), time = ids.size(1), dim = weight.size(1);
  const Tensor y = tape.output({batch, time, dim}, {&weight});
  // Rows that may be touched: one per token, and no more than there are.
  const std::int64_t touched = std::min(bytes_of(y), bytes_of(weight));
  launch(tape.stream(), embedding_forward, {ids.view(), weight.view(), y.view(), batch, time, dim},
         {0.0, moved(ids, y) + touched});
  if (!tape.wants(y)) return y;
  tape.record([=, y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dweight = t.sum(weight);
    launch(t.stream(), embedding_backward,
           {ids.view(), dy.view(), dweight.tensor.view(), batch, time, dim, weight.size(0), padding},
           {0.0, moved(ids, dy) + 2 * touched});
  });
  return y;
}

}  // namespace phasor::ops
