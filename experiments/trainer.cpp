#include "experiments/trainer.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/graph/accumulate.h"
#include "core/graph/transfer.h"
#include "core/ops/argmax/argmax.h"
#include "experiments/device_steps.h"

namespace phasor {

/// What a thread works with.
struct Trainer::Worker {
  explicit Worker(Device* device) : arena(device) {}
  Arena arena;
  Profile profile;
  std::unique_ptr<Tape> train, evaluate;
};

/// Sums over some evaluation rows.
struct Trainer::Part {
  struct Class {
    std::int64_t tokens = 0, correct = 0;
  };
  double loss = 0.0;
  std::int64_t tokens = 0, correct = 0, rows = 0, rows_correct = 0;
  std::vector<Class> classes = {};  // by target, as far as they occur; of decoding none
  std::vector<SliceResult::Range> positions = {};  // with the sum of losses

  void count_token(std::int32_t target, bool right) {
    const auto at = static_cast<std::size_t>(target);
    if (classes.size() <= at) classes.resize(at + 1);
    ++classes[at].tokens;
    classes[at].correct += right ? 1 : 0;
  }
  void count_position(std::int64_t position, double token_loss) {
    const auto range = std::lower_bound(positions.begin(), positions.end(), position,
                                        [](const SliceResult::Range& each, std::int64_t p) { return each.end < p; });
    if (range == positions.end()) return;
    range->loss += token_loss;
    ++range->tokens;
  }
  void add(const Part& other) {
    loss += other.loss;
    tokens += other.tokens;
    correct += other.correct;
    rows += other.rows;
    rows_correct += other.rows_correct;
    if (classes.size() < other.classes.size()) classes.resize(other.classes.size());
    for (std::size_t c = 0; c < other.classes.size(); ++c) {
      classes[c].tokens += other.classes[c].tokens;
      classes[c].correct += other.classes[c].correct;
    }
    if (positions.empty()) positions.resize(other.positions.size());
    for (std::size_t i = 0; i < other.positions.size(); ++i) {
      positions[i].end = other.positions[i].end;
      positions[i].loss += other.positions[i].loss;
      positions[i].tokens += other.positions[i].tokens;
    }
  }
  void count_row(std::int64_t scored, std::int64_t right) {
    tokens += scored;
    correct += right;
    rows += scored > 0 ? 1 : 0;
    rows_correct += scored > 0 && right == scored ? 1 : 0;
  }
  double token_accuracy() const { return tokens > 0 ? static_cast<double>(correct) / static_cast<double>(tokens) : 0.0; }
  double sequence_accuracy() const { return rows > 0 ? static_cast<double>(rows_correct) / static_cast<double>(rows) : 0.0; }
};

namespace {

Dtype precision_of(const ExperimentSpec& spec) { return spec.train.precision == "f64" ? Dtype::f64 : Dtype::f32; }

ProductPrecision products_of(const ExperimentSpec& spec) {
  if (spec.train.precision == "tf32") return ProductPrecision::tf32;
  return spec.train.precision == "bf16" ? ProductPrecision::bf16 : ProductPrecision::full;
}

double loss_at(const Tensor& losses, std::int64_t i) {
  return losses.dtype() == Dtype::f64 ? losses.as<double>()[i] : static_cast<double>(losses.as<float>()[i]);
}

double sum_of(const Tensor& losses) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < losses.size(); ++i) sum += loss_at(losses, i);
  return sum;
}

void fill(const Tensor& to, double value) {
  if (to.dtype() == Dtype::f64)
    std::fill_n(to.as<double>(), to.size(), value);
  else
    std::fill_n(to.as<float>(), to.size(), static_cast<float>(value));
}

}  // namespace

std::string attention_library_of(const ExperimentSpec& spec, const Device* device) {
  if (spec.train.attention != "cudnn") return {};
  std::string reason = "it is for CUDA devices, and this is to run on the processor";
  const std::string found = device != nullptr ? device->attention_library(reason) : "";
  if (found.empty()) throw UserError("train.attention: cudnn cannot be had: " + reason + "; expected own");
  return found;
}

