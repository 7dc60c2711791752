#include "core/cuda/cudnn.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace phasor::cuda::cudnn {

namespace {

constexpr std::size_t oldest = 91000;  // before, masks of minus infinity were not for it

template <class Function>
bool find(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

std::string text_of(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

}  // namespace

std::string Library::version_text() const { return text_of(version()); }

std::string Library::reason(cudnnStatus_t status) const {
  std::array<char, 512> said{};
  last_error(said.data(), said.size());
  return std::string(error_text(status)) + (said[0] != '\0' ? std::string(", ") + said.data() : "");
}

void Library::check(cudnnStatus_t status, const char* what) const {
  if (status != CUDNN_STATUS_SUCCESS) throw UserError(std::string("cuda: cuDNN: ") + what + ": " + reason(status));
}

namespace {

struct Found {
  Library library{};
  std::string reason;  // why there is none; empty: there is one
};

Found find_library() {
  Found found;
  Library& library = found.library;
  void* const file = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) {
    const char* const text = dlerror();
    found.reason = "cuDNN 9 cannot be loaded: " + std::string(text != nullptr ? text : "libcudnn.so.9");
    return found;
  }
  const bool whole = find(file, "cudnnGetVersion", library.version) &&
                     find(file, "cudnnGetErrorString", library.error_text) &&
                     find(file, "cudnnGetLastErrorString", library.last_error) &&
                     find(file, "cudnnCreate", library.create) && find(file, "cudnnDestroy", library.destroy) &&
                     find(file, "cudnnSetStream", library.set_stream) &&
                     find(file, "cudnnBackendCreateDescriptor", library.create_descriptor) &&
                     find(file, "cudnnBackendDestroyDescriptor", library.destroy_descriptor) &&
                     find(file, "cudnnBackendSetAttribute", library.set_attribute) &&
                     find(file, "cudnnBackendGetAttribute", library.get_attribute) &&
                     find(file, "cudnnBackendFinalize", library.finalize) &&
                     find(file, "cudnnBackendExecute", library.execute);
  if (!whole || library.version() < oldest)
    found.reason = "cuDNN " + (whole ? text_of(library.version()) : std::string("of an unknown version")) +
                   " was found, " + text_of(oldest) + " or a later 9 is expected";
  return found;
}

}  // namespace

const Library* open(std::string& reason) {
  static const Found found = find_library();
  if (found.reason.empty()) return &found.library;
  reason = found.reason;
  return nullptr;
}

Descriptor::Descriptor(const Library& library, cudnnBackendDescriptorType_t type) : library_(&library) {
  library.check(library.create_descriptor(type, &descriptor_), "a descriptor");
}

Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) library_->destroy_descriptor(descriptor_);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t kind, std::int64_t count,
                            const void* values) {
  const cudnnStatus_t status = library_->set_attribute(descriptor_, name, kind, count, values);
  if (status != CUDNN_STATUS_SUCCESS) library_->check(status, ("attribute " + std::to_string(name)).c_str());
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<const Descriptor*>& values) {
  std::vector<cudnnBackendDescriptor_t> all;
  for (const Descriptor* const value : values) all.push_back(value->descriptor_);
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(all.size()), all.data());
}

Descriptor& Graph::add(cudnnBackendDescriptorType_t type) {
  return *all_.emplace_back(std::make_unique<Descriptor>(library_, type));
}

Operand Graph::tensor(cudnnDataType_t type, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides,
                      bool inner, bool by_value) {
  Descriptor& made = add(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::int64_t id = ++tensors_;
  constexpr std::int64_t alignment = 16;  // bytes
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, inner)
      .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, by_value)
      .finish("a tensor");
  return {id, std::move(sizes), std::move(strides), &made};
}

Operand Graph::stored(cudnnDataType_t type, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  return tensor(type, std::move(sizes), std::move(strides), false, false);
}

Operand Graph::number() { return tensor(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true); }

Operand Graph::inner(cudnnDataType_t type, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  return tensor(type, std::move(sizes), std::move(strides), true, false);
}

void Graph::product(const Operand& a, const Operand& b, const Operand& c) {
  Descriptor& how = add(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finish("a product");
  Descriptor& made = add(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how)
      .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a.descriptor)
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b.descriptor)
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *c.descriptor)
      .finish("a product");
  operations_.push_back(&made);
}

