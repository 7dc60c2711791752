#include "experiments/decode.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/ops/argmax/argmax.h"
#include "experiments/order.h"
#include "experiments/trainer.h"

namespace phasor {

namespace {

using Clock = std::chrono::steady_clock;

template <class Work>
double seconds_of(const Work& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Dtype precision_of(const ExperimentSpec& spec) { return spec.train.precision == "f64" ? Dtype::f64 : Dtype::f32; }

/// As the trainer's.
Stream stream_of(const ExperimentSpec& spec) {
  Stream stream{precision_of(spec)};
  if (spec.train.precision == "tf32") stream.products = ProductPrecision::tf32;
  if (spec.train.precision == "bf16") stream.products = ProductPrecision::bf16;
  return stream;
}

/// Of the longest training slice.
std::int64_t length_of(const ExperimentSpec& spec) {
  const auto task = spec.make_task();
  std::int64_t tokens = 0;
  for (const Slice& slice : task->slices(Split::train)) tokens = std::max(tokens, task->tokens(slice));
  return tokens;
}

/// The same sizes but for the first.
Shape with_batch(const Shape& s, std::int64_t batch) {
  switch (s.rank()) {
    case 1: return {batch};
    case 2: return {batch, s[1]};
    case 3: return {batch, s[1], s[2]};
    case 4: return {batch, s[1], s[2], s[3]};
    default: return {batch, s[1], s[2], s[3], s[4]};
  }
}

/// What several pieces of a batch carry, as what the whole batch carries.
Tensor joined(Arena& arena, const std::vector<Tensor>& pieces) {
  std::int64_t batch = 0;
  for (const Tensor& piece : pieces) batch += piece.size(0);
  const Tensor all(arena, pieces.front().dtype(), with_batch(pieces.front().shape(), batch));
  auto* to = static_cast<std::byte*>(all.data());
  for (const Tensor& piece : pieces) {
    const std::size_t element = size_of(piece.dtype());
    const auto width = static_cast<std::size_t>(piece.width()) * element;
    const auto stride = static_cast<std::size_t>(piece.row_stride()) * element;
    for (std::int64_t row = 0; row < piece.rows(); ++row, to += width)
      std::memcpy(to, static_cast<const std::byte*>(piece.data()) + static_cast<std::size_t>(row) * stride, width);
  }
  return all;
}

std::vector<State> joined(Arena& arena, const std::vector<std::vector<State>>& pieces) {
  if (pieces.size() == 1) return pieces.front();
  std::vector<State> all(pieces.front().size());
  for (std::size_t layer = 0; layer < all.size(); ++layer)
    for (const auto& [name, first] : pieces.front()[layer].entries()) {
      std::vector<Tensor> of_pieces;
      for (const std::vector<State>& piece : pieces) of_pieces.push_back(piece[layer].get(name));
      all[layer].set(name, joined(arena, of_pieces));
    }
  return all;
}

std::int64_t bytes_of(const std::vector<State>& states) {
  std::int64_t bytes = 0;
  for (const State& state : states)
    for (const auto& [name, tensor] : state.entries()) bytes += phasor::bytes_of(tensor);
  return bytes;
}

Tensor some_tokens(Tape& tape, std::int64_t first_row, std::int64_t rows, std::int64_t tokens, std::int64_t vocabulary) {
  const Tensor ids = tape.empty({rows, tokens}, Dtype::i32);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t t = 0; t < tokens; ++t)
      ids.as<std::int32_t>()[r * tokens + t] = static_cast<std::int32_t>((first_row + r + (31 + first_row + r) * t) % vocabulary);
  return ids;
}

/// Reads a piece of every row; the class that is most likely after it, i32 [rows].
Tensor likely_next(Tape& tape, const Model& model, std::int64_t streams, const Tensor& ids, std::int64_t offset, std::vector<State>& states) {
  const std::int64_t rows = ids.size(0), time = ids.size(1);
  const std::vector<Tensor> all(static_cast<std::size_t>(streams), ids);
  const Tensor last = tape.empty({rows}, Dtype::i32);
  for (std::int64_t r = 0; r < rows; ++r) last.as<std::int32_t>()[r] = static_cast<std::int32_t>(r * time + time - 1);
  return ops::argmax(tape, model.logits(tape, all, {offset, false}, last, &states));
}

/// As tokens: classes are some of them.
Tensor as_tokens(Tape& tape, const Tensor& best, std::int64_t first) {
  const Tensor ids = tape.empty({best.size(0), 1}, Dtype::i32);
  for (std::int64_t r = 0; r < best.size(0); ++r)
    ids.as<std::int32_t>()[r] = best.as<std::int32_t>()[r] + static_cast<std::int32_t>(first);
  return ids;
}

}  // namespace

/// The rows of a thread.
struct Continuation::Part {
  Part(const Stream& stream, std::int64_t first, std::int64_t count) : first_row(first), rows(count), tape(arena, stream, false) {}
  std::int64_t first_row, rows;
  Arena arena;
  Tape tape;
  std::vector<State> states;
  Tensor next;  // i32 [rows, 1], tokens
  std::int64_t read = 0, offset = 0;  // tokens: by `read`, altogether
};

Continuation::Continuation(const ExperimentSpec& spec, std::int64_t rows) : spec_(spec), task_(spec.make_task()) {
  if (task_->reading() == Reading::last)
    throw UserError("task: " + spec.task.name + " reads a row as a whole, at its last position: there is nothing to continue token by token");
  model_ = std::make_unique<Model>(spec.model, DataShape(*task_), spec.mixer(), parameters_);
  parameters_.allocate(precision_of(spec));
  parameters_.initialise(static_cast<std::uint64_t>(spec.seed));
  const std::int64_t threads = std::min(spec.run.threads, rows);
  pool_ = std::make_unique<ThreadPool>(threads);
  for (std::int64_t i = 0; i < threads; ++i) {
    const std::int64_t first = lane_begin(rows, threads, i);
    parts_.push_back(std::make_unique<Part>(stream_of(spec), first, lane_begin(rows, threads, i + 1) - first));
  }
}

Continuation::~Continuation() = default;

void Continuation::read_rows(Part& part, std::int64_t tokens) const {
  part.states.clear();
  part.next = {};
  std::vector<std::vector<State>> pieces;
  std::vector<Tensor> next;
  const std::int64_t micro_batch = spec_.train.micro_batch.value();
  for (std::int64_t first = 0; first < part.rows; first += micro_batch) {
    pieces.emplace_back(static_cast<std::size_t>(model_->layers()));
    const Tensor ids = some_tokens(part.tape, part.first_row + first, std::min(micro_batch, part.rows - first), tokens, task_->vocabulary());
    next.push_back(as_tokens(part.tape, likely_next(part.tape, *model_, task_->streams(), ids, 0, pieces.back()), task_->classes().first));
  }
  part.states = joined(part.arena, pieces);
  part.next = joined(part.arena, next);
  part.read = part.offset = tokens;
}

void Continuation::step_rows(Part& part) const {
  const Tensor best = likely_next(part.tape, *model_, task_->streams(), part.next, part.offset, part.states);
  part.next = as_tokens(part.tape, best, task_->classes().first);
  ++part.offset;
}

void Continuation::read(std::int64_t tokens) {
  pool_->run(static_cast<std::int64_t>(parts_.size()), [&](std::int64_t i, std::int64_t) { read_rows(*parts_[static_cast<std::size_t>(i)], tokens); });
}

void Continuation::step() {
  pool_->run(static_cast<std::int64_t>(parts_.size()), [&](std::int64_t i, std::int64_t) { step_rows(*parts_[static_cast<std::size_t>(i)]); });
}

std::vector<std::vector<std::int32_t>> Continuation::read_tokens() const {
  std::vector<std::vector<std::int32_t>> all;
  for (const auto& part : parts_) {
    const Tensor ids = some_tokens(part->tape, part->first_row, part->rows, part->read, task_->vocabulary());
    for (std::int64_t r = 0; r < part->rows; ++r)
      all.emplace_back(ids.as<std::int32_t>() + r * part->read, ids.as<std::int32_t>() + (r + 1) * part->read);
  }
  return all;
}

std::vector<std::int32_t> Continuation::next_tokens() const {
  std::vector<std::int32_t> all;
  for (const auto& part : parts_) all.insert(all.end(), part->next.as<std::int32_t>(), part->next.as<std::int32_t>() + part->rows);
  return all;
}

std::int64_t Continuation::parameters() const { return parameters_.total(); }

std::int64_t Continuation::state_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& part : parts_) bytes += bytes_of(part->states);
  return bytes;
}