Trainer::Trainer(const ExperimentSpec& spec, Device* device)
    : spec_(spec), device_(device), task_(spec.make_task()), train_slices_(task_->slices(Split::train)),
      micro_batch_(spec.train.micro_batch.value()),
      schedule_(make_schedule(spec.optimizer.schedule, spec.optimizer.lr, spec.train.steps)),
      pool_(device != nullptr ? 1 : spec.run.threads), gradient_memory_(device) {
  attention_library_of(spec, device);
  model_ = std::make_unique<Model>(spec.model, DataShape(*task_), spec.mixer(), parameters_);
  parameters_.allocate(precision_of(spec), device);
  parameters_.initialise(static_cast<std::uint64_t>(spec.seed));
  optimizer_ = spec.optimizer.make(parameters_);
  if (spec.train.storage == "bf16") optimizer_->keep_in_bf16();
  const std::int64_t lanes = spec.train.lanes.value();
  for (std::int64_t i = 0; i < lanes; ++i) {
    Lane lane;
    lane.first_row = lane_begin(spec.train.batch, lanes, i);
    lane.row_count = lane_begin(spec.train.batch, lanes, i + 1) - lane.first_row;
    lane.gradients = Tensor(gradient_memory_, precision_of(spec), {parameters_.flat_size()});
    gradients_.push_back(lane.gradients);
    lanes_.push_back(std::move(lane));
  }
  for (std::int64_t i = 0; i < pool_.threads(); ++i) workers_.push_back(std::make_unique<Worker>(device));
  if (device != nullptr) device_steps_ = std::make_unique<DeviceSteps>(*device, *model_, *optimizer_, lanes_, gradient_memory_);
  profile(false);
}

Trainer::~Trainer() = default;

void Trainer::profile(bool on) {
  for (const auto& worker : workers_) {
    worker->profile.clear();
    const Stream stream{precision_of(spec_), on ? &worker->profile : nullptr, false, device_, products_of(spec_),
                        spec_.train.attention == "cudnn"};
    worker->train = std::make_unique<Tape>(worker->arena, stream, true);
    worker->evaluate = std::make_unique<Tape>(worker->arena, stream, false);
  }
}

Profile Trainer::collected() const {
  Profile sum;
  for (const auto& worker : workers_) sum.merge(worker->profile);
  return sum;
}

std::int64_t Trainer::system_blocks() const {
  std::int64_t sum = gradient_memory_.system_blocks() + staging_.system_blocks() + (device_steps_ ? device_steps_->system_blocks() : 0);
  for (const auto& worker : workers_) sum += worker->arena.system_blocks();
  return sum;
}

BatchSource Trainer::source_of(std::int64_t step) const {
  return batch_source(static_cast<std::uint64_t>(spec_.seed), step, train_slices_, spec_.train.batch, task_->curriculum());
}

void Trainer::draw_batch(Lane& lane, Worker& worker, std::int64_t step) {
  const BatchSource source = source_of(step);
  const auto seed = static_cast<std::uint64_t>(spec_.seed);
  const Slice& slice = train_slices_[source.slice];
  lane.rows.resize(*task_, slice, lane.row_count);
  const KernelTimer timer(worker.train->stream(), "batch", {0.0, lane.rows.bytes()});
  lane.targets = 0;
  for (std::int64_t i = 0; i < lane.row_count; ++i) {
    const std::int64_t position = source.position + lane.first_row + i;
    task_->sample(slice, seed, training_row(seed, position, slice.rows), lane.rows.row(i));
    lane.targets += lane.rows.scored(i);
  }
}

Tensor Trainer::loaded(Tape& tape, const Tensor& from) const {
  if (device_ == nullptr || !from) return from;
  const Tensor to = tape.empty(from.shape(), from.dtype());
  put(device_, from, to);
  return to;
}

MicroBatch Trainer::loaded(Tape& tape, const MicroBatch& from) const {
  MicroBatch out;
  for (std::size_t s = 0; s < from.ids.size(); ++s) out.ids.push_back(loaded(tape, from.ids[s]));
  out.starts = loaded(tape, from.starts);
  out.index = loaded(tape, from.index);
  out.targets = loaded(tape, from.targets);
  return out;
}

