#include "experiments/trainer.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/graph/accumulate.h"
#include "core/ops/cross_entropy/cross_entropy.h"
#include "core/ops/gather_rows/gather_rows.h"
#include "experiments/order.h"

namespace phasor {

/// One gradient buffer and the memory of one worker at a time.
struct Trainer::Lane {
  std::int64_t first_row = 0, row_count = 0;  // of the batch
  Rows rows;
  Arena arena;
  Profile profile;
  Tensor gradients;  // flat
  std::unique_ptr<Tape> train, evaluate;
  std::int64_t targets = 0;
  double loss_sum = 0.0;
};

/// A micro-batch as the model sees it.
struct Trainer::Scored {
  Tensor ids;      // i32 [rows, tokens]
  Tensor index;    // i32 [capacity], scored positions in order, then -1
  Tensor targets;  // i32 [capacity], then -1
  std::vector<std::int64_t> per_row;
};

namespace {

Dtype precision_of(const ExperimentSpec& spec) { return spec.train.precision == "f64" ? Dtype::f64 : Dtype::f32; }

double sum_of(const Tensor& losses) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < losses.size(); ++i)
    sum += losses.dtype() == Dtype::f64 ? losses.as<double>()[i] : static_cast<double>(losses.as<float>()[i]);
  return sum;
}

void fill(const Tensor& to, double value) {
  if (to.dtype() == Dtype::f64)
    std::fill_n(to.as<double>(), to.size(), value);
  else
    std::fill_n(to.as<float>(), to.size(), static_cast<float>(value));
}

}  // namespace

Trainer::Trainer(const ExperimentSpec& spec)
    : spec_(spec), task_(spec.make_task()), train_slice_(task_->slices(Split::train).front()),
      micro_batch_(spec.train.micro_batch.value()),
      schedule_(make_schedule(spec.optimizer.schedule, spec.optimizer.lr, spec.train.steps)), pool_(spec.run.threads) {
  model_ = std::make_unique<Model>(spec.model, task_->vocabulary(), spec.mixer(), parameters_);
  parameters_.allocate(precision_of(spec));
  parameters_.initialise(static_cast<std::uint64_t>(spec.seed));
  optimizer_ = std::make_unique<AdamW>(spec.optimizer.adamw, parameters_);
  const std::int64_t lanes = spec.train.lanes.value();
  for (std::int64_t i = 0; i < lanes; ++i) {
    auto lane = std::make_unique<Lane>();
    lane->first_row = spec.train.batch * i / lanes;
    lane->row_count = spec.train.batch * (i + 1) / lanes - lane->first_row;
    lane->rows.resize(lane->row_count, task_->tokens(train_slice_));
    lane->gradients = Tensor(lane->arena, precision_of(spec), {parameters_.flat_size()});
    lanes_.push_back(std::move(lane));
  }
  profile(false);
}

Trainer::~Trainer() = default;

void Trainer::profile(bool on) {
  for (const auto& lane : lanes_) {
    lane->profile.clear();
    const Stream stream{precision_of(spec_), on ? &lane->profile : nullptr};
    lane->train = std::make_unique<Tape>(lane->arena, stream, true, lane->gradients);
    lane->evaluate = std::make_unique<Tape>(lane->arena, stream, false);
  }
}

Profile Trainer::collected() const {
  Profile sum;
  for (const auto& lane : lanes_) sum.merge(lane->profile);
  return sum;
}

std::int64_t Trainer::system_blocks() const {
  std::int64_t sum = 0;
  for (const auto& lane : lanes_) sum += lane->arena.system_blocks();
  return sum;
}

void Trainer::draw_batch(Lane& lane, std::int64_t step) {
  const auto seed = static_cast<std::uint64_t>(spec_.seed);
  lane.targets = 0;
  for (std::int64_t i = 0; i < lane.row_count; ++i) {
    const std::int64_t position = step * spec_.train.batch + lane.first_row + i;
    task_->sample(train_slice_, seed, training_row(seed, position, train_slice_.rows), lane.rows.row(i));
    lane.targets += lane.rows.scored(i);
  }
}

Trainer::Scored Trainer::gather(Tape& tape, const Rows& rows, std::int64_t first, std::int64_t count, std::int64_t capacity) {
  Scored out;
  out.ids = tape.empty({count, rows.tokens}, Dtype::i32);
  out.index = tape.empty({capacity}, Dtype::i32);
  out.targets = tape.empty({capacity}, Dtype::i32);
  const std::int32_t* ids = rows.ids.data() + first * rows.tokens;
  const std::int32_t* targets = rows.targets.data() + first * rows.tokens;
  std::copy_n(ids, count * rows.tokens, out.ids.as<std::int32_t>());
  std::int64_t used = 0;
  for (std::int64_t r = 0; r < count; ++r) {
    std::int64_t in_row = 0;
    for (std::int64_t t = 0; t < rows.tokens; ++t) {
      const std::int64_t at = r * rows.tokens + t;
      if (targets[at] < 0) continue;
      PHASOR_CHECK(used < capacity, "a task scores no more positions than it declared");
      out.index.as<std::int32_t>()[used] = static_cast<std::int32_t>(at);
      out.targets.as<std::int32_t>()[used++] = targets[at];
      ++in_row;
    }
    out.per_row.push_back(in_row);
  }
  std::fill(out.index.as<std::int32_t>() + used, out.index.as<std::int32_t>() + capacity, -1);
  std::fill(out.targets.as<std::int32_t>() + used, out.targets.as<std::int32_t>() + capacity, -1);
  return out;
}

