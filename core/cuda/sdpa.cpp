#include "core/cuda/sdpa.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/cuda/cudnn.h"

namespace phasor::cuda {

namespace {

using cudnn::Graph;
using cudnn::Operand;
using Axes = std::vector<std::int64_t>;  // of four

constexpr cudnnDataType_t bf16 = CUDNN_DATA_BFLOAT16, f32 = CUDNN_DATA_FLOAT, i32 = CUDNN_DATA_INT32;

void check(cudaError_t status, const std::string& what) {
  if (status != cudaSuccess) throw UserError("cuda: " + what + ": " + cudaGetErrorString(status));
}

std::string text_of(const SdpaSizes& s) {
  const auto n = [](std::int64_t x) { return std::to_string(x); };
  return "attention of [" + n(s.batch) + ", " + n(s.time) + ", " + n(s.heads * s.group) + ", " + n(s.key_width) + "] on [" +
         n(s.batch) + ", " + n(s.keys) + ", " + n(s.heads) + ", " + n(s.value_width) + "]" + (s.causal ? ", causal" : "");
}

/// A graph of attention and the numbers of its stored operands. cuDNN finds its attention kernels by the operations that a graph
/// is made of and by their order, so both are those that its documents give; axes are [batch, head, token, element].
class Drawing {
 public:
  Drawing(const cudnn::Library& library, const SdpaSizes& sizes) : graph(library), s_(sizes) {
    scale_ = number(&SdpaNumbers::scale);
    if (s_.causal) hidden_ = number(&SdpaNumbers::hidden);
  }

  /// s = scale q k^T, hidden where a key is later; m = max s, e = exp(s - m), l = sum e; lse = m + log l; o = (e / l) v.
  void forward() {
    const Operand q = tokens(&SdpaOperands::q, s_.time, query_heads(), s_.key_width);
    const Operand k = turned(&SdpaOperands::k, s_.keys, s_.heads, s_.key_width);
    const Operand v = tokens(&SdpaOperands::v, s_.keys, s_.heads, s_.value_width);
    const Operand o = tokens(&SdpaOperands::o, s_.time, query_heads(), s_.value_width), lse = stored_rows(&SdpaOperands::lse);
    const Operand s = masked(scaled(products(q, k)));
    const Operand m = rows(), l = rows(), log_l = rows(), e = scores(f32), p = scores(bf16), below = scores(f32);
    graph.reduce(CUDNN_REDUCE_TENSOR_MAX, s, m);
    graph.map(CUDNN_POINTWISE_SUB, s, m, below);
    graph.map(CUDNN_POINTWISE_EXP, below, e);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, e, l);
    graph.map(CUDNN_POINTWISE_LOG, l, log_l);
    graph.map(CUDNN_POINTWISE_ADD, m, log_l, lse);
    graph.map(CUDNN_POINTWISE_DIV, e, l, p);
    graph.product(p, v, o);
  }

  /// delta = sum_i do_i o_i; p = exp(scale q k^T - lse), 0 where hidden; dv = p^T do; ds = scale p (do v^T - delta);
  /// dk = ds^T q; dq = ds k. That dq comes straight out of its product is what asks for the same bits every time: cuDNN then
  /// keeps ds, in bf16, and adds nothing atomically.
  void backward() {
    const Operand q = tokens(&SdpaOperands::q, s_.time, query_heads(), s_.key_width);
    const Operand k = turned(&SdpaOperands::k, s_.keys, s_.heads, s_.key_width);
    const Operand v = turned(&SdpaOperands::v, s_.keys, s_.heads, s_.value_width);
    const Operand o = tokens(&SdpaOperands::o, s_.time, query_heads(), s_.value_width), lse = stored_rows(&SdpaOperands::lse);
    const Operand d_o = tokens(&SdpaOperands::d_o, s_.time, query_heads(), s_.value_width);
    const Operand dq = tokens(&SdpaOperands::dq, s_.time, query_heads(), s_.key_width);
    const Operand dk = tokens(&SdpaOperands::dk, s_.keys, s_.heads, s_.key_width);
    const Operand dv = tokens(&SdpaOperands::dv, s_.keys, s_.heads, s_.value_width);
    const Operand delta = sums(d_o, o);
    const Operand below = scores(f32), p = scores(f32);
    graph.map(CUDNN_POINTWISE_SUB, scaled(products(q, k)), lse, below);
    graph.map(CUDNN_POINTWISE_EXP, masked(below), p);
    over_queries(p, d_o, dv);
    const Operand beside = scores(f32), weighed = scores(f32), ds = scores(bf16);
    graph.map(CUDNN_POINTWISE_SUB, products(d_o, v), delta, beside);
    graph.map(CUDNN_POINTWISE_MUL, beside, p, weighed);
    graph.map(CUDNN_POINTWISE_MUL, weighed, scale_, ds);
    over_queries(ds, q, dk);
    const Operand back = graph.inner(bf16, swapped(k.sizes), swapped(k.strides));
    graph.reshape(k, back);
    graph.product(ds, back, dq);
  }

