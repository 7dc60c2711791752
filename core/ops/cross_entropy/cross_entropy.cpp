#include "core/ops/cross_entropy/cross_entropy.h"

#include "core/graph/place.h"
#include "core/ops/cross_entropy/kernel.h"

namespace phasor::ops {

namespace {

#ifndef NDEBUG
void check_range(const Tensor& targets, std::int64_t vocabulary) {
  for (std::int64_t r = 0; r < targets.size(); ++r) {
    const std::int32_t target = targets.as<std::int32_t>()[r];
    PHASOR_CHECK(target < vocabulary,
                 "target " + std::to_string(target) + " with a vocabulary of " + std::to_string(vocabulary));
  }
}
#else
void check_range(const Tensor&, std::int64_t) {}
#endif

}  // namespace

Tensor cross_entropy(Tape& tape, const Tensor& logits, const Tensor& targets, Tensor* correct) {
  PHASOR_CHECK(logits.shape().rank() == 2 && logits.size(1) > 0,
               "cross_entropy logits [rows, vocabulary], found " + logits.shape().text());
  const std::int64_t rows = logits.size(0), vocabulary = logits.size(1);
  PHASOR_CHECK(targets.dtype() == Dtype::i32 && targets.shape() == Shape({rows}),
               "cross_entropy targets i32 [" + std::to_string(rows) + "], found " +
                   std::string(name_of(targets.dtype())) + " " + targets.shape().text());
  if (tape.stream().device == nullptr && !tape.stream().dry) check_range(targets, vocabulary);
  const Tensor loss = tape.output({rows}, {&logits});
  if (correct != nullptr) *correct = tape.empty({rows}, Dtype::i32);
  const Tensor kept = tape.wants(loss) ? tape.empty({rows, 2}) : Tensor();
  launch(tape.stream(), cross_entropy_forward,
         {logits.view(), targets.view(), loss.view(), correct != nullptr ? correct->view() : View(), kept.view(), rows,
          vocabulary},
         {0.0, moved(logits, targets, loss, kept) + (correct != nullptr ? bytes_of(*correct) : 0)});
  if (!tape.wants(loss)) return loss;
  tape.record([=, loss = place_of(loss)](Tape& t) {
    const Tensor dloss = t.take(loss);
    if (!dloss) return;
    const auto dlogits = t.gradient(logits);
    launch(t.stream(), cross_entropy_backward,
           {logits.view(), targets.view(), kept.view(), dloss.view(), dlogits.tensor.view(), rows, vocabulary,
            dlogits.accumulate},
           {0.0, moved(logits, targets, kept, dloss, dlogits)});
  });
  return loss;
}

}  // namespace phasor::ops