std::int64_t Continuation::memory_bytes() const {
  std::int64_t bytes = phasor::bytes_of(parameters_.flat());
  for (const auto& part : parts_) bytes += part->arena.system_bytes();
  return bytes;
}

std::int64_t Continuation::least_step_bytes() const {
  const auto element = static_cast<std::int64_t>(size_of(parameters_.flat().dtype()));
  std::int64_t numbers = parameters_.total();
  // A table that the head shares is read whole.
  if (!spec_.model.tie_head && spec_.model.embedding.kind == "learned") {
    std::int64_t rows = 0;
    for (const auto& part : parts_) rows += part->rows;
    numbers -= (task_->vocabulary() - std::min(rows * task_->streams(), task_->vocabulary())) * spec_.model.dim;
  }
  return numbers * element + state_bytes();
}

Profile Continuation::count_step(std::int64_t rows, std::int64_t tokens) const {
  Arena arena;
  Profile profile;
  Tape tape(arena, {precision_of(spec_), &profile, true}, false);
  std::vector<State> states(static_cast<std::size_t>(model_->layers()));
  likely_next(tape, *model_, task_->streams(), some_tokens(tape, 0, rows, tokens, task_->vocabulary()), 0, states);
  profile.clear();
  likely_next(tape, *model_, task_->streams(), some_tokens(tape, 0, rows, 1, task_->vocabulary()), tokens, states);
  return profile;
}