  struct SdpaNumbers {
    float scale, hidden, one;
  };
  Graph graph;
  std::vector<std::pair<std::int64_t, void* SdpaOperands::*>> operands;
  std::vector<std::pair<std::int64_t, float SdpaNumbers::*>> numbers;
  std::optional<std::int64_t> delta_id;  // f32 [batch, heads * group, time], memory of the plan

 private:
  std::int64_t query_heads() const { return s_.heads * s_.group; }
  static Axes swapped(Axes axes) {
    std::swap(axes[2], axes[3]);
    return axes;
  }

  Operand number(float SdpaNumbers::*which) {
    const Operand made = graph.number();
    numbers.emplace_back(made.id, which);
    return made;
  }
  Operand stored(void* SdpaOperands::*which, cudnnDataType_t type, Axes sizes, Axes strides) {
    const Operand made = graph.stored(type, std::move(sizes), std::move(strides));
    operands.emplace_back(made.id, which);
    return made;
  }
  Operand tokens(void* SdpaOperands::*which, std::int64_t count, std::int64_t heads, std::int64_t width) {
    return stored(which, bf16, {s_.batch, heads, count, width}, {count * heads * width, width, heads * width, 1});
  }
  Operand turned(void* SdpaOperands::*which, std::int64_t count, std::int64_t heads, std::int64_t width) {
    return stored(which, bf16, {s_.batch, heads, width, count}, {count * heads * width, width, 1, heads * width});
  }
  Axes row_sizes() const { return {s_.batch, query_heads(), s_.time, 1}; }
  Axes row_strides() const { return {query_heads() * s_.time, s_.time, 1, 1}; }
  Operand stored_rows(void* SdpaOperands::*which) { return stored(which, f32, row_sizes(), row_strides()); }
  Operand rows() { return graph.inner(f32, row_sizes(), row_strides()); }
  Operand scores(cudnnDataType_t type) {
    return graph.inner(type, {s_.batch, query_heads(), s_.time, s_.keys},
                       {query_heads() * s_.time * s_.keys, s_.time * s_.keys, s_.keys, 1});
  }

  Operand products(const Operand& a, const Operand& b) {
    const Operand out = scores(f32);
    graph.product(a, b, out);
    return out;
  }
  Operand scaled(const Operand& x) {
    const Operand out = scores(f32);
    graph.map(CUDNN_POINTWISE_MUL, x, scale_, out);
    return out;
  }
  Operand masked(const Operand& x) {
    if (!s_.causal) return x;
    const Operand query = scores(i32), key = scores(i32), seen = scores(CUDNN_DATA_BOOLEAN), out = scores(f32);
    graph.index(2, x, query);
    graph.index(3, x, key);
    graph.map(CUDNN_POINTWISE_CMP_GE, query, key, seen, CUDNN_DATA_BOOLEAN);
    graph.select(seen, x, *hidden_, out);
    return out;
  }
  /// sum_i d_o_i o_i. The factor of one stands where dropout would have its own.
  Operand sums(const Operand& d_o, const Operand& o) {
    const Operand both =
        graph.inner(f32, o.sizes, {query_heads() * s_.time * s_.value_width, s_.time * s_.value_width,
                                   query_heads() * s_.value_width, 1});
    const Operand sum = rows(), delta = graph.stored(f32, row_sizes(), row_strides());
    graph.map(CUDNN_POINTWISE_MUL, d_o, o, both);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, both, sum);
    graph.map(CUDNN_POINTWISE_MUL, sum, number(&SdpaNumbers::one), delta);
    delta_id = delta.id;
    return delta;
  }
  /// to = x^T y, added over the queries' heads that share one of `to`.
  void over_queries(const Operand& x, const Operand& y, const Operand& to) {
    const Operand turned = graph.inner(bf16, {s_.batch, query_heads(), s_.keys, s_.time},
                                       {query_heads() * s_.time * s_.keys, s_.time * s_.keys, 1, s_.keys});
    graph.reshape(x, turned);
    if (s_.group == 1) return graph.product(turned, y, to);
    const std::int64_t width = to.sizes[3];
    const Operand every = graph.inner(bf16, {s_.batch, query_heads(), s_.keys, width},
                                      {query_heads() * s_.keys * width, s_.keys * width, width, 1});
    graph.product(turned, y, every);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, every, to);
  }

  SdpaSizes s_;
  Operand scale_;
  std::optional<Operand> hidden_;
};