MicroBatch Trainer::gather(Tape& tape, const Rows& rows, std::int64_t first, std::int64_t count, std::int64_t capacity) const {
  const MicroBatch out = make_micro_batch(rows, count, capacity, [&](const Shape& shape) { return Tensor(host(tape), Dtype::i32, shape); });
  fill_micro_batch(out, rows, first);
  return out;
}

void Trainer::forward_backward(Lane& lane, Worker& worker, const Slice& slice, std::int64_t step, std::int64_t targets) {
  Tape& tape = *worker.train;
  tape.collect_into(lane.gradients);
  zero(tape.stream(), lane.gradients);
  lane.loss_sum = 0.0;
  for (std::int64_t first = 0; first < lane.row_count; first += micro_batch_) {
    const std::int64_t count = std::min(micro_batch_, lane.row_count - first);
    {
      const MicroBatch batch = gather(tape, lane.rows, first, count, count * task_->max_targets(slice));
      const DropoutKey dropout{static_cast<std::uint64_t>(spec_.seed), step, lane.first_row + first};
      const Tensor losses = losses_of(tape, *model_, batch, {0, true, batch.starts, dropout});
      lane.loss_sum += sum_of(losses);
      const Tensor weight = tape.empty(losses.shape());
      fill(weight, 1.0 / static_cast<double>(targets));
      tape.backward(std::array{std::pair{losses, weight}});
    }
    tape.clear();
  }
}

StepReport Trainer::update(double lr) {
  return optimizer_->step(gradients_, lr, [&](std::int64_t count, FunctionRef<void(std::int64_t, const Stream&)> work) {
    pool_.run(count, [&](std::int64_t i, std::int64_t thread) { work(i, workers_[static_cast<std::size_t>(thread)]->train->stream()); });
  });
}

void Trainer::compute(const Slice& slice, std::int64_t step, StepResult& result) {
  const auto lanes = static_cast<std::int64_t>(lanes_.size());
  // A lane that is done draws its part of the next batch while others still compute.
  pool_.run(lanes, [&](std::int64_t i, std::int64_t thread) {
    if (result.targets > 0) forward_backward(lane(i), worker(thread), slice, step, result.targets);
    if (drawn_step_ > step) draw_batch(lane(i), worker(thread), drawn_step_);
  });
  if (result.targets == 0) return;
  double loss_sum = 0.0;
  for (const Lane& each : lanes_) loss_sum += each.loss_sum;
  result.loss = loss_sum / static_cast<double>(result.targets);
  const StepReport report = update(result.lr);
  result.grad_norm = report.grad_norm;
  result.clipped = report.clip_factor < 1.0;
}

void Trainer::compute_on_device(std::int64_t slice, std::int64_t step, const StepResult& result) {
  Worker& own = worker(0);
  if (result.targets > 0)
    device_steps_->start(*own.train, {slice, step, result.targets, micro_batch_, task_->max_targets(train_slices_[static_cast<std::size_t>(slice)]),
                                      static_cast<std::uint64_t>(spec_.seed), result.lr, spec_.run.capture && own.train->stream().profile == nullptr});
  // While the device computes.
  for (Lane& each : lanes_)
    if (drawn_step_ > step) draw_batch(each, own, drawn_step_);
}

void Trainer::start_step() {
  if (device_steps_ && device_steps_->full()) settle();
  const std::int64_t step = steps_done_++;
  const auto slice = source_of(step).slice;
  tokens_seen_ += spec_.train.batch * task_->tokens(train_slices_[slice]);
  const auto lanes = static_cast<std::int64_t>(lanes_.size());
  if (drawn_step_ != step) pool_.run(lanes, [&](std::int64_t i, std::int64_t thread) { draw_batch(lane(i), worker(thread), step); });
  StepResult result;
  result.step = step + 1;
  for (const Lane& each : lanes_) result.targets += each.targets;
  if (result.targets > 0) result.lr = schedule_.rate(step);
  drawn_step_ = step + 1 < spec_.train.steps ? step + 1 : -1;
  if (device_steps_)
    compute_on_device(static_cast<std::int64_t>(slice), step, result);
  else
    compute(train_slices_[slice], step, result);
  results_.push_back(result);
}

