#include <algorithm>
#include <utility>

#include "core/ops/delta_rule/kernel.h"
#include "core/ops/tile_solve.h"
#include "core/ops/vector_math.h"

// Chunk by chunk, every part a product of small matrices (docs/delta.md). Within a chunk of n steps, with L_ij the
// decay from step j to step i, b_i that from before the chunk to i, and Q already multiplied by the scale:
//     P = tril(Q K^T (.) L),  M = stril(K K^T (.) L),  e = V - b K S_0 - M U,  U = beta e,  O = b Q S_0 + P U,
//     S_n = b_n S_0 + (L_n K)^T U
// Queries and keys stand in one matrix of 2 n rows, since they meet the same matrices.

namespace phasor::ops {

namespace {

using tile::Into;
using tile::Left;
using tile::Range;
using tile::Rows;

template <class T>
T* next(T*& at, std::int64_t size) {
  return std::exchange(at, at + size);
}

std::int64_t vectors_of(std::int64_t width) { return (width + 7) / 8 * 8; }

template <class T>
Rows<const T> fixed(const Rows<T>& rows) {
  return {rows.data, rows.stride};
}

/// Rows from `first` on.
template <class T>
Rows<T> below(const Rows<T>& rows, std::int64_t first) {
  return {rows.data + first * rows.stride, rows.stride};
}

template <class T>
Left<T> rows_of(const Rows<T>& a) {
  return {a.data, a.stride, 1};
}
template <class T>
Left<T> columns_of(const Rows<T>& a) {
  return {a.data, 1, a.stride};
}

/// Columns of one head, from row `first` on.
template <class T>
Rows<T> head_of(const View& from, std::int64_t first, std::int64_t head, std::int64_t width) {
  return {row<T>(from, first) + head * width, from.stride};
}

/// to = factor * from, and zeros beyond the width.
template <class T>
void pack(std::int64_t rows, std::int64_t width, const Rows<T>& from, T factor, const Rows<T>& to) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* x = from.data + r * from.stride;
    T* y = to.data + r * to.stride;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) y[i] = factor * x[i];
    for (std::int64_t i = width; i < vectors_of(width); ++i) y[i] = T(0);
  }
}

template <class T>
void unpack(std::int64_t rows, std::int64_t width, const Rows<T>& from, T factor, bool add, const Rows<T>& to) {
  if (to.data == nullptr) return;
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* x = from.data + r * from.stride;
    T* y = to.data + r * to.stride;
    if (add) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) y[i] += factor * x[i];
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) y[i] = factor * x[i];
    }
  }
}

template <class T>
T dot(std::int64_t width, const T* x, const T* y) {
  T sum(0);
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < width; ++i) sum += x[i] * y[i];
  return sum;
}

/// y = factor * x; the same row is fine.
template <class T>
void scale_row(std::int64_t width, T factor, const T* x, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) y[i] = factor * x[i];
}

/// Rows of one column of a tensor with a number per step and head.
template <class T>
void write(const View& to, std::int64_t first, std::int64_t head, std::int64_t count, bool add, const T* from) {
  if (to.data == nullptr) return;
  for (std::int64_t t = 0; t < count; ++t) {
    T& y = row<T>(to, first + t)[head];
    y = add ? y + from[t] : from[t];
  }
}

/// Steps begin .. end-1 of a row: a chunk of one document, counted from where the document begins.
struct Part {
  std::int64_t begin, end;
  bool fresh;  // a document begins here
  std::int64_t count() const { return end - begin; }
};

class Parts {
 public:
  Parts(const View& starts, const DeltaRuleSizes& s, std::int64_t batch)
      : starts_(starts.data != nullptr ? row<std::int32_t>(starts, batch) : nullptr), time_(s.time), chunk_(s.chunk) {}

  Part from(std::int64_t begin) const {
    const std::int64_t document = document_of(begin);
    const std::int64_t limit = std::min(time_, begin + chunk_);  // begin: a whole number of chunks in
    std::int64_t end = begin + 1;
    while (end < limit && document_of(end) == document) ++end;
    return {begin, end, fresh(begin)};
  }
  Part until(std::int64_t end) const {
    const std::int64_t document = document_of(end - 1), begin = document + (end - 1 - document) / chunk_ * chunk_;
    return {begin, end, fresh(begin)};
  }