void Trainer::forward_backward(Lane& lane, std::int64_t targets) {
  zero(lane.gradients);
  lane.loss_sum = 0.0;
  Tape& tape = *lane.train;
  const SequenceContext context{0, true};
  for (std::int64_t first = 0; first < lane.row_count; first += micro_batch_) {
    const std::int64_t count = std::min(micro_batch_, lane.row_count - first);
    {
      const Scored batch = gather(tape, lane.rows, first, count, count * task_->max_targets(train_slice_));
      const Tensor hidden = model_->hidden(tape, batch.ids, context);
      const Tensor logits = model_->head(tape, ops::gather_rows(tape, hidden, batch.index));
      const Tensor losses = ops::cross_entropy(tape, logits, batch.targets);
      lane.loss_sum += sum_of(losses);
      const Tensor weight = tape.empty(losses.shape());
      fill(weight, 1.0 / static_cast<double>(targets));
      tape.backward(std::array{std::pair{losses, weight}});
    }
    tape.clear();
  }
}

/// Sum of the lanes' gradients into the first, element by element in the order of the lanes.
void Trainer::add_lanes() {
  constexpr std::int64_t block = 1 << 15;
  const std::int64_t size = parameters_.flat_size();
  pool_.run((size + block - 1) / block, [&](std::int64_t i) {
    const std::int64_t begin = i * block, count = std::min(block, size - begin);
    const Stream stream{precision_of(spec_), nullptr};
    for (std::size_t lane = 1; lane < lanes_.size(); ++lane)
      copy(stream, lanes_[lane]->gradients.columns(begin, count), lanes_[0]->gradients.columns(begin, count), true);
  });
}

StepResult Trainer::step() {
  const std::int64_t step = steps_done_++;
  const auto lanes = static_cast<std::int64_t>(lanes_.size());
  const auto lane = [&](std::int64_t i) -> Lane& { return *lanes_[static_cast<std::size_t>(i)]; };
  pool_.run(lanes, [&](std::int64_t i) { draw_batch(lane(i), step); });
  StepResult result;
  for (const auto& each : lanes_) result.targets += each->targets;
  if (result.targets == 0) return result;
  pool_.run(lanes, [&](std::int64_t i) { forward_backward(lane(i), result.targets); });
  double loss_sum = 0.0;
  for (const auto& each : lanes_) loss_sum += each->loss_sum;
  add_lanes();
  result.loss = loss_sum / static_cast<double>(result.targets);
  result.lr = schedule_.rate(step);
  const StepReport report = optimizer_->step(lanes_[0]->gradients, result.lr);
  result.grad_norm = report.grad_norm;
  result.clipped = report.clip_factor < 1.0;
  return result;
}

SliceResult Trainer::evaluate(const EvaluationData& data) {
  struct Part {
    double loss = 0.0;
    std::int64_t tokens = 0, correct = 0, rows = 0, rows_correct = 0;
  };
  const std::int64_t parts = (data.rows.count + micro_batch_ - 1) / micro_batch_;
  const std::int64_t capacity = task_->max_targets(data.slice);
  std::vector<Part> results(static_cast<std::size_t>(parts));
  // A lane's arena serves one thread at a time: work is dealt to lanes, and lanes to threads.
  const auto lanes = static_cast<std::int64_t>(lanes_.size());
  pool_.run(lanes, [&](std::int64_t l) {
    Tape& tape = *lanes_[static_cast<std::size_t>(l)]->evaluate;
    for (std::int64_t p = l; p < parts; p += lanes) {
      Part& part = results[static_cast<std::size_t>(p)];
      const std::int64_t first = p * micro_batch_, count = std::min(micro_batch_, data.rows.count - first);
      const Scored batch = gather(tape, data.rows, first, count, count * capacity);
      const Tensor hidden = model_->hidden(tape, batch.ids, {});
      Tensor correct;
      const Tensor losses = ops::cross_entropy(tape, model_->head(tape, ops::gather_rows(tape, hidden, batch.index)),
                                               batch.targets, &correct);
      part.loss = sum_of(losses);
      std::int64_t at = 0;
      for (const std::int64_t scored : batch.per_row) {
        const auto* begin = correct.as<std::int32_t>() + at;
        const std::int64_t right = std::count(begin, begin + scored, 1);
        part.tokens += scored;
        part.correct += right;
        part.rows += scored > 0 ? 1 : 0;
        part.rows_correct += scored > 0 && right == scored ? 1 : 0;
        at += scored;
      }
    }
  });
  Part sum;
  for (const Part& part : results) {
    sum.loss += part.loss;
    sum.tokens += part.tokens;
    sum.correct += part.correct;
    sum.rows += part.rows;
    sum.rows_correct += part.rows_correct;
  }
  SliceResult out;
  out.tokens = sum.tokens;
  out.rows = sum.rows;
  if (sum.tokens == 0) return out;
  out.loss = sum.loss / static_cast<double>(sum.tokens);
  out.token_accuracy = static_cast<double>(sum.correct) / static_cast<double>(sum.tokens);
  out.sequence_accuracy = static_cast<double>(sum.rows_correct) / static_cast<double>(sum.rows);
  return out;
}

}  // namespace phasor