/// Completes the results of steps on a device.
void Trainer::settle() {
  if (!device_steps_) return;
  const std::vector<DeviceSteps::Result> found = device_steps_->read();
  auto next = found.begin();
  for (; settled_ < results_.size(); ++settled_) {
    StepResult& result = results_[settled_];
    if (result.targets == 0) continue;
    result.loss = next->loss_sum / static_cast<double>(result.targets);
    result.grad_norm = next->grad_norm;
    result.clipped = next++->clip_factor < 1.0;
  }
}

std::vector<StepResult> Trainer::take_results() {
  settle();
  settled_ = 0;
  return std::exchange(results_, {});
}

StepResult Trainer::step() {
  start_step();
  settle();
  const StepResult result = results_.back();
  results_.clear();  // keeps its memory, so that steps take none
  settled_ = 0;
  return result;
}

void Trainer::resume(std::int64_t steps, std::int64_t updates) {
  PHASOR_CHECK(steps_done_ == 0, "a trainer resumes before its first step");
  optimizer_->resume(updates);
  for (; steps_done_ < steps; ++steps_done_)
    tokens_seen_ += spec_.train.batch * task_->tokens(train_slices_[source_of(steps_done_).slice]);
}

Trainer::Part Trainer::over_parts(const EvaluationData& data, FunctionRef<Part(Tape&, std::int64_t, std::int64_t)> work) {
  const std::int64_t parts = (data.rows.count + micro_batch_ - 1) / micro_batch_;
  std::vector<Part> results(static_cast<std::size_t>(parts));
  pool_.run(parts, [&](std::int64_t part, std::int64_t thread) {
    const std::int64_t first = part * micro_batch_;
    Tape& tape = *workers_[static_cast<std::size_t>(thread)]->evaluate;
    results[static_cast<std::size_t>(part)] = work(tape, first, std::min(micro_batch_, data.rows.count - first));
  });
  Part sum;
  for (const Part& part : results) sum.add(part);
  return sum;
}

Trainer::Part Trainer::score(Tape& tape, const EvaluationData& data, std::int64_t first, std::int64_t count) const {
  const MicroBatch rows = gather(tape, data.rows, first, count, count * task_->max_targets(data.slice)), batch = loaded(tape, rows);
  Tensor right;
  const Tensor each = losses_of(tape, *model_, batch, {0, false, batch.starts, {}}, &right);
  const Tensor losses = fetched(device_, each, staging_), correct = fetched(device_, right, staging_);
  Part part;
  part.loss = sum_of(losses);
  std::int64_t at = 0;
  for (std::int64_t r = first; r < first + count; ++r) {
    const std::int64_t scored = data.rows.scored(r);
    const auto* begin = correct.as<std::int32_t>() + at;
    part.count_row(scored, std::count(begin, begin + scored, 1));
    for (std::int64_t i = 0; i < scored; ++i) part.count_token(rows.targets.as<std::int32_t>()[at + i], begin[i] == 1);
    at += scored;
  }
  for (const std::int64_t end : task_->position_ends(data.slice)) part.positions.push_back({end, 0.0, 0});
  for (std::int64_t i = 0; i < at && !part.positions.empty(); ++i) {
    const std::int64_t token = rows.index.as<std::int32_t>()[i], row = token / data.rows.tokens;
    const std::int64_t start = data.rows.starts.empty() ? 0 : rows.starts.as<std::int32_t>()[token];
    part.count_position(token - row * data.rows.tokens - start + 1, loss_at(losses, i));
  }
  return part;
}

