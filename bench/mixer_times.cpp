// Times one mixer alone, forward and with its backward pass, at the shapes at which others publish theirs.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/philox.h"
#include "core/graph/device.h"
#include "core/graph/tape.h"
#include "core/graph/transfer.h"
#include "core/ops/attention/attention.h"
#include "core/ops/delta_rule/delta_rule.h"
#include "core/ops/gemm.h"
#include "core/ops/gla/gla.h"

namespace phasor {
namespace {

constexpr const char* usage =
    "usage: mixer_times cpu|cuda gla|delta_rule|gated_delta_rule|attention f32|bf16|cudnn BATCH TIME HEADS WIDTH [REPEATS]\n"
    "Milliseconds of one pass, median of REPEATS (default 10), keys and values of WIDTH; on a device also of the two\n"
    "passes captured and replayed. bf16 as in train.precision; cudnn is bf16 with train.attention cudnn.\n"
    "exit codes: 0 done, 2 a mistake in the words or no such device\n";

struct Sizes {
  std::int64_t batch, time, heads, width;
};

/// One mixer on its own inputs, which are the same numbers in every call.
class Mixer {
 public:
  Mixer(std::string_view name, const Sizes& s, Arena& memory, const Stream& stream)
      : name_(name), memory_(memory), tape_(memory, stream, true) {
    const Shape vectors{s.batch, s.time, s.heads, s.width}, numbers{s.batch, s.time, s.heads};
    for (Tensor& each : vectors_) each = filled(vectors, -0.1, 0.1);
    if (name == "gla") gate_ = filled(vectors, -0.1, 0.0);
    if (name == "gated_delta_rule") gate_ = filled(numbers, -0.1, 0.0);
    if (name.ends_with("delta_rule")) beta_ = filled(numbers, 0.0, 1.0);
    d_o_ = filled(vectors, -1.0, 1.0);
  }

  /// The forward pass, and the backward pass when `whole`.
  void pass(bool whole) {
    const Tensor q = tape_.variable(vectors_[0]), k = tape_.variable(vectors_[1]), v = tape_.variable(vectors_[2]);
    const Tensor gate = gate_ ? tape_.variable(gate_) : Tensor(), beta = beta_ ? tape_.variable(beta_) : Tensor();
    constexpr double scale = 0.125;
    ops::AttentionOptions options;
    options.scale = scale;
    Tensor o;
    if (name_ == "gla")
      o = ops::gla(tape_, q, k, v, gate, scale).o;
    else if (name_ == "attention")
      o = ops::attention(tape_, q, k, v, options);
    else
      o = ops::delta_rule(tape_, q, k, v, beta, gate, scale).o;
    if (whole) {
      const std::pair<Tensor, Tensor> seed{o, d_o_};
      tape_.backward({&seed, 1});
    }
    tape_.clear();
  }

 private:
  Tensor filled(const Shape& shape, double low, double high) {
    Arena host;
    const Tensor values(host, Dtype::f32, shape), out(memory_, Dtype::f32, shape);
    const RandomStream random(0, Purpose::data, ++drawn_);
    for (std::int64_t i = 0; i < values.size(); ++i)
      values.as<float>()[i] = static_cast<float>(low + (high - low) * random.uniform(static_cast<std::uint64_t>(i)));
    put(memory_.device(), values, out);
    return out;
  }

  std::string_view name_;
  Arena& memory_;
  Tape tape_;
  Tensor vectors_[3], gate_, beta_, d_o_;
  std::uint64_t drawn_ = 0;
};

/// Median of the milliseconds that `work` takes until the device has done it.
template <class Work>
double milliseconds(Device* device, std::int64_t repeats, Work work) {
  std::vector<double> times;
  for (std::int64_t i = -1; i < repeats; ++i) {  // the first one makes memory and is not counted
    const auto begin = std::chrono::steady_clock::now();
    work();
    if (device != nullptr) device->synchronize();
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
    if (i >= 0) times.push_back(spent.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

std::int64_t number(const char* word) {
  std::int64_t value = 0;
  const std::string_view text = word;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    throw UserError("found \"" + std::string(text) + "\", expected a whole number from 1");
  return value;
}

std::string chosen(const char* word, std::initializer_list<std::string_view> known) {
  if (std::find(known.begin(), known.end(), word) == known.end())
    throw UserError("found \"" + std::string(word) +
                    "\", expected one of: " + fmt::format("{}", fmt::join(known, ", ")));
  return word;
}

void run(int count, char** words) {
  const std::string where = chosen(words[1], {"cpu", "cuda"});
  const std::string name = chosen(words[2], {"gla", "delta_rule", "gated_delta_rule", "attention"});
  const std::string precision = chosen(words[3], {"f32", "bf16", "cudnn"});
  const Sizes s{number(words[4]), number(words[5]), number(words[6]), number(words[7])};
  const std::int64_t repeats = count > 8 ? number(words[8]) : 10;
  std::unique_ptr<Device> device;
  if (where == "cuda") {
    std::string reason;
    device = open_cuda(reason);
    if (device == nullptr) throw UserError("cuda: " + reason);
  }
  const bool library = precision == "cudnn";
  if (std::string reason = "it is for CUDA devices"; library && (!device || device->attention_library(reason).empty()))
    throw UserError("cudnn: " + reason);
  use_one_thread_for_gemm();
  Arena memory(device.get());
  const Stream stream{Dtype::f32, nullptr, false, device.get(),
                      precision == "f32" ? ProductPrecision::full : ProductPrecision::bf16, library};
  Mixer mixer(name, s, memory, stream);
  const double forward = milliseconds(device.get(), repeats, [&] { mixer.pass(false); });
  const double whole = milliseconds(device.get(), repeats, [&] { mixer.pass(true); });
  fmt::print("{} {} B{} T{} H{} D{} on {}: forward {:.3f} ms, with backward {:.3f} ms", name, precision, s.batch,
             s.time, s.heads, s.width, device ? device->name() : "one thread of the processor", forward, whole);
  if (device) {
    device->begin_capture();
    mixer.pass(true);
    const std::shared_ptr<void> captured = device->end_capture();
    fmt::print(", captured {:.3f} ms", milliseconds(device.get(), repeats, [&] { device->replay(captured.get()); }));
  }
  fmt::print(" (median of {})\n", repeats);
}

}  // namespace
}  // namespace phasor

int main(int count, char** words) {
  if (count < 8 || count > 9) {
    const bool asked = count == 2 && std::string_view(words[1]) == "--help";
    fmt::print(asked ? stdout : stderr, "{}", phasor::usage);
    return asked ? 0 : 2;
  }
  try {
    phasor::run(count, words);
  } catch (const phasor::UserError& error) {
    fmt::print(stderr, "mixer_times: {}\n", error.what());
    return 2;
  }
  return 0;
}