 private:
  std::int64_t document_of(std::int64_t t) const { return starts_ != nullptr ? std::max(0, starts_[t]) : 0; }
  bool fresh(std::int64_t t) const { return starts_ != nullptr && starts_[t] == t; }

  const std::int32_t* starts_;
  std::int64_t time_, chunk_;
};

/// Decays within a chunk, products of e^{g_t} throughout; ones where there are none.
template <class T>
struct Decays {
  Rows<T> between;  // L_ij for j <= i
  T *since, *beta;  // b_i, beta_i

  Decays(T*& scratch, const DeltaRuleSizes& s) : between{next(scratch, s.steps(s.chunk)), tile::stride(s.chunk)} {
    since = next(scratch, s.steps(1));
    beta = next(scratch, s.steps(1));
  }

  const T* row_of(std::int64_t i) const { return between.data + i * between.stride; }

  template <class Args>
  void read(const Args& a, std::int64_t first, std::int64_t head, std::int64_t count) const {
    T so_far(1);
    for (std::int64_t i = 0; i < count; ++i) {
      beta[i] = a.beta.data != nullptr ? row<T>(a.beta, first + i)[head] : T(1);
      const T decay = a.log_decay.data != nullptr ? math::exp(row<T>(a.log_decay, first + i)[head]) : T(1);
      since[i] = so_far *= decay;
      T* now = between.data + i * between.stride;
      const T* before = i > 0 ? now - between.stride : now;
#pragma omp simd
      for (std::int64_t j = 0; j < i; ++j) now[j] = before[j] * decay;
      now[i] = T(1);
    }
  }
};

/// The last of the n steps that rows r .. r+5 of two matrices, one below the other, belong to.
std::int64_t last_step(std::int64_t r, std::int64_t n) {
  const std::int64_t last = r + tile::row_block - 1;
  return std::min(r < n ? last : last - n, n - 1);
}

/// The lower triangles of two score matrices, one below the other; the second gets a sign and has no diagonal. What
/// stands above becomes zero.
template <class T>
void keep_past(std::int64_t n, const Decays<T>& decays, T sign, const Rows<T>& scores) {
  for (std::int64_t r = 0; r < 2 * n; ++r) {
    const std::int64_t i = r < n ? r : r - n, kept = r < n ? i + 1 : i;
    const T factor = r < n ? T(1) : sign;
    const T* decay = decays.row_of(i);
    T* x = scores.data + r * scores.stride;
#pragma omp simd
    for (std::int64_t j = 0; j < kept; ++j) x[j] *= factor * decay[j];
    for (std::int64_t j = kept; j < vectors_of(n); ++j) x[j] = T(0);
  }
}

/// What both passes hold of a chunk.
template <class T>
struct Chunk {
  Rows<T> qk;       // [2n][keys]: queries times scale, then keys
  Rows<T> columns;  // [keys][n]: keys
  Rows<T> scores;   // [2n][n]: P, then M
  Rows<T> u;        // [n][values]: beta_i e_i
  Decays<T> decays;
  T* factors;  // [key_width]

  Chunk(T*& scratch, const DeltaRuleSizes& s)
      : qk{next(scratch, s.keys(2 * s.chunk)), tile::stride(s.key_width)},
        columns{next(scratch, s.steps(s.key_width)), tile::stride(s.chunk)},
        scores{next(scratch, s.steps(2 * s.chunk)), tile::stride(s.chunk)},
        u{next(scratch, s.values(s.chunk)), tile::stride(s.value_width)},
        decays(scratch, s),
        factors(next(scratch, s.key_width)) {}

  template <class Args>
  void open(const Args& a, std::int64_t first, std::int64_t value_head, std::int64_t n) {
    const DeltaRuleSizes& s = a.sizes;
    const std::int64_t head = value_head / s.group, width = s.key_width;
    const Rows<T> keys = below(qk, n);
    pack(n, width, head_of<T>(a.q, first, head, width), static_cast<T>(a.scale), qk);
    pack(n, width, head_of<T>(a.k, first, head, width), T(1), keys);
    tile::transpose(n, width, fixed(keys), columns);
    decays.read(a, first, value_head, n);
    std::fill_n(factors, width, decays.since[n - 1]);
    tile::product<T, Into::overwrite>(2 * n, vectors_of(n), rows_of(qk), fixed(columns), scores,
                                      [=](std::int64_t r, std::int64_t j) {
                                        return j <= last_step(r, n) ? Range{0, width} : Range{};
                                      });
    keep_past(n, decays, T(1), scores);
  }
};

