#include "core/nn/probe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "core/base/philox.h"
#include "core/graph/accumulate.h"

namespace phasor {

namespace {

using Values = std::vector<double>;
using Positions = std::vector<std::int64_t>;

constexpr std::array<std::int64_t, 9> places = {0, 14, 15, 16, 62, 63, 64, 65, probe_time - 2};
constexpr std::array<std::int64_t, 5> lengths = {1, 5, 64, 57, 3};  // of the documents of a packed row
constexpr std::int64_t changed_begin = 1, changed_end = 6;          // the second of them

/// One layer in one precision, and its input.
class Layer {
 public:
  Layer(const MixerChoice& choice, std::int64_t dim, Dtype dtype) : dim_(dim), dtype_(dtype) {
    MixerShape shape = choice.backbone->shape(*choice.backbone_options, dim);
    shape.max_time = probe_time;
    constexpr double init_std = 0.3, norm_eps = 1e-6;
    const ParameterScope root(store_, "", init_std);
    mixer_ = choice.backbone->make(*choice.backbone_options, dim, norm_eps, root.child("attn"));
    encoding_ = choice.encoding->make(*choice.encoding_options, shape, root.child("encoding"));
    store_.allocate(dtype);
    store_.initialise(1);
    gradients_ = Tensor(arena_, dtype, {store_.flat_size()});
    for (const ParameterEntry& entry : store_.entries())
      if (entry.init.kind == Init::Kind::constant && !entry.frozen) move(store_.value(entry), entry.offset);
  }

  /// Tokens begin .. end-1 of the input; those for which `other` holds have other content.
  Tensor input(Tape& tape, std::int64_t begin, std::int64_t end, const std::function<bool(std::int64_t)>& other = {}) const {
    const Tensor x = tape.empty({1, end - begin, dim_});
    for (std::int64_t t = begin; t < end; ++t) {
      const RandomStream random(2, Purpose::statistics, other && other(t) ? 1 : 0);
      for (std::int64_t i = 0; i < dim_; ++i)
        set(x, (t - begin) * dim_ + i, random.normal(static_cast<std::uint64_t>(t * dim_ + i)));
    }
    return x;
  }
  Tensor run(Tape& tape, const Tensor& x, const SequenceContext& context, State* state) const {
    const bool embeds = contains(encoding_->hook(), Hook::embedding);
    const Tensor in = embeds ? encoding_->on_embedding(tape, x, context, state) : x;
    return mixer_->forward(tape, in, *encoding_, context, state);
  }
  /// Without gradients, [tokens * dim].
  Values outputs(const std::function<bool(std::int64_t)>& other = {}, bool packed = false, std::int64_t begin = 0,
                 std::int64_t end = probe_time) {
    Tape tape(arena_, {dtype_, nullptr}, false);
    SequenceContext context;
    if (packed) context.starts = starts(tape);
    return values(run(tape, input(tape, begin, end, other), context, nullptr));
  }
  /// Gradient of the sum of the outputs for which `seeded` holds, with respect to the input.
  Values gradient(const std::function<bool(std::int64_t)>& seeded, bool packed = false) {
    zero(gradients_);
    Tape tape(arena_, {dtype_, nullptr}, true, gradients_);
    SequenceContext context;
    if (packed) context.starts = starts(tape);
    const Tensor x = tape.variable(input(tape, 0, probe_time));
    const Tensor out = run(tape, x, context, nullptr);
    const Tensor seed = tape.zeros(out.shape());
    for (std::int64_t at = 0; at < seed.size(); ++at)
      if (seeded(at / dim_)) set(seed, at, 1.0);
    if (tape.wants(out)) tape.backward(std::array{std::pair{out, seed}});
    const Tensor dx = tape.leaf_gradient(x);
    return dx ? values(dx) : Values(static_cast<std::size_t>(probe_time * dim_));
  }
  /// The sequence in pieces that end at `cuts`, the state carried from one to the next.
  Values in_pieces(const Positions& cuts) {
    Tape tape(arena_, {dtype_, nullptr}, false);
    State state;
    Values all;
    std::int64_t begin = 0;
    for (const std::int64_t end : cuts) {
      SequenceContext context;
      context.offset = begin;
      const Values part = values(run(tape, input(tape, begin, end), context, &state));
      all.insert(all.end(), part.begin(), part.end());
      begin = end;
    }
    return all;
  }

 private:
  static void set(const Tensor& to, std::int64_t at, double value) {
    if (to.dtype() == Dtype::f64)
      to.as<double>()[at] = value;
    else
      to.as<float>()[at] = static_cast<float>(value);
  }
  static Values values(const Tensor& t) {
    Values out;
    for (std::int64_t r = 0; r < t.rows(); ++r)
      for (std::int64_t i = 0; i < t.width(); ++i)
        out.push_back(t.dtype() == Dtype::f64 ? row<double>(t.view(), r)[i] : static_cast<double>(row<float>(t.view(), r)[i]));
    return out;
  }
  static Tensor starts(Tape& tape) {
    const Tensor out = tape.empty({1, probe_time}, Dtype::i32);
    std::int32_t first = 0, *to = out.as<std::int32_t>();
    for (const std::int64_t length : lengths) {
      to = std::fill_n(to, length, first);
      first += static_cast<std::int32_t>(length);
    }
    return out;
  }
  void move(const Tensor& parameter, std::int64_t offset) const {
    const RandomStream random(3, Purpose::statistics, static_cast<std::uint64_t>(offset));
    for (std::int64_t i = 0; i < parameter.size(); ++i) {
      const double old = dtype_ == Dtype::f64 ? parameter.as<double>()[i] : static_cast<double>(parameter.as<float>()[i]);
      set(parameter, i, old + 0.1 * random.normal(static_cast<std::uint64_t>(i)));
    }
  }

