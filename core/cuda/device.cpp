#include "core/graph/device.h"

#include <cuda_runtime_api.h>

#include "core/cuda/kernels.h"
#include "core/cuda/products.h"

namespace phasor {

namespace {

constexpr std::size_t scratch_bytes = 64 << 20;

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw UserError(std::string("cuda: ") + what + ": " + cudaGetErrorString(status));
}

/// The first device and one queue on it.
class CudaDevice : public Device {
 public:
  explicit CudaDevice(std::string name) : name_(std::move(name)) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "queue");
    check(cudaMalloc(&scratch_, scratch_bytes), "scratch memory");
    cuda::add_all(kernels_);
  }
  ~CudaDevice() override {
    cudaStreamSynchronize(stream_);
    cudaFree(scratch_);
    cudaStreamDestroy(stream_);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string name() const override { return name_; }

  void* allocate(std::size_t bytes) override {
    void* data = nullptr;
    check(cudaMalloc(&data, bytes), (std::to_string(bytes) + " bytes of memory").c_str());
    return data;
  }
  void release(void* data) override { cudaFree(data); }

  // From memory that is not pinned the call returns when the bytes have been taken over.
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "copy to the device");
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "copy from the device");
    synchronize();
  }
  void fill(void* to, unsigned char byte, std::size_t bytes) override {
    check(cudaMemsetAsync(to, byte, bytes, stream_), "filling of memory");
  }

  void run(const void* kernel, const char* name, Dtype dtype, const void* args) override {
    if (!kernels_.has(kernel, dtype)) throw NoKernel(name_, name, dtype);
    kernels_.run(kernel, dtype, {stream_, &products_, scratch_, scratch_bytes}, args);
  }
  bool has(const void* kernel, Dtype dtype) const override { return kernels_.has(kernel, dtype); }
  void synchronize() override { check(cudaStreamSynchronize(stream_), "a kernel"); }

  void begin_capture() override { check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture"); }
  std::shared_ptr<void> end_capture() override {
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
  std::string name_;
  cudaStream_t stream_ = nullptr;
  void* scratch_ = nullptr;
  cuda::Products products_;
  cuda::Kernels kernels_;
};

}  // namespace

}  // namespace phasor

/// What core/graph/device.cpp looks for.
extern "C" std::unique_ptr<phasor::Device> phasor_open_cuda(std::string& reason) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaDeviceProp properties{};
  if (status != cudaSuccess || count == 0) {
    reason = status == cudaErrorInsufficientDriver ? "no device: there is no driver, or it is too old" : "no device";
    return nullptr;
  }
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
    reason = "the device does not answer";
    return nullptr;
  }
  return std::make_unique<phasor::CudaDevice>(properties.name);
}
