#include "experiments/lane.h"

#include <algorithm>

#include "core/ops/cross_entropy/cross_entropy.h"

namespace phasor {

MicroBatch make_micro_batch(const Rows& like, std::int64_t count, std::int64_t capacity, FunctionRef<Tensor(const Shape&)> make) {
  MicroBatch out;
  for (std::int64_t s = 0; s < like.streams; ++s) out.ids.push_back(make({count, like.tokens}));
  if (!like.starts.empty()) out.starts = make({count, like.tokens});
  out.index = make({capacity});
  out.targets = make({capacity});
  return out;
}

void fill_micro_batch(const MicroBatch& to, const Rows& rows, std::int64_t first) {
  const std::int64_t count = to.ids[0].size(0), capacity = to.index.size();
  for (std::int64_t s = 0; s < rows.streams; ++s)
    for (std::int64_t r = 0; r < count; ++r)
      std::copy_n(rows.ids.data() + ((first + r) * rows.streams + s) * rows.tokens, rows.tokens,
                  to.ids[static_cast<std::size_t>(s)].as<std::int32_t>() + r * rows.tokens);
  if (to.starts) std::copy_n(rows.starts.data() + first * rows.tokens, count * rows.tokens, to.starts.as<std::int32_t>());
  const std::int32_t* targets = rows.targets.data() + first * rows.tokens;
  auto *index = to.index.as<std::int32_t>(), *classes = to.targets.as<std::int32_t>();
  std::int64_t used = 0;
  for (std::int64_t at = 0; at < count * rows.tokens; ++at) {
    if (targets[at] < 0) continue;
    PHASOR_CHECK(used < capacity, "a task scores no more positions than it declared");
    index[used] = static_cast<std::int32_t>(at);
    classes[used++] = targets[at];
  }
  std::fill(index + used, index + capacity, -1);
  std::fill(classes + used, classes + capacity, -1);
}

Tensor losses_of(Tape& tape, const Model& model, const MicroBatch& batch, const SequenceContext& context, Tensor* correct) {
  return ops::cross_entropy(tape, model.logits(tape, batch.ids, context, batch.index), batch.targets, correct);
}

}  // namespace phasor