class Cudnn final : public Sdpa {
 public:
  Cudnn(const cudnn::Library& library, const std::string& device) : library_(library) {
    if (device.empty()) return;
    device_.emplace(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    device_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::vector<char>(device.begin(), device.end()))
        .finish("a device");
  }
  ~Cudnn() override {
    plans_.clear();
    if (handle_ != nullptr) library_.destroy(handle_);
    for (void* const block : blocks_) cudaFree(block);
  }
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  void forward(const Queue& queue, const SdpaSizes& sizes, const SdpaOperands& operands) override {
    run(queue, sizes, operands, false);
  }
  void backward(const Queue& queue, const SdpaSizes& sizes, const SdpaOperands& operands) override {
    run(queue, sizes, operands, true);
  }
  std::int64_t memory(const Queue& queue, const SdpaSizes& sizes, bool backward) override {
    return made(queue, sizes, backward).bytes;
  }
  std::string name() const override { return "cuDNN " + library_.version_text(); }

 private:
  struct Made {
    Drawing drawing;
    std::optional<cudnn::Plan> plan;
    std::int64_t delta_at = 0, bytes = 0;  // in the memory: what the plan wants, then delta
    void* memory = nullptr;
  };
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         bool, bool>;

  Made& made(const Queue& queue, const SdpaSizes& s, bool backward) {
    const Key key{s.batch, s.time, s.keys, s.heads, s.group, s.key_width, s.value_width, s.causal, backward};
    if (const auto place = plans_.find(key); place != plans_.end()) return *place->second;
    if (device_ == std::nullopt) start(static_cast<cudaStream_t>(queue.stream));
    auto fresh = std::make_unique<Made>(Made{Drawing(library_, s), {}});
    backward ? fresh->drawing.backward() : fresh->drawing.forward();
    try {
      fresh->plan.emplace(library_, std::move(fresh->drawing.graph), handle_, device_ ? &*device_ : nullptr);
    } catch (const UserError& error) {
      throw UserError("train.attention: " + text_of(s) + (backward ? ", backward" : "") + ": " + error.what() +
                      "; expected own");
    }
    fresh->delta_at = (fresh->plan->workspace_bytes() + 255) / 256 * 256;
    fresh->bytes = fresh->delta_at + (backward ? s.batch * s.heads * s.group * s.time * 4 : 0);
    return *(plans_[key] = std::move(fresh));
  }

  /// Before a plan is made.
  void start(cudaStream_t stream) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &capture), "the queue");
    PHASOR_CHECK(capture == cudaStreamCaptureStatusNone, "a plan of cuDNN is made while launches are captured");
    if (handle_ == nullptr) library_.check(library_.create(&handle_), "its handle");
  }

  /// Plans run one after the other and share the largest block; smaller ones stay for the captures that name them.
  void* room(std::int64_t bytes) {
    if (bytes <= largest_) return blocks_.empty() ? nullptr : blocks_.back();
    void* block = nullptr;
    check(cudaMalloc(&block, static_cast<std::size_t>(bytes)),
          std::to_string(bytes) + " bytes for cuDNN's attention (train.micro_batch makes them fewer)");
    blocks_.push_back(block);
    largest_ = bytes;
    return block;
  }

  void run(const Queue& queue, const SdpaSizes& sizes, const SdpaOperands& operands, bool backward) {
    PHASOR_CHECK(device_ == std::nullopt, "plans for a device that is not there do not run");
    Made& m = made(queue, sizes, backward);
    if (queue_ != queue.stream) {
      library_.check(library_.set_stream(handle_, static_cast<cudaStream_t>(queue.stream)), "its queue");
      queue_ = queue.stream;
    }
    if (m.memory == nullptr && m.bytes > 0) m.memory = room(m.bytes);
    Drawing::SdpaNumbers numbers{sizes.scale, -std::numeric_limits<float>::infinity(), 1.0f};
    std::vector<std::int64_t> ids;
    std::vector<void*> addresses;
    const auto give = [&](std::int64_t id, void* address) {
      ids.push_back(id);
      addresses.push_back(address);
    };
    for (const auto& [id, which] : m.drawing.operands) give(id, operands.*which);
    for (const auto& [id, which] : m.drawing.numbers) give(id, &(numbers.*which));
    if (m.drawing.delta_id) give(*m.drawing.delta_id, static_cast<std::byte*>(m.memory) + m.delta_at);
    m.plan->run(handle_, ids, addresses, m.memory);
  }

  const cudnn::Library& library_;
  std::optional<cudnn::Descriptor> device_;  // that need not be there
  cudnnHandle_t handle_ = nullptr;
  void* queue_ = nullptr;  // that of the handle
  std::map<Key, std::unique_ptr<Made>> plans_;
  std::vector<void*> blocks_;
  std::int64_t largest_ = 0;
};

}  // namespace

std::unique_ptr<Sdpa> open_cudnn(std::string& reason, const std::string& device) {
  const cudnn::Library* const library = cudnn::open(reason);
  return library != nullptr ? std::make_unique<Cudnn>(*library, device) : nullptr;
}

}  // namespace phasor::cuda
