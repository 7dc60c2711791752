#pragma once

#include "core/graph/launch.h"

namespace phasor {

/// to = from, or to += from. Rows may be strided; shapes agree in rows and width.
void copy(const Stream& stream, const Tensor& from, const Tensor& to, bool accumulate = false);
/// out = a + b.
void add(const Stream& stream, const Tensor& a, const Tensor& b, const Tensor& out);
/// All bits zero (any element type). Without a stream it is no launch: for what is set up once.
void zero(const Stream& stream, const Tensor& tensor);
void zero(const Tensor& tensor);

}  // namespace phasor
