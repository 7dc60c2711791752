#include "core/ops/case.h"
#include "core/ops/embedding/embedding.h"

namespace phasor::ops {

namespace {

OpCase make(const std::string& name, Shape ids, std::int64_t vocabulary, std::int64_t dim) {
  OpCase op;
  op.name = "embedding_" + name;
  op.inputs.push_back({"ids", ids, 0.0, 0.0, vocabulary});
  op.inputs.push_back({"weight", {vocabulary, dim}});
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{embedding(tape, in[0], in[1])}; };
  op.reference = [=](std::span<const Array> in) {
    Array y{{ids[0], ids[1], dim}, {}};
    for (const double id : in[0].values)
      for (std::int64_t i = 0; i < dim; ++i)
        y.values.push_back(id < 0.0 ? 0.0 : in[1].values[static_cast<std::size_t>(static_cast<std::int64_t>(id) * dim + i)]);
    return std::vector{y};
  };
  return op;
}

OpCase absent(const std::string& name, Shape ids, std::int64_t vocabulary, std::int64_t dim) {
  OpCase op = make(name, ids, vocabulary, dim);
  op.inputs[0].ignored = true;
  return op;
}

// The padding row is looked up but does not learn. To differences of the reference it must look like a constant, so its
// value is fixed, and the reference reads the fixed value whatever the table holds.
OpCase padded(const std::string& name, Shape ids, std::int64_t vocabulary, std::int64_t dim, std::int64_t padding) {
  OpCase op = make(name, ids, vocabulary, dim);
  const auto kept = [=](std::size_t element) { return static_cast<std::int64_t>(element) / dim == padding; };
  op.prepare = [=](std::vector<Array>& in) {
    for (std::size_t i = 0; i < in[1].values.size(); ++i)
      if (kept(i)) in[1].values[i] = 0.5;
  };
  op.run = [=](Tape& tape, std::span<const Tensor> in) { return std::vector{embedding(tape, in[0], in[1], padding)}; };
  op.reference = [=, plain = op.reference](std::span<const Array> in) {
    std::vector<Array> frozen(in.begin(), in.end());
    for (std::size_t i = 0; i < frozen[1].values.size(); ++i)
      if (kept(i)) frozen[1].values[i] = 0.5;
    return plain(frozen);
  };
  return op;
}

}  // namespace

std::vector<OpCase> embedding_cases() {
  return {make("no_rows", {0, 3}, 4, 8),
          make("no_time", {2, 0}, 4, 8),
          make("one", {1, 1}, 1, 1),
          make("repeated", {7, 9}, 3, 7),
          make("sparse", {2, 3}, 65, 64),
          make("many", {2, 65}, 64, 65),
          // A device sorts tokens by 8 bits of their ids at a time and cuts the sorted ones into pieces.
          make("long_runs", {3, 700}, 5, 3),
          make("two_digits", {2, 150}, 300, 5),
          make("three_digits", {1, 40}, 70'000, 1),
          make("wide", {2, 70}, 4, 131),
          absent("absent", {5, 7}, 4, 8),
          absent("absent_long", {2, 300}, 2, 2),
          padded("padding", {5, 7}, 4, 8, 2),
          padded("padding_first", {3, 9}, 5, 3, 0),
          padded("padding_last", {2, 7}, 3, 1, 2)};
}

}  // namespace phasor::ops