template <class T>
void open_state(const T* from, const DeltaRuleSizes& s, const Rows<T>& to) {
  if (from == nullptr) {
    std::fill_n(to.data, s.state(), T(0));
  } else {
    pack(s.key_width, s.value_width, Rows<T>{const_cast<T*>(from), s.value_width}, T(1), to);
  }
}

template <class T>
const T* row_or_null(const View& view, std::int64_t index) {
  return view.data != nullptr ? row<T>(view, index) : nullptr;
}

template <class T>
struct ForwardWork {
  Chunk<T> chunk;
  Rows<T> reads;  // [2n][values]: what queries and keys read from the state, then O and e
  Rows<T> state;  // [keys][values]

  ForwardWork(T* scratch, const DeltaRuleSizes& s)
      : chunk(scratch, s),
        reads{next(scratch, s.values(2 * s.chunk)), tile::stride(s.value_width)},
        state{next(scratch, s.state()), tile::stride(s.value_width)} {}
};

/// All steps of a part: o, e and the state after it.
template <class T>
void forward_part(const DeltaRuleForward& a, const ForwardWork<T>& w, const View& v, std::int64_t first,
                  std::int64_t value_head, std::int64_t n) {
  const DeltaRuleSizes& s = a.sizes;
  const Chunk<T>& c = w.chunk;
  const Decays<T>& d = c.decays;
  const std::int64_t width = vectors_of(s.value_width);
  const Rows<T> values = head_of<T>(v, first, value_head, s.value_width), errors = below(w.reads, n);
  const auto all_keys = [&](std::int64_t, std::int64_t) { return Range{0, s.key_width}; };
  tile::product<T, Into::overwrite>(2 * n, width, rows_of(c.qk), fixed(w.state), w.reads, all_keys);
  for (std::int64_t i = 0; i < n; ++i) {
    T* e = errors.data + i * errors.stride;
    const T* x = values.data + i * values.stride;
    const T since = d.since[i];
#pragma omp simd
    for (std::int64_t j = 0; j < s.value_width; ++j) e[j] = x[j] - since * e[j];
  }
  tile::solve<T>(n, width, {rows_of(below(c.scores, n)), errors, c.u, d.beta, 1});
  tile::product<T, Into::rescale>(
      n, width, rows_of(c.scores), fixed(c.u), w.reads,
      [=](std::int64_t i, std::int64_t) {
        return Range{0, last_step(i, n) + 1};
      },
      d.since);
  unpack(n, s.value_width, w.reads, T(1), false, head_of<T>(a.o, first, value_head, s.value_width));
  for (std::int64_t i = 0; i < n; ++i) {
    T* u = c.u.data + i * c.u.stride;
    scale_row(width, d.row_of(n - 1)[i], u, u);
  }
  tile::product<T, Into::rescale>(
      s.key_width, width, columns_of(below(c.qk, n)), fixed(c.u), w.state,
      [=](std::int64_t, std::int64_t) {
        return Range{0, n};
      },
      c.factors);
}

template <class T>
void forward_head(const DeltaRuleForward& a, std::int64_t batch, std::int64_t value_head) {
  const DeltaRuleSizes& s = a.sizes;
  const std::int64_t state_row = batch * s.value_heads() + value_head;
  ForwardWork<T> w(row<T>(a.scratch, 0), s);
  const Parts parts(a.starts, s, batch);
  open_state(row_or_null<T>(a.state_in, state_row), s, w.state);
  for (std::int64_t begin = 0; begin < s.time;) {
    const Part part = parts.from(begin);
    const std::int64_t first = batch * s.time + begin, n = part.count();
    if (part.fresh) std::fill_n(w.state.data, s.state(), T(0));
    // Chunks that continue a document begin at least a chunk apart: no two of them share a place.
    if (a.kept.data != nullptr && !part.fresh)
      std::copy_n(w.state.data, s.state(), row<T>(a.kept, state_row) + begin / s.chunk * s.state());
    w.chunk.open(a, first, value_head, n);
    forward_part(a, w, a.v, first, value_head, n);
    if (a.errors.data != nullptr)
      std::copy_n(below(w.reads, n).data, s.values(n), row<T>(a.errors, state_row) + s.values(begin));
    begin = part.end;
  }
  if (a.state_out.data != nullptr)
    unpack(s.key_width, s.value_width, w.state, T(1), false, Rows<T>{row<T>(a.state_out, state_row), s.value_width});
}

