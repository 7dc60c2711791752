// What runs in the emulation elsewhere, on a device: every room's cases, attention by cuDNN, short trainings. Label `gpu`.

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/transfer.h"
#include "core/ops/attention/attention.h"
#include "core/ops/gemm.h"
#include "core/base/philox.h"
#include "experiments/trainer.h"
#include "tests/conformance/all_cases.h"
#include "tests/conformance/check_case.h"
#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    device_ = open_cuda(reason);
    if (device_ == nullptr) GTEST_SKIP() << "cuda: " << reason;
    use_one_thread_for_gemm();
  }
  std::unique_ptr<Device> device_;
};

class OnDeviceWithLibrary : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    std::string reason;
    if (device_->attention_library(reason).empty()) GTEST_SKIP() << reason;
  }
};

TEST_F(OnDevice, EveryRoomHoldsItsPromises) {
  for (const ops::OpCase& op : ops::all_cases())
    for (const std::string& fault : ops::check_case_on(*device_, op, [](int) {})) ADD_FAILURE() << op.name << ": " << fault;
}

bool is_of(const ops::OpCase& op, const char* room) { return op.name.starts_with(room); }

TEST_F(OnDevice, ProductsInBf16AreWithinTwoPercent) {
  for (const ops::OpCase& op : ops::all_cases())
    if ((is_of(op, "attention_") && op.name != "attention_large_scores") || is_of(op, "linear_") || is_of(op, "head_linear") ||
        is_of(op, "shared_head_linear"))
      if (!is_of(op, "linear_attention"))
        for (const std::string& fault : ops::check_case_in_bf16_on(*device_, op, 0.02, [](int) {}))
          ADD_FAILURE() << op.name << ": " << fault;
}

TEST_F(OnDeviceWithLibrary, SmallAttentionIsWithinTwoPercentAndTheSameBitsTwice) {
  for (const ops::OpCase& op : ops::all_cases())
    if (is_of(op, "attention_") && op.name != "attention_large_scores")
      for (const std::string& fault : ops::check_case_in_bf16_on(*device_, op, 0.02, [](int) {}, true))
        ADD_FAILURE() << op.name << ": " << fault;
}

/// o, dq, dk and dv of one call, of numbers that are the same in every call.
class Attention {
 public:
  Attention(Device& device, const Shape& queries, const Shape& keys, bool causal)
      : device_(device), memory_(&device), causal_(causal) {
    for (const Shape& shape : {queries, keys, keys, queries}) operands_.push_back(filled(shape));
  }
  std::vector<std::vector<float>> pass(bool library) {
    Tape tape(memory_, {Dtype::f32, nullptr, false, &device_, ProductPrecision::bf16, library}, true);
    const Tensor q = tape.variable(operands_[0]), k = tape.variable(operands_[1]), v = tape.variable(operands_[2]);
    ops::AttentionOptions options;
    options.scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
    options.causal = causal_;
    const Tensor o = ops::attention(tape, q, k, v, options);
    const std::pair<Tensor, Tensor> seed{o, operands_[3]};
    tape.backward({&seed, 1});
    std::vector<std::vector<float>> out;
    for (const Tensor& tensor : {o, tape.leaf_gradient(q), tape.leaf_gradient(k), tape.leaf_gradient(v)}) {
      Arena host;
      const Tensor values = fetched(&device_, tensor, host);
      out.emplace_back(values.as<float>(), values.as<float>() + values.size());
    }
    return out;
  }

 private:
  Tensor filled(const Shape& shape) {
    Arena host;
    const Tensor values(host, Dtype::f32, shape), out(memory_, Dtype::f32, shape);
    const RandomStream random(0, Purpose::data, ++drawn_);
    for (std::int64_t i = 0; i < values.size(); ++i)
      values.as<float>()[i] = static_cast<float>(random.normal(static_cast<std::uint64_t>(i)));
    put(&device_, values, out);
    return out;
  }

  Device& device_;
  Arena memory_;
  bool causal_;
  std::vector<Tensor> operands_;
  std::uint64_t drawn_ = 0;
};

