#include "tests/golden/pass.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/graph/device.h"

namespace phasor::golden {

Shape shape_of(const std::vector<std::int64_t>& d) {
  switch (d.size()) {
    case 1:
      return {d[0]};
    case 2:
      return {d[0], d[1]};
    case 3:
      return {d[0], d[1], d[2]};
    case 4:
      return {d[0], d[1], d[2], d[3]};
    case 5:
      return {d[0], d[1], d[2], d[3], d[4]};
    default:
      throw UserError("a tensor has " + std::to_string(d.size()) + " axes, expected 1 to 5");
  }
}

namespace {
/// What a tensor holds, row by row: itself, or a copy of what a device has.
class Bytes {
 public:
  Bytes(const Stream& stream, const Tensor& tensor) : tensor_(tensor), device_(stream.device), view_(tensor.view()) {
    if (device_ == nullptr || tensor.size() == 0) return;
    const std::int64_t elements = (tensor.rows() - 1) * tensor.row_stride() + tensor.width();
    copy_.resize(static_cast<std::size_t>(elements) * size_of(tensor.dtype()));
    device_->copy_out(copy_.data(), tensor.data(), copy_.size());
    view_.data = copy_.data();
  }
  const View& view() const { return view_; }
  void write() const {
    if (!copy_.empty()) device_->copy_in(tensor_.data(), copy_.data(), copy_.size());
  }