std::int64_t decoded_tokens(const ExperimentSpec& spec) { return std::clamp<std::int64_t>(length_of(spec) / 4, 1, 16); }

std::vector<std::int64_t> default_contexts(const ExperimentSpec& spec) {
  const std::int64_t length = length_of(spec), longest = std::max<std::int64_t>(1, spec.data_shape().max_time - decoded_tokens(spec));
  std::vector<std::int64_t> contexts;
  for (const std::int64_t wanted : {length / 4, length, 4 * length}) contexts.push_back(std::clamp<std::int64_t>(wanted, 1, longest));
  contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
  return contexts;
}

namespace {

/// One experiment while it is measured.
struct Bench {
  Bench(const ExperimentSpec& spec, const DecodeOptions& options)
      : rows(options.rows > 0 ? options.rows : spec.train.batch), burst(decoded_tokens(spec)), model(spec, rows) {
    if (options.training) trainer = std::make_unique<Trainer>(spec);
    result.parameters = model.parameters();
    result.rows = rows;
    result.tokens = length_of(spec);
    std::vector<std::int64_t> contexts = options.contexts.empty() ? default_contexts(spec) : options.contexts;
    std::sort(contexts.begin(), contexts.end());
    contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      result.places.emplace_back().context = contexts[i];
      if (contexts[i] <= result.tokens) result.main = i;
    }
  }

  /// Every size once, the experiment's first: what it takes is known before longer contexts take more.
  void warm_up() {
    if (trainer != nullptr) trainer->step();
    model.read(result.tokens);
    go_on(result.places[result.main], nullptr);
    result.memory_bytes = model.memory_bytes();
    const std::int64_t rows_of_thread = (rows + model.threads() - 1) / model.threads();
    for (DecodeResult::Place& place : result.places) {
      go_on(place, nullptr);
      place.step = model.count_step(rows_of_thread, place.context);
    }
  }

  void round() {
    if (trainer != nullptr) {
      trainer->step();
      result.training_seconds.push_back(seconds_of([&] { trainer->step(); }));
    }
    model.read(result.tokens);
    result.prefill_seconds.push_back(seconds_of([&] { model.read(result.tokens); }));
    for (DecodeResult::Place& place : result.places) go_on(place, &place.step_seconds);
  }

  void go_on(DecodeResult::Place& place, std::vector<double>* seconds) {
    model.read(place.context);
    place.state_bytes = model.state_bytes() / rows;
    place.least_bytes = model.least_step_bytes();
    for (std::int64_t i = 0; i < burst; ++i) {
      const double taken = seconds_of([&] { model.step(); });
      if (seconds != nullptr) seconds->push_back(taken);
    }
  }

  std::int64_t rows, burst;
  Continuation model;
  std::unique_ptr<Trainer> trainer;
  DecodeResult result;
};

}  // namespace

std::vector<DecodeResult> measure_decoding(const std::deque<ExperimentSpec>& specs, const DecodeOptions& options) {
  std::vector<std::unique_ptr<Bench>> all;
  for (const ExperimentSpec& spec : specs) all.push_back(std::make_unique<Bench>(spec, options));
  for (const auto& one : all) one->warm_up();
  for (std::int64_t round = 0; round < options.rounds; ++round)
    for (std::size_t i = 0; i < all.size(); ++i) all[(static_cast<std::size_t>(round) + i) % all.size()]->round();
  std::vector<DecodeResult> results;
  for (const auto& one : all) results.push_back(std::move(one->result));
  return results;
}

}  // namespace phasor
