#include "experiments/device_steps.h"

#include <algorithm>

#include "core/graph/accumulate.h"
#include "core/graph/capture.h"
#include "core/graph/total.h"
#include "core/graph/transfer.h"

namespace phasor {

/// Rows first .. of a lane, as they stand in the block of the processor and in that of the device.
struct DeviceSteps::Part {
  const Lane* lane;
  std::int64_t first;
  MicroBatch host, device;
};

/// What the steps of one slice have in common.
struct DeviceSteps::Program {
  Tensor host, device;                // i32: the block
  std::vector<Part> parts;
  Tensor host_step, device_step;      // of 8 bytes
  Tensor host_weight, device_weight;  // [capacity of the largest part]: d mean / d loss
  std::uint64_t seed = 0;
  bool ran = false;
  std::shared_ptr<void> captured;
};

namespace {

/// Hands out the places of a block, in elements of four bytes, each at a multiple of 64 bytes.
class Places {
 public:
  std::int64_t take(std::int64_t elements) {
    const std::int64_t place = used_;
    used_ += (elements + 15) / 16 * 16;
    return place;
  }
  std::int64_t used() const { return used_; }

 private:
  std::int64_t used_ = 0;
};

Tensor at(const Tensor& block, std::int64_t place, Dtype dtype, const Shape& shape) {
  return Tensor::borrow(block.as<std::int32_t>() + place, dtype, shape);
}

}  // namespace

DeviceSteps::DeviceSteps(Device& device, const Model& model, Optimizer& optimizer, const std::vector<Lane>& lanes, Arena& memory)
    : device_(device), model_(model), optimizer_(optimizer), lanes_(lanes), memory_(memory), loss_(memory, Dtype::f64, {1}),
      results_(memory, Dtype::f64, {most, 3}) {
  for (const Lane& lane : lanes) gradients_.push_back(lane.gradients);
}

DeviceSteps::~DeviceSteps() = default;

DeviceSteps::Program& DeviceSteps::program_of(const Step& step, Dtype dtype) {
  std::unique_ptr<Program>& made = programs_[step.slice];
  if (made) return *made;
  made = std::make_unique<Program>();
  Program& program = *made;
  program.seed = step.seed;
  // Twice the same walk: how much there is, then where it is.
  for (const bool placed : {false, true}) {
    Places places;
    std::int64_t capacity = 0;
    for (const Lane& lane : lanes_)
      for (std::int64_t first = 0; first < lane.row_count; first += step.micro_batch) {
        const std::int64_t count = std::min(step.micro_batch, lane.row_count - first), scored = count * step.row_targets;
        capacity = std::max(capacity, scored);
        std::vector<std::int64_t> taken;
        const auto size = [&](const Shape& shape) {
          taken.push_back(places.take(shape.size()));
          return Tensor();
        };
        make_micro_batch(lane.rows, count, scored, size);
        if (!placed) continue;
        const auto in = [&](const Tensor& block) {
          std::size_t next = 0;
          return make_micro_batch(lane.rows, count, scored, [&](const Shape& shape) { return at(block, taken[next++], Dtype::i32, shape); });
        };
        program.parts.push_back({&lane, first, in(program.host), in(program.device)});
      }
    const std::int64_t step_place = places.take(2), weights = places.take(capacity * (dtype == Dtype::f64 ? 2 : 1));
    if (!placed) {
      program.host = Tensor(staging_, Dtype::i32, {places.used()});
      program.device = Tensor(memory_, Dtype::i32, {places.used()});
      continue;
    }
    program.host_step = at(program.host, step_place, Dtype::f64, {1});
    program.device_step = at(program.device, step_place, Dtype::f64, {1});
    program.host_weight = at(program.host, weights, dtype, {capacity});
    program.device_weight = at(program.device, weights, dtype, {capacity});
  }
  return program;
}

void DeviceSteps::fill(const Program& program, const Step& step) {
  for (const Part& part : program.parts) fill_micro_batch(part.host, part.lane->rows, part.first);
  *static_cast<std::int64_t*>(program.host_step.data()) = step.step;
  const Tensor& weight = program.host_weight;
  const double each = 1.0 / static_cast<double>(step.targets);
  if (weight.dtype() == Dtype::f64)
    std::fill_n(weight.as<double>(), weight.size(), each);
  else
    std::fill_n(weight.as<float>(), weight.size(), static_cast<float>(each));
}

void DeviceSteps::launch(Tape& tape, const Program& program) {
  const auto* step = static_cast<const std::int64_t*>(program.device_step.data());
  zero(tape.stream(), loss_);
  for (const Lane& lane : lanes_) zero(tape.stream(), lane.gradients);
  for (const auto& [lane, first, host, batch] : program.parts) {
    tape.collect_into(lane->gradients);
    {
      const DropoutKey dropout{program.seed, 0, lane->first_row + first, step};
      const Tensor losses = losses_of(tape, model_, batch, {0, true, batch.starts, dropout});
      const Tensor weight = Tensor::borrow(program.device_weight.data(), losses.dtype(), losses.shape());
      tape.backward(std::array{std::pair{losses, weight}});
      add_total(tape.stream(), losses, loss_);
    }
    tape.clear();
  }
  optimizer_.launch_update(gradients_, [&](std::int64_t count, FunctionRef<void(std::int64_t, const Stream&)> work) {
    for (std::int64_t i = 0; i < count; ++i) work(i, tape.stream());
  });
}

void DeviceSteps::start(Tape& tape, const Step& step) {
  PHASOR_CHECK(!full(), "results are read before there are too many");
  Program& program = program_of(step, tape.dtype());
  fill(program, step);
  put(&device_, program.host, program.device);
  optimizer_.prepare(step.lr);
  if (step.capture && program.ran && !program.captured) {
    const std::int64_t blocks = tape.arena().system_blocks();
    program.captured = capture(device_, [&] { launch(tape, program); });
    PHASOR_CHECK(tape.arena().system_blocks() == blocks, "a captured step takes no memory");
  }
  if (step.capture && program.captured) {
    device_.replay(program.captured.get());
  } else {
    launch(tape, program);
    program.ran = true;
  }
  double* const to = results_.as<double>() + 3 * started_++;
  copy(tape.stream(), loss_, Tensor::borrow(to, Dtype::f64, {1}));
  copy(tape.stream(), optimizer_.report(), Tensor::borrow(to + 1, Dtype::f64, {2}));
}

std::vector<DeviceSteps::Result> DeviceSteps::read() {
  std::vector<Result> out(static_cast<std::size_t>(started_));
  if (started_ > 0) device_.copy_out(out.data(), results_.data(), out.size() * sizeof(Result));
  started_ = 0;
  return out;
}

}  // namespace phasor