void Graph::reduce(cudnnReduceTensorOp_t what, const Operand& x, const Operand& y) {
  Descriptor& how = add(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR, what).set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT).finish("a sum");
  Descriptor& made = add(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x.descriptor)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *y.descriptor)
      .finish("a sum");
  operations_.push_back(&made);
}

void Graph::reshape(const Operand& x, const Operand& y) {
  Descriptor& made = add(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x.descriptor)
      .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *y.descriptor)
      .finish("a transpose");
  operations_.push_back(&made);
}

Descriptor& Graph::pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t arithmetic, std::int64_t axis, const Operand& x,
                             const Operand& y) {
  Descriptor& how = add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, arithmetic);
  if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  how.finish("a map");
  Descriptor& made = add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x.descriptor)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *y.descriptor);
  operations_.push_back(&made);
  return made;
}

void Graph::map(cudnnPointwiseMode_t mode, const Operand& x, const Operand& y) {
  pointwise(mode, CUDNN_DATA_FLOAT, -1, x, y).finish("a map");
}

void Graph::map(cudnnPointwiseMode_t mode, const Operand& x, const Operand& b, const Operand& y,
                cudnnDataType_t arithmetic) {
  pointwise(mode, arithmetic, -1, x, y).set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b.descriptor).finish("a map");
}

void Graph::select(const Operand& mask, const Operand& x, const Operand& otherwise, const Operand& y) {
  pointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1, x, y)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *otherwise.descriptor)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *mask.descriptor)
      .finish("a choice");
}

void Graph::index(std::int64_t axis, const Operand& x, const Operand& y) {
  pointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis, x, y).finish("places along an axis");
}

Descriptor& Graph::finish(cudnnHandle_t handle) {
  Descriptor& whole = add(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (handle != nullptr) whole.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  whole.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_).finish("a graph");
  return whole;
}

namespace {

/// What cuDNN would take for a graph, best first.
std::vector<Descriptor> choices(const Library& library, const Descriptor& graph, cudnnBackendHeurMode_t mode,
                                const Descriptor* device) {
  Descriptor list(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  list.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (device != nullptr) list.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device);
  std::vector<Descriptor> found;
  if (library.finalize(list.get()) != CUDNN_STATUS_SUCCESS) return found;
  std::int64_t most = 0, count = 0;
  library.check(library.get_attribute(list.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &most,
                                      nullptr),
                "the number of plans");
  std::vector<cudnnBackendDescriptor_t> places;
  for (std::int64_t i = 0; i < most; ++i)
    places.push_back(found.emplace_back(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  library.check(library.get_attribute(list.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, most,
                                      &count, places.data()),
                "a list of plans");
  while (static_cast<std::int64_t>(found.size()) > count) found.pop_back();
  return found;
}

}  // namespace

Plan::Plan(const Library& library, Graph graph, cudnnHandle_t handle, const Descriptor* device)
    : library_(library), graph_(std::move(graph)) {
  const Descriptor& whole = graph_.finish(handle);
  std::string refused = "no engine takes it";
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (const Descriptor& choice : choices(library, whole, mode, device)) {
      auto plan = std::make_unique<Descriptor>(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, choice);
      if (handle != nullptr) plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
      if (device != nullptr) plan->set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device);
      if (const cudnnStatus_t status = library.finalize(plan->get()); status != CUDNN_STATUS_SUCCESS) {
        refused = library.reason(status);
        continue;
      }
      plan_ = std::move(plan);
      std::int64_t count = 0;
      library.check(library.get_attribute(plan_->get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                          &count, &workspace_bytes_),
                    "the memory of a plan");
      return;
    }
  throw UserError("cuDNN " + library.version_text() + " has no plan: " + refused);
}

void Plan::run(cudnnHandle_t handle, const std::vector<std::int64_t>& ids, const std::vector<void*>& addresses,
               void* workspace) const {
  Descriptor pack(library_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace)
      .finish("the operands of a plan");
  library_.check(library_.execute(handle, plan_->get(), pack.get()), "a plan");
}

}  // namespace phasor::cuda::cudnn