  std::int64_t dim_;
  Dtype dtype_;
  ParameterStore store_;
  Arena arena_;
  Tensor gradients_;
  std::unique_ptr<Encoding> encoding_;
  std::unique_ptr<Mixer> mixer_;
};

/// Adds the positions from `begin` on, among those for which `asked` holds, whose values differ by more than `bound`.
void add_differences(Positions& found, const Values& a, const Values& b, std::int64_t dim, double bound,
                     const std::function<bool(std::int64_t)>& asked = {}, std::int64_t begin = 0) {
  for (std::size_t at = 0; at < std::max(a.size(), b.size()); ++at) {
    const std::int64_t position = begin + static_cast<std::int64_t>(at) / dim;
    if (asked && !asked(position)) continue;
    const bool same = at < a.size() && at < b.size() && std::abs(a[at] - b[at]) <= bound;
    if (!same && (found.empty() || found.back() != position)) found.push_back(position);
  }
}

void sort_once(Positions& positions) {
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
}

double largest(const Values& values) {
  double top = 0.0;
  for (const double value : values) top = std::max(top, std::abs(value));
  return top;
}

bool in_changed(std::int64_t t) { return t >= changed_begin && t < changed_end; }
bool in_others(std::int64_t t) { return !in_changed(t); }

void look_ahead(Layer& layer, std::int64_t dim, ProbeReport& report) {
  const Values before = layer.outputs(), none(before.size());
  report.finite = std::all_of(before.begin(), before.end(), [](double x) { return std::isfinite(x); });
  for (const std::int64_t t : places) {
    const auto later = [t](std::int64_t at) { return at > t; };
    add_differences(report.ahead, before, layer.outputs(later), dim, 0.0, [t](std::int64_t at) { return at <= t; });
    Positions reached;
    add_differences(reached, layer.gradient([t](std::int64_t at) { return at == t; }), none, dim, 0.0, later);
    if (!reached.empty()) report.gradients.push_back(t);
  }
}

void look_across_documents(Layer& layer, std::int64_t dim, ProbeReport& report) {
  const Values before = layer.outputs({}, true), none(before.size());
  add_differences(report.documents, before, layer.outputs(in_changed, true), dim, 0.0, in_others);
  add_differences(report.documents, layer.gradient(in_others, true), none, dim, 0.0, in_changed);
}

void look_at_pieces(Layer& layer, std::int64_t dim, ProbeReport& report) {
  const Values whole = layer.outputs();
  const double bound = 1e-10 * largest(whole);
  std::vector<Positions> ways = {{1}, {2}, {15}, {63}, {64}, {65}, {129}, {}};
  for (std::int64_t t = 1; t < probe_time; ++t) ways.back().push_back(t);
  for (Positions& cuts : ways) {
    cuts.push_back(probe_time);
    add_differences(report.pieces, layer.in_pieces(cuts), whole, dim, bound);
  }
  const Values packed = layer.outputs({}, true);
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    const auto from = packed.begin() + begin * dim;
    add_differences(report.documents, {from, from + length * dim}, layer.outputs({}, false, begin, begin + length), dim, bound,
                    {}, begin);
    begin += length;
  }
}

}  // namespace

bool ProbeReport::clean() const {
  return finite && ahead.empty() && gradients.empty() && pieces.empty() && documents.empty();
}

std::string ProbeReport::text() const {
  std::string out;
  const auto add = [&](const Positions& at, const char* what) {
    if (at.empty()) return;
    const std::size_t shown = std::min<std::size_t>(at.size(), 5);
    out += fmt::format("{}position {}{} {}", out.empty() ? "LEAKS: " : "; ", fmt::join(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                       shown < at.size() ? fmt::format(" and {} more", at.size() - shown) : "", what);
  };
  add(ahead, "read later tokens");
  add(gradients, "give gradients to later tokens");
  add(pieces, "change when the sequence is cut");
  add(documents, "know of other documents of their row");
  if (!finite) out += fmt::format("{}outputs are not finite", out.empty() ? "FAILS: " : "; ");
  return out;
}

ProbeReport probe(const MixerChoice& choice, std::int64_t dim) {
  ProbeReport report;
  Layer single(choice, dim, Dtype::f32);
  look_ahead(single, dim, report);
  look_across_documents(single, dim, report);
  Layer exact(choice, dim, Dtype::f64);
  look_at_pieces(exact, dim, report);
  for (Positions* found : {&report.ahead, &report.gradients, &report.pieces, &report.documents}) sort_once(*found);
  return report;
}

}  // namespace phasor
