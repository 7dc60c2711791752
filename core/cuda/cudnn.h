#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// cuDNN's graph interface. The library is looked for when somebody asks for it, so that this one loads without it.

namespace phasor::cuda::cudnn {

/// The functions of libcudnn.so.9 that are called here.
struct Library {
  decltype(&::cudnnGetVersion) version;
  decltype(&::cudnnGetErrorString) error_text;
  decltype(&::cudnnGetLastErrorString) last_error;
  decltype(&::cudnnCreate) create;
  decltype(&::cudnnDestroy) destroy;
  decltype(&::cudnnSetStream) set_stream;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&::cudnnBackendSetAttribute) set_attribute;
  decltype(&::cudnnBackendGetAttribute) get_attribute;
  decltype(&::cudnnBackendFinalize) finalize;
  decltype(&::cudnnBackendExecute) execute;

  /// "9.19.0"
  std::string version_text() const;
  /// UserError with what failed and what cuDNN says of it.
  void check(cudnnStatus_t status, const char* what) const;
  std::string reason(cudnnStatus_t status) const;
};

/// Null, and then `reason` says why: it cannot be loaded, or it is too old. Stays loaded.
const Library* open(std::string& reason);

constexpr cudnnBackendAttributeType_t kind_of(std::int64_t) { return CUDNN_TYPE_INT64; }
constexpr cudnnBackendAttributeType_t kind_of(bool) { return CUDNN_TYPE_BOOLEAN; }
constexpr cudnnBackendAttributeType_t kind_of(char) { return CUDNN_TYPE_CHAR; }
constexpr cudnnBackendAttributeType_t kind_of(void*) { return CUDNN_TYPE_VOID_PTR; }
constexpr cudnnBackendAttributeType_t kind_of(cudnnHandle_t) { return CUDNN_TYPE_HANDLE; }
constexpr cudnnBackendAttributeType_t kind_of(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
constexpr cudnnBackendAttributeType_t kind_of(cudnnPointwiseMode_t) { return CUDNN_TYPE_POINTWISE_MODE; }
constexpr cudnnBackendAttributeType_t kind_of(cudnnReduceTensorOp_t) { return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE; }
constexpr cudnnBackendAttributeType_t kind_of(cudnnBackendHeurMode_t) { return CUDNN_TYPE_HEUR_MODE; }

/// One of cuDNN's descriptors: attributes are set, then it is finished and can be named by others.
class Descriptor {
 public:
  Descriptor(const Library& library, cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept
      : library_(other.library_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  cudnnBackendDescriptor_t get() const { return descriptor_; }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, kind_of(T{}), 1, &value);
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    return set(name, kind_of(T{}), static_cast<std::int64_t>(values.size()), values.data());
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<const Descriptor*>& values);
  void finish(const char* what) { library_->check(library_->finalize(descriptor_), what); }

 private:
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t kind, std::int64_t count,
                  const void* values);

  const Library* library_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// A tensor of a graph.
struct Operand {
  std::int64_t id = 0;
  std::vector<std::int64_t> sizes, strides;
  const Descriptor* descriptor = nullptr;
};

/// Operations on tensors of four axes, sums in f32. What is not `stored` lives within the one kernel that cuDNN makes of it.
class Graph {
 public:
  explicit Graph(const Library& library) : library_(library) {}

  Operand stored(cudnnDataType_t type, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides);
  /// A number that the host gives at every call, f32.
  Operand number();
  Operand inner(cudnnDataType_t type, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides);
  /// In f32, of the same sizes.
  Operand like(const Operand& other) { return inner(CUDNN_DATA_FLOAT, other.sizes, other.strides); }

  void product(const Operand& a, const Operand& b, const Operand& c);
  void reduce(cudnnReduceTensorOp_t what, const Operand& x, const Operand& y);
  /// The same elements under other sizes and strides.
  void reshape(const Operand& x, const Operand& y);
  void map(cudnnPointwiseMode_t mode, const Operand& x, const Operand& y);
  void map(cudnnPointwiseMode_t mode, const Operand& x, const Operand& b, const Operand& y,
           cudnnDataType_t arithmetic = CUDNN_DATA_FLOAT);
  /// y = mask ? x : otherwise
  void select(const Operand& mask, const Operand& x, const Operand& otherwise, const Operand& y);
  /// The place of every element along an axis, i32.
  void index(std::int64_t axis, const Operand& x, const Operand& y);

  /// One descriptor for all of it, which ends it. `handle` may be null.
  Descriptor& finish(cudnnHandle_t handle);

 private:
  Operand tensor(cudnnDataType_t type, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides, bool inner,
                 bool by_value);
  Descriptor& add(cudnnBackendDescriptorType_t type);
  Descriptor& pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t arithmetic, std::int64_t axis, const Operand& x,
                        const Operand& y);

  const Library& library_;
  std::vector<std::unique_ptr<Descriptor>> all_;
  std::vector<const Descriptor*> operations_;
  std::int64_t tensors_ = 0;
};

/// The first plan of cuDNN's own list for a graph that this device can run. Compiled here, about half a second.
/// `handle`: of the device; or null, and then `device` describes one that is not there.
class Plan {
 public:
  Plan(const Library& library, Graph graph, cudnnHandle_t handle, const Descriptor* device);

  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Joins the queue of the handle. `ids`: of the stored tensors and numbers, each with its address; numbers are the host's.
  void run(cudnnHandle_t handle, const std::vector<std::int64_t>& ids, const std::vector<void*>& addresses,
           void* workspace) const;

 private:
  const Library& library_;
  Graph graph_;
  std::unique_ptr<Descriptor> plan_;
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace phasor::cuda::cudnn