SliceResult Trainer::evaluate(const EvaluationData& data) {
  const Part sum = over_parts(data, [&](Tape& tape, std::int64_t first, std::int64_t count) { return score(tape, data, first, count); });
  SliceResult result;
  result.loss = sum.tokens > 0 ? sum.loss / static_cast<double>(sum.tokens) : 0.0;
  result.token_accuracy = sum.token_accuracy();
  result.sequence_accuracy = sum.sequence_accuracy();
  result.tokens = sum.tokens;
  result.rows = sum.rows;
  for (const Part::Class& each : sum.classes) {
    if (each.tokens == 0) continue;
    ++result.classes;
    result.class_accuracy += static_cast<double>(each.correct) / static_cast<double>(each.tokens);
  }
  if (result.classes > 0) result.class_accuracy /= static_cast<double>(result.classes);
  for (SliceResult::Range range : sum.positions) {
    if (range.tokens == 0) continue;
    range.loss /= static_cast<double>(range.tokens);
    result.positions.push_back(range);
  }
  return result;
}

/// The class that is most likely after the last of these tokens, for every row.
std::vector<std::int32_t> Trainer::predict(Tape& tape, const Tensor& ids, std::int64_t offset, std::vector<State>& states) const {
  const std::int64_t rows = ids.size(0), time = ids.size(1);
  const Tensor last(host(tape), Dtype::i32, {rows});
  for (std::int64_t r = 0; r < rows; ++r) last.as<std::int32_t>()[r] = static_cast<std::int32_t>(r * time + time - 1);
  const Tensor read = loaded(tape, ids);
  const Tensor logits = model_->logits(tape, std::span(&read, 1), {offset, false, {}, {}}, loaded(tape, last), &states);
  const Tensor best = fetched(device_, ops::argmax(tape, logits), staging_);
  return {best.as<std::int32_t>(), best.as<std::int32_t>() + rows};
}

Trainer::Part Trainer::decode_rows(Tape& tape, const EvaluationData& data, std::int64_t first, std::int64_t count) const {
  const Rows& rows = data.rows;
  const std::int64_t prompt = task_->prompt(data.slice);
  const bool one_document = std::all_of(rows.starts.begin(), rows.starts.end(), [](std::int32_t start) { return start == 0; });
  PHASOR_CHECK(prompt > 0 && rows.streams == 1 && one_document, "decoding needs a prompt, one stream and one document per row");
  const auto target = [&](std::int64_t r, std::int64_t t) { return rows.targets[static_cast<std::size_t>((first + r) * rows.tokens + t)]; };
  std::vector<State> states(static_cast<std::size_t>(model_->layers()));
  std::vector<std::int64_t> scored(static_cast<std::size_t>(count)), right(scored);
  Tensor ids(host(tape), Dtype::i32, {count, prompt});
  for (std::int64_t r = 0; r < count; ++r)
    std::copy_n(rows.ids.data() + (first + r) * rows.tokens, prompt, ids.as<std::int32_t>() + r * prompt);
  std::int64_t offset = 0;
  for (std::int64_t t = prompt - 1; t < rows.tokens; ++t) {
    bool any = false;
    for (std::int64_t r = 0; r < count; ++r) any = any || target(r, t) >= 0;
    if (!any) break;
    const std::vector<std::int32_t> guess = predict(tape, ids, offset, states);
    offset = t + 1;
    ids = Tensor(host(tape), Dtype::i32, {count, 1});
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int32_t own = guess[static_cast<std::size_t>(r)];
      ids.as<std::int32_t>()[r] = own + static_cast<std::int32_t>(task_->classes().first);
      if (target(r, t) < 0) continue;
      ++scored[static_cast<std::size_t>(r)];
      right[static_cast<std::size_t>(r)] += own == target(r, t) ? 1 : 0;
    }
  }
  Part part;
  for (std::size_t r = 0; r < scored.size(); ++r) part.count_row(scored[r], right[r]);
  return part;
}

FreeResult Trainer::decode(const EvaluationData& data) {
  const Part sum = over_parts(data, [&](Tape& tape, std::int64_t first, std::int64_t count) { return decode_rows(tape, data, first, count); });
  return {sum.token_accuracy(), sum.sequence_accuracy(), sum.tokens, sum.rows};
}

}  // namespace phasor
