#include "core/ops/rotate_pairs/rotate_pairs.h"

#include "core/graph/place.h"
#include "core/ops/rotate_pairs/kernel.h"

namespace phasor::ops {

namespace {

void check(const Tape& tape, const Tensor& q, const Tensor& k, const Tensor& angle) {
  const auto what = [&] {
    return "rotate_pairs of " + q.shape().text() + " and " + k.shape().text() + " by angles " + angle.shape().text();
  };
  const int rank = angle.shape().rank();
  PHASOR_CHECK(q.shape().rank() == 4 && k.shape().rank() == 4 && rank >= 2 && rank <= 4, what());
  PHASOR_CHECK(q.size(0) == k.size(0) && q.size(1) == k.size(1) && q.size(3) == k.size(3), what());
  PHASOR_CHECK(2 * angle.size(-1) <= q.size(3), what());
  if (rank < 4) {
    PHASOR_CHECK(angle.size(rank - 2) == q.size(1) && (rank == 2 || angle.size(0) == q.size(0)), what());
    PHASOR_CHECK(!tape.wants(angle), "shared angles of rotate_pairs are constants");
  } else {
    PHASOR_CHECK(angle.size(0) == q.size(0) && angle.size(1) == q.size(1), what());
    PHASOR_CHECK(angle.size(2) == q.size(2) && angle.size(2) == k.size(2), what());
  }
}

double flops(const Tensor& angle, std::int64_t rows, std::int64_t heads) {
  return 6.0 * static_cast<double>(rows * heads * angle.size(-1));
}

/// Sines and cosines of a few rows.
Tensor turns(Tape& tape, const Tensor& angle) {
  const std::int64_t heads = angle.shape().rank() == 4 ? angle.size(2) : 1;
  return tape.empty({2 * rotate_pairs_ahead, heads * angle.size(-1)});
}

}  // namespace

Rotated rotate_pairs(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& angle, PairLayout layout) {
  check(tape, q, k, angle);
  const int rank = angle.shape().rank();
  const RotatePairsShape shape{q.size(0), q.size(1), q.size(3), angle.size(-1), layout == PairLayout::interleaved,
                               rank < 4,  rank == 2};
  const Rotated out{tape.output(q.shape(), {&q, &angle}), tape.output(k.shape(), {&k, &angle})};
  launch(tape.stream(), rotate_pairs_forward,
         {shape, q.view(), k.view(), angle.view(), out.q.view(), out.k.view(), turns(tape, angle).view(), q.size(2),
          k.size(2)},
         {flops(angle, q.rows(), q.size(2) + k.size(2)), moved(q, k, angle, out.q, out.k)});
  if (!tape.wants(out.q) && !tape.wants(out.k)) return out;
  tape.record([=, q = place_of(q), k = place_of(k)](Tape& t) {
    const Tensor dq_out = t.take(out.q), dk_out = t.take(out.k);
    if (!dq_out && !dk_out) return;
    const auto pull = [&](const Tensor& from_q, const Tensor& from_k) {
      const auto dangle = t.gradient(angle);
      const auto dq = from_q ? t.gradient(q) : Tape::Gradient();
      const auto dk = from_k ? t.gradient(k) : Tape::Gradient();
      launch(t.stream(), rotate_pairs_backward,
             {shape, angle.view(), out.q.view(), out.k.view(), from_q.view(), from_k.view(), dq.tensor.view(),
              dk.tensor.view(), dangle.tensor.view(), turns(t, angle).view(), q.size(2), k.size(2), dq.accumulate,
              dk.accumulate, dangle.accumulate},
             {flops(angle, q.rows(), (from_q ? q.size(2) : 0) + (from_k ? k.size(2) : 0)),
              moved(angle, from_q, from_k, dq, dk, dangle) + (dangle.tensor && from_q ? bytes_of(out.q) : 0) +
                  (dangle.tensor && from_k ? bytes_of(out.k) : 0)});
    };
    if (dq_out && dk_out && q.node() == k.node() && t.wants(q)) {
      // One value is rotated twice: its two gradients are added one after the other.
      pull(dq_out, {});
      pull({}, dk_out);
    } else {
      pull(dq_out, dk_out);
    }
  });
  return out;
}

}  // namespace phasor::ops
