#include "core/nn/earlier.h"

#include <algorithm>

#include "core/ops/concat_time/concat_time.h"

namespace phasor {

Tensor with_earlier(Tape& tape, const Tensor& piece, std::string_view name, std::optional<std::int64_t> window,
                    State* state) {
  if (state == nullptr) return piece;
  const Tensor past = state->get(name);
  const Tensor all = past ? ops::concat_time(tape, past, piece) : piece;
  const std::int64_t hidden = window ? std::max<std::int64_t>(0, all.size(1) - (*window - 1)) : 0;
  state->set(name, hidden == 0 ? all : ops::concat_time(tape, past, piece, hidden));
  return all;
}

}  // namespace phasor