 private:
  const Tensor& tensor_;
  Device* device_;
  View view_;
  std::vector<std::byte> copy_;
};
}  // namespace

Numbers read(const Stream& stream, const Tensor& tensor) {
  const Bytes bytes(stream, tensor);
  Numbers out;
  for (int axis = 0; axis < tensor.shape().rank(); ++axis) out.dims.push_back(tensor.size(axis));
  for (std::int64_t r = 0; r < tensor.rows(); ++r)
    for (std::int64_t i = 0; i < tensor.width(); ++i) switch (tensor.dtype()) {
        case Dtype::f32:
          out.values.push_back(static_cast<double>(row<float>(bytes.view(), r)[i]));
          break;
        case Dtype::f64:
          out.values.push_back(row<double>(bytes.view(), r)[i]);
          break;
        case Dtype::i32:
          out.values.push_back(row<std::int32_t>(bytes.view(), r)[i]);
          break;
      }
  return out;
}

void fill(const Stream& stream, const Tensor& tensor, const std::vector<double>& values) {
  const Bytes bytes(stream, tensor);
  PHASOR_CHECK(static_cast<std::int64_t>(values.size()) == tensor.size(), "as many values as the tensor has");
  auto value = values.begin();
  for (std::int64_t r = 0; r < tensor.rows(); ++r)
    for (std::int64_t i = 0; i < tensor.width(); ++i, ++value) switch (tensor.dtype()) {
        case Dtype::f32:
          row<float>(bytes.view(), r)[i] = static_cast<float>(*value);
          break;
        case Dtype::f64:
          row<double>(bytes.view(), r)[i] = *value;
          break;
        case Dtype::i32:
          row<std::int32_t>(bytes.view(), r)[i] = static_cast<std::int32_t>(*value);
          break;
      }
  bytes.write();
}

Numbers scalar(double value) { return {{1}, {value}}; }

std::string file_name_of(const std::string& parameter) {
  static const std::string ours = ".encoding.", theirs = ".attn.rotary.";
  const std::size_t place = parameter.find(ours);
  return place == std::string::npos ? parameter : std::string(parameter).replace(place, ours.size(), theirs);
}

void fill_parameters(ParameterStore& store, const GoldenFile& file, const Stream& stream) {
  store.allocate(stream.dtype, stream.device);
  std::string problems;
  const auto problem = [&](const std::string& text) { problems += (problems.empty() ? "" : "; ") + text; };
  std::set<std::string> ours;
  for (const ParameterEntry& entry : store.entries()) {
    const std::string name = file_name_of(entry.name);
    ours.insert(name);
    const auto found = file.params.find(name);
    if (found == file.params.end()) {
      problem("parameter " + entry.name + " is not in the file");
    } else if (!(shape_of(found->second.dims) == entry.shape)) {
      problem("parameter " + entry.name + " is " + entry.shape.text() + ", in the file " +
              shape_of(found->second.dims).text());
    } else {
      if (file.has_gradients() && entry.frozen == file.grads.contains(name))
        problem("parameter " + entry.name +
                (entry.frozen ? " is frozen, in the file trained" : " is trained, in the file frozen"));
      fill(stream, store.value(entry), found->second.values);
    }
  }
  for (const auto& [name, numbers] : file.params)
    if (!ours.contains(name)) problem("parameter " + name + " of the file is not ours");
  if (!problems.empty()) throw UserError(problems);
}

void check_frozen_start(ParameterStore& store, const GoldenFile& file) {
  const Stream stream{store.flat().dtype(), nullptr, false, store.device()};
  const double tolerance = stream.dtype == Dtype::f64 ? 1e-12 : 1e-6;
  store.initialise(1);
  for (const ParameterEntry& entry : store.entries()) {
    const std::vector<double>& want = file.params.at(file_name_of(entry.name)).values;
    const std::vector<double> got = read(stream, store.value(entry)).values;
    for (std::size_t i = 0; entry.frozen && i < want.size(); ++i)
      if (!(std::abs(got[i] - want[i]) <= tolerance * std::abs(want[i])))
        throw UserError("frozen " + entry.name + " starts with " + std::to_string(got[i]) + " at element " +
                        std::to_string(i) + ", in the file it is " + std::to_string(want[i]));
    fill(stream, store.value(entry), want);
  }
}

void read_gradients(const ParameterStore& store, const Tensor& flat, Results& results) {
  if (!flat) return;  // nothing is trained
  const Stream stream{flat.dtype(), nullptr, false, store.device()};
  const std::vector<double> all = read(stream, flat).values;
  for (const ParameterEntry& entry : store.entries()) {
    if (entry.frozen) continue;
    Numbers numbers;
    for (int axis = 0; axis < entry.shape.rank(); ++axis) numbers.dims.push_back(entry.shape[axis]);
    numbers.values.assign(all.begin() + entry.offset, all.begin() + entry.offset + entry.count());
    results.grads.insert_or_assign(file_name_of(entry.name), std::move(numbers));
  }
}

namespace {
Arena& poisoned(Arena& arena) {
  arena.poison(true);
  return arena;
}

Tensor zero_gradients(Arena& arena, const Stream& stream, const ParameterStore* store) {
  if (store == nullptr || store->flat_size() == 0) return {};
  Tensor flat(arena, stream.dtype, {store->flat_size()});
  zero(stream, flat);
  return flat;
}
}  // namespace

Pass::Pass(const GoldenFile& file, const Stream& stream, const ParameterStore* store)
    : file_(file),
      store_(store),
      arena_(stream.device),
      gradients_(zero_gradients(poisoned(arena_), stream, store)),
      tape_(arena_, stream, true, gradients_) {}

Tensor Pass::leaf(const std::string& name, Dtype dtype) {
  for (const Group* group : {&file_.inputs, &file_.params}) {
    const auto found = group->find(name);
    if (found == group->end()) continue;
    const Tensor values = tape_.empty(shape_of(found->second.dims), dtype);
    fill(tape_.stream(), values, found->second.values);
    leaves_.emplace_back(name, tape_.variable(values));
    return leaves_.back().second;
  }
  return {};
}

Tensor Pass::constant(const std::string& name) {
  const auto found = file_.params.find(name);
  if (found == file_.params.end()) return {};
  PHASOR_CHECK(!file_.grads.contains(name), "only what the file does not train is a constant");
  const Tensor values = tape_.empty(shape_of(found->second.dims));
  fill(tape_.stream(), values, found->second.values);
  return values;
}

Tensor Pass::indices(const std::string& name) {
  PHASOR_CHECK(file_.indices.contains("inputs/" + name), "only what the file calls an index has no gradient");
  const Numbers& numbers = file_.inputs.at(name);
  const Tensor values = tape_.empty(shape_of(numbers.dims), Dtype::i32);
  fill(tape_.stream(), values, numbers.values);
  return values;
}

void Pass::output(const std::string& name, const Tensor& value) {
  if (!value) {
    results_.faults.push_back("output " + name + ": empty");
    return;
  }
  report(name, read(tape_.stream(), value));
  if (const auto found = file_.cotangents.find(name); found != file_.cotangents.end())
    seed(value, found->second.values);
}

void Pass::seed(const Tensor& value, const std::vector<double>& gradient) {
  if (!tape_.wants(value)) return;
  const Tensor seed = tape_.empty(value.shape(), value.dtype());
  fill(tape_.stream(), seed, gradient);
  seeds_.emplace_back(value, seed);
}

Results Pass::finish() {
  tape_.backward(std::exchange(seeds_, {}));
  for (const auto& [name, leaf] : leaves_) {
    const Tensor gradient = tape_.leaf_gradient(leaf);
    const auto want = file_.grads.find(name);
    if (gradient) {
      results_.grads.insert_or_assign(name, read(tape_.stream(), gradient));
    } else if (want != file_.grads.end() &&
               std::all_of(want->second.values.begin(), want->second.values.end(), [](double v) { return v == 0.0; })) {
      results_.grads.insert_or_assign(name, want->second);  // nothing reads this input, and the file agrees
    }
  }
  if (store_ != nullptr) read_gradients(*store_, gradients_, results_);
  return std::move(results_);
}

}  // namespace phasor::golden