TEST_F(OnDeviceWithLibrary, LargeAttentionIsThatOfOurOwnKernel) {
  struct Sizes {
    Shape queries, keys;
    bool causal;
  };
  const Sizes all[] = {{{2, 2048, 8, 64}, {2, 2048, 8, 64}, true},
                       {{3, 1000, 4, 128}, {3, 1000, 4, 128}, true},
                       {{2, 513, 12, 64}, {2, 513, 4, 64}, true},
                       {{2, 700, 4, 256}, {2, 700, 4, 256}, true},
                       {{2, 300, 8, 64}, {2, 900, 8, 64}, false}};
  for (const Sizes& s : all) {
    Attention attention(*device_, s.queries, s.keys, s.causal);
    const auto own = attention.pass(false), library = attention.pass(true), again = attention.pass(true);
    for (std::size_t i = 0; i < own.size(); ++i) {
      float top = 0.0f, worst = 0.0f;
      for (std::size_t j = 0; j < own[i].size(); ++j) {
        top = std::max(top, std::abs(own[i][j]));
        worst = std::max(worst, std::abs(library[i][j] - own[i][j]));
      }
      EXPECT_LE(worst, 0.02f * top) << s.queries.text() << " " << i;
      EXPECT_GT(worst, 0.0f) << s.queries.text() << ": cuDNN was not asked";
      EXPECT_EQ(library[i], again[i]) << s.queries.text() << " " << i << ": other bits the second time";
    }
  }
}

constexpr const char* softmax = R"({"model": {"backbone": {"name": "transformer", "heads": 2}, "encoding": {"name": "rope"}},
                                    "train": {"batch": 6, "lanes": 1, "micro_batch": 6}})";
constexpr const char* alibi = R"({"model": {"backbone": {"name": "transformer", "heads": 2}, "encoding": {"name": "alibi"}},
                                  "train": {"batch": 6, "lanes": 1, "micro_batch": 6}})";
constexpr const char* selective = R"({"train": {"batch": 6, "lanes": 1, "micro_batch": 6}})";

/// Losses of 12 steps of a small experiment.
std::vector<double> losses(const char* patch, const std::string& more, Device* device) {
  ExperimentSpec spec(shipped_plugins());
  Json value = small_experiment(patch);
  Document over = Document::parse(more, "more");
  over.require_none();
  merge(value, over.value());
  read_spec(spec, value);
  Trainer trainer(spec, device);
  std::vector<double> all;
  for (int i = 0; i < 12; ++i) all.push_back(trainer.step().loss);
  return all;
}

std::string train(const std::string& precision, bool capture, const std::string& attention = "own") {
  return R"({"train": {"steps": 12, "precision": ")" + precision + R"(", "attention": ")" + attention + R"("}, "run": {"device": "cuda", "capture": )" +
         (capture ? "true" : "false") + "}}";
}

TEST_F(OnDevice, TrainsAsTheProcessorAndCapturedAsEager) {
  for (const char* patch : {selective, softmax, alibi}) {
    const auto here = losses(patch, train("f64", true), nullptr), there = losses(patch, train("f64", true), device_.get());
    for (std::size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-9 * std::max(1.0, here[i])) << patch << i;
    for (const char* precision : {"f64", "f32", "bf16"})
      EXPECT_EQ(losses(patch, train(precision, true), device_.get()), losses(patch, train(precision, false), device_.get())) << patch;
  }
}

TEST_F(OnDeviceWithLibrary, TrainsCapturedAsEagerAndNearOurOwnKernel) {
  const auto captured = losses(softmax, train("bf16", true, "cudnn"), device_.get());
  EXPECT_EQ(captured, losses(softmax, train("bf16", false, "cudnn"), device_.get()));
  const auto own = losses(softmax, train("bf16", true), device_.get());
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(captured[i], own[i], 0.02 * std::max(1.0, own[i])) << i;
}

}  // namespace
}  // namespace phasor
