#include "core/graph/device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <cuda_runtime_api.h>

#include "core/cuda/devices.h"
#include "core/cuda/kernels.h"
#include "core/cuda/products.h"
#include "core/cuda/sdpa.h"
#include "core/cuda/status.h"

namespace phasor {

namespace {

constexpr std::size_t scratch_bytes = 64 << 20;

using cuda::check;

/// Pinned memory in which bytes wait for the way to the device, in segments that take turns: a segment is written again when
/// the copies out of it are done.
class Staging {
 public:
  Staging() {
    check(cudaMallocHost(&memory_, segments * segment_bytes), "pinned memory");
    for (cudaEvent_t& event : events_)
      if (const cudaError_t status = cudaEventCreateWithFlags(&event, cudaEventDisableTiming); status != cudaSuccess) {
        release();
        check(status, "event");
      }
  }
  ~Staging() { release(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  void send(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    auto* target = static_cast<std::byte*>(to);
    const auto* source = static_cast<const std::byte*>(from);
    while (bytes > 0) {
      const std::size_t part = std::min(bytes, segment_bytes);
      std::byte* place = room(part, stream);
      std::memcpy(place, source, part);
      check(cudaMemcpyAsync(target, place, part, cudaMemcpyHostToDevice, stream), "copy to the device");
      target += part;
      source += part;
      bytes -= part;
    }
  }

 private:
  static constexpr std::size_t segments = 8, segment_bytes = 1 << 20;

  std::byte* room(std::size_t bytes, cudaStream_t stream) {
    if (used_ + bytes > segment_bytes) {
      check(cudaEventRecord(events_[at_], stream), "event");
      at_ = (at_ + 1) % segments;
      check(cudaEventSynchronize(events_[at_]), "a copy to the device");  // at once where nothing was recorded
      used_ = 0;
    }
    std::byte* place = static_cast<std::byte*>(memory_) + at_ * segment_bytes + used_;
    used_ += (bytes + 63) / 64 * 64;
    return place;
  }

  void release() {
    for (cudaEvent_t event : events_)
      if (event != nullptr) cudaEventDestroy(event);
    cudaFreeHost(memory_);
  }

  void* memory_ = nullptr;
  std::array<cudaEvent_t, segments> events_{};
  std::size_t at_ = 0, used_ = 0;
};

/// One queue on the device that is current on this thread. Nothing of it is shared with other queues there: they have their own
/// staging, scratch memory, and library of products with its workspace.
class CudaDevice : public Device {
 public:
  explicit CudaDevice(std::string name) : name_(std::move(name)) {
    cuda::add_all(kernels_);
    check(cudaMalloc(&scratch_, scratch_bytes), "scratch memory");
    const cudaError_t status = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    if (status != cudaSuccess) cudaFree(scratch_);
    check(status, "queue");
#ifdef PHASOR_CUDNN
    sdpa_ = cuda::open_cudnn(no_sdpa_);
#endif
  }
  ~CudaDevice() override {
    cudaStreamSynchronize(stream_);
    sdpa_.reset();
    cudaFree(scratch_);
    cudaStreamDestroy(stream_);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string name() const override { return name_; }
  std::string kind() const override { return "cuda"; }

  void* allocate(std::size_t bytes) override {
    require_no_capture("memory is taken");
    void* data = nullptr;
    check(cudaMalloc(&data, bytes), (std::to_string(bytes) + " bytes of memory").c_str());
    return data;
  }
  void release(void* data) override { cudaFree(data); }

  void copy_in(void* to, const void* from, std::size_t bytes) override {
    require_no_capture("something is copied in");
    staging_.send(to, from, bytes, stream_);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    require_no_capture("something is copied out");
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "copy from the device");
    synchronize();
  }
  void fill(void* to, unsigned char byte, std::size_t bytes) override {
    check(cudaMemsetAsync(to, byte, bytes, stream_), "filling of memory");
  }

  void run(const void* kernel, const char* name, Dtype dtype, const void* args) override {
    if (!kernels_.has(kernel, dtype)) throw NoKernel(name_, name, dtype);
    kernels_.run(kernel, dtype, {stream_, &products_, scratch_, scratch_bytes, sdpa_.get()}, args);
  }
  bool has(const void* kernel, Dtype dtype) const override { return kernels_.has(kernel, dtype); }
  std::string attention_library(std::string& reason) const override {
    if (sdpa_ != nullptr) return sdpa_->name();
    reason = no_sdpa_;
    return {};
  }
  void synchronize() override {
    require_no_capture("the queue is waited for");
    check(cudaStreamSynchronize(stream_), "a kernel");
  }

  void begin_capture() override {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    capturing_ = true;
  }
  std::shared_ptr<void> end_capture() override {
    capturing_ = false;
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_, &graph), "capture");
    cudaGraphExec_t ready = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "captured work");
    return {ready, [](void* captured) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(captured)); }};
  }
  void replay(void* captured) override {
    check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(captured), stream_), "captured work");
  }

 private:
  void require_no_capture(const char* what) const {
    PHASOR_CHECK(!capturing_, std::string(what) + " while launches are captured");
  }

  std::string name_;
  cudaStream_t stream_ = nullptr;
  Staging staging_;
  bool capturing_ = false;
  void* scratch_ = nullptr;
  cuda::Products products_;
  std::unique_ptr<cuda::Sdpa> sdpa_;
  std::string no_sdpa_ = "this program is built without cuDNN";  // why sdpa_ is null
  cuda::Kernels kernels_;
};

}  // namespace

}  // namespace phasor

// What core/graph/device.cpp looks for.

extern "C" std::int64_t phasor_count_cuda() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

extern "C" std::unique_ptr<phasor::Device> phasor_open_cuda(std::string& reason, std::int64_t slot) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaDeviceProp properties{};
  if (status != cudaSuccess || count == 0) {
    reason = status == cudaErrorInsufficientDriver ? "no device: there is no driver, or it is too old" : "no device";
    return nullptr;
  }
  const auto number = static_cast<int>(phasor::device_of_slot(slot, count));
  if (cudaGetDeviceProperties(&properties, number) != cudaSuccess || cudaSetDevice(number) != cudaSuccess) {
    reason = "the device does not answer";
    return nullptr;
  }
  return std::make_unique<phasor::CudaDevice>(properties.name);
}