template <class T>
void forward(const DeltaRuleForward& a) {
  for (std::int64_t b = 0; b < a.sizes.batch; ++b)
    for (std::int64_t h = 0; h < a.sizes.value_heads(); ++h) forward_head<T>(a, b, h);
}

template <class T>
struct BackwardWork {
  Chunk<T> chunk;
  Rows<T> dscores;              // [2n][n]: gradients of P and M
  Rows<T> pulls;                // [2n][values]: dO, then the gradient of e
  Rows<T> slopes;               // [n][values]: D_i^T k_i
  Rows<T> u_columns;            // [values][n]
  Rows<T> dqk;                  // [2n][keys]
  Rows<T> flat, turned;         // [values][keys]: S_0, and the gradient of S_n, transposed
  Rows<T> slope;                // [keys][values]: the gradient of S_n, then of S_0
  T *dbeta, *dgate;             // [n]
  T *ahead, *behind, *columns;  // [n]: parts of the decays' gradients

  BackwardWork(T* scratch, const DeltaRuleSizes& s)
      : chunk(scratch, s),
        dscores{next(scratch, s.steps(2 * s.chunk)), tile::stride(s.chunk)},
        pulls{next(scratch, s.values(2 * s.chunk)), tile::stride(s.value_width)},
        slopes{next(scratch, s.values(s.chunk)), tile::stride(s.value_width)},
        u_columns{next(scratch, s.steps(s.value_width)), tile::stride(s.chunk)},
        dqk{next(scratch, s.keys(2 * s.chunk)), tile::stride(s.key_width)},
        flat{next(scratch, s.keys(s.value_width)), tile::stride(s.key_width)},
        turned{next(scratch, s.keys(s.value_width)), tile::stride(s.key_width)},
        slope{next(scratch, s.state()), tile::stride(s.value_width)} {
    for (T** place : {&dbeta, &dgate, &ahead, &behind, &columns}) *place = next(scratch, s.steps(1));
  }
};

/// Gradients of e_i, and with them of v and beta:
///     D_i^T k_i = sum_{j >= i} P_ji dO_j + L_ni D_n^T k_i - sum_{j > i} M_ji de_j
template <class T>
void pull_errors(const DeltaRuleSizes& s, const BackwardWork<T>& w, const T* errors, std::int64_t n) {
  const Chunk<T>& c = w.chunk;
  const std::int64_t width = vectors_of(s.value_width);
  tile::product<T, Into::overwrite>(n, width, rows_of(below(c.qk, n)), fixed(w.slope), w.slopes,
                                    [&](std::int64_t, std::int64_t) {
                                      return Range{0, s.key_width};
                                    });
  for (std::int64_t i = 0; i < n; ++i) {
    T* slope = w.slopes.data + i * w.slopes.stride;
    T* u = c.u.data + i * c.u.stride;
    scale_row(width, c.decays.row_of(n - 1)[i], slope, slope);
    scale_row(width, c.decays.beta[i], errors + s.values(i), u);
    w.behind[i] = dot(width, u, slope);
  }
  tile::product<T, Into::add>(n, width, columns_of(c.scores), fixed(w.pulls), w.slopes,
                              [=](std::int64_t j, std::int64_t) {
                                return Range{j, n};
                              });
  const Rows<T> m = below(c.scores, n), de = below(w.pulls, n);
  const std::int64_t last = n - 1;
  tile::solve<T>(n, width,
                 {{m.data + last * m.stride + last, -1, -m.stride},
                  {w.slopes.data + last * w.slopes.stride, -w.slopes.stride},
                  {de.data + last * de.stride, -de.stride},
                  c.decays.beta + last,
                  -1});
  for (std::int64_t i = 0; i < n; ++i)
    w.dbeta[i] = dot(width, errors + s.values(i), w.slopes.data + i * w.slopes.stride);
}

/// Gradients of P and M, times their decays. The gradient of a decay is a sum over all paths that pass it: from a step
/// before it to one at or after it, here within the chunk.
template <class T>
void pull_scores(const DeltaRuleSizes& s, const BackwardWork<T>& w, std::int64_t n, bool want_decays) {
  const Chunk<T>& c = w.chunk;
  tile::transpose(n, s.value_width, fixed(c.u), w.u_columns);
  tile::product<T, Into::overwrite>(2 * n, vectors_of(n), rows_of(w.pulls), fixed(w.u_columns), w.dscores,
                                    [&](std::int64_t r, std::int64_t j) {
                                      return j <= last_step(r, n) ? Range{0, s.value_width} : Range{};
                                    });
  if (want_decays) {
    const Rows<T> m = below(c.scores, n), dm = below(w.dscores, n);
    std::fill_n(w.columns, n, T(0));
    for (std::int64_t i = n - 1; i >= 0; --i) {
      const T *p = c.scores.data + i * c.scores.stride, *dp = w.dscores.data + i * w.dscores.stride;
      const T *k = m.data + i * m.stride, *dk = dm.data + i * dm.stride;
      T sum(0);
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = 0; j < i; ++j) sum += w.columns[j] += p[j] * dp[j] - k[j] * dk[j];
      w.dgate[i] = sum;
    }
  }
  keep_past(n, c.decays, T(-1), w.dscores);
}

/// Gradients of queries and keys. `start`: the state before the chunk; null: zeros.
template <class T>
void pull_keys(const DeltaRuleSizes& s, const BackwardWork<T>& w, const T* start, std::int64_t n) {
  const Chunk<T>& c = w.chunk;
  const std::int64_t width = vectors_of(s.key_width);
  const auto all_values = [&](std::int64_t, std::int64_t) { return Range{0, s.value_width}; };
  std::fill_n(w.ahead, n, T(0));
  if (start == nullptr) {
    std::fill_n(w.dqk.data, s.keys(2 * n), T(0));
  } else {
    tile::transpose(s.key_width, s.value_width, Rows<const T>{start, tile::stride(s.value_width)}, w.flat);
    tile::product<T, Into::overwrite>(2 * n, width, rows_of(w.pulls), fixed(w.flat), w.dqk, all_values);
    for (std::int64_t r = 0; r < 2 * n; ++r) {
      const std::int64_t i = r < n ? r : r - n;
      T* x = w.dqk.data + r * w.dqk.stride;
      scale_row(width, r < n ? c.decays.since[i] : -c.decays.since[i], x, x);
      w.ahead[i] += dot(s.key_width, c.qk.data + r * c.qk.stride, x);
    }
  }
  tile::product<T, Into::add>(2 * n, width, rows_of(w.dscores), fixed(below(c.qk, n)), w.dqk,
                              [=](std::int64_t r, std::int64_t) {
                                return Range{0, last_step(r, n) + 1};
                              });
  for (std::int64_t i = 0; i < n; ++i) {
    T* u = c.u.data + i * c.u.stride;
    scale_row(vectors_of(s.value_width), c.decays.row_of(n - 1)[i], u, u);
  }
  const Rows<T> dk = below(w.dqk, n);
  const auto later = [=](std::int64_t j, std::int64_t) { return Range{j, n}; };
  tile::transpose(s.key_width, s.value_width, fixed(w.slope), w.turned);
  tile::product<T, Into::add>(n, width, rows_of(c.u), fixed(w.turned), dk, all_values);
  tile::product<T, Into::add>(n, width, columns_of(w.dscores), fixed(c.qk), dk, later);
  tile::product<T, Into::add>(n, width, columns_of(below(w.dscores, n)), fixed(below(c.qk, n)), dk, later);
}

/// Adds the paths that leave the chunk or come into it to the gradients of the decays.
template <class T>
void pull_decays(const DeltaRuleSizes& s, const BackwardWork<T>& w, const T* start, std::int64_t n) {
  T through(0), after(0), before(0);
  for (std::int64_t i = 0; i < s.key_width && start != nullptr; ++i)
    through += dot(s.value_width, start + i * w.slope.stride, w.slope.data + i * w.slope.stride);
  through *= w.chunk.decays.since[n - 1];
  for (std::int64_t i = n - 1; i >= 0; --i) w.dgate[i] += after += w.ahead[i];
  for (std::int64_t i = 0; i < n; ++i) {
    w.dgate[i] += through + before;
    before += w.behind[i];
  }
}

/// The gradient of the state before the chunk:  b_n D_n + (b Q)^T dO - (b K)^T de.
template <class T>
void pull_state(const DeltaRuleSizes& s, const BackwardWork<T>& w, bool fresh, std::int64_t n) {
  if (fresh) return static_cast<void>(std::fill_n(w.slope.data, s.state(), T(0)));
  const Chunk<T>& c = w.chunk;
  for (std::int64_t r = 0; r < 2 * n; ++r) {
    T* x = c.qk.data + r * c.qk.stride;
    scale_row(s.key_width, r < n ? c.decays.since[r] : -c.decays.since[r - n], x, x);
  }
  tile::product<T, Into::rescale>(
      s.key_width, vectors_of(s.value_width), columns_of(c.qk), fixed(w.pulls), w.slope,
      [=](std::int64_t, std::int64_t) {
        return Range{0, 2 * n};
      },
      c.factors);
}

template <class T>
void backward_head(const DeltaRuleBackward& a, std::int64_t batch, std::int64_t value_head) {
  const DeltaRuleSizes& s = a.sizes;
  const std::int64_t state_row = batch * s.value_heads() + value_head, head = value_head / s.group;
  const bool more = value_head % s.group != 0;  // value heads that share queries and keys add to their gradients
  BackwardWork<T> w(row<T>(a.scratch, 0), s);
  const Parts parts(a.starts, s, batch);
  open_state(row_or_null<T>(a.d_state, state_row), s, w.slope);
  for (std::int64_t end = s.time; end > 0;) {
    const Part part = parts.until(end);
    const std::int64_t first = batch * s.time + part.begin, n = part.count();
    const T* start = part.fresh ? nullptr : row<T>(a.kept, state_row) + part.begin / s.chunk * s.state();
    w.chunk.open(a, first, value_head, n);
    if (a.d_o.data != nullptr)
      pack(n, s.value_width, head_of<T>(a.d_o, first, value_head, s.value_width), T(1), w.pulls);
    else
      std::fill_n(w.pulls.data, s.values(n), T(0));
    pull_errors(s, w, row<T>(a.errors, state_row) + s.values(part.begin), n);
    pull_scores(s, w, n, a.dlog_decay.data != nullptr);
    pull_keys(s, w, start, n);
    if (a.dlog_decay.data != nullptr) pull_decays(s, w, start, n);
    pull_state(s, w, part.fresh, n);
    const auto keys = [&](const View& to) {
      return to.data != nullptr ? head_of<T>(to, first, head, s.key_width) : Rows<T>{nullptr, 0};
    };
    unpack(n, s.key_width, w.dqk, static_cast<T>(a.scale), a.add_q || more, keys(a.dq));
    unpack(n, s.key_width, below(w.dqk, n), T(1), a.add_k || more, keys(a.dk));
    if (a.dv.data != nullptr)
      unpack(n, s.value_width, below(w.pulls, n), T(1), a.add_v, head_of<T>(a.dv, first, value_head, s.value_width));
    write(a.dbeta, first, value_head, n, a.add_beta, w.dbeta);
    write(a.dlog_decay, first, value_head, n, a.add_log_decay, w.dgate);
    end = part.begin;
  }
  if (a.dstate_in.data != nullptr)
    unpack(s.key_width, s.value_width, w.slope, T(1), a.add_state,
           Rows<T>{row<T>(a.dstate_in, state_row), s.value_width});
}

template <class T>
void backward(const DeltaRuleBackward& a) {
  for (std::int64_t b = 0; b < a.sizes.batch; ++b)
    for (std::int64_t h = 0; h < a.sizes.value_heads(); ++h) backward_head<T>(a, b, h);
}

}  // namespace

const Kernel<DeltaRuleForward> delta_rule_forward{"delta_rule.forward", forward<float>, forward<double>};
const Kernel<DeltaRuleBackward> delta_rule_backward{"delta_rule.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
