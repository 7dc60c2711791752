#include "core/nn/parameters.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/philox.h"
#include "core/base/portable_math.h"
#include "core/graph/transfer.h"

namespace phasor {

namespace {
bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// Column i of row p of Init::sin_cos, `half` sines and as many cosines.
double sin_cos(std::int64_t p, std::int64_t i, std::int64_t half) {
  const double share = static_cast<double>(i % half) / static_cast<double>(half - 1);
  const portable::SinCos at = portable::sincos(static_cast<double>(p) * portable::exp(-share * portable::log(10000.0)));
  return i < half ? at.sin : at.cos;
}
}  // namespace

bool decays_by_name(std::string_view name) {
  const std::string_view last = name.substr(name.find_last_of('.') + 1);
  return !(last == "A_log" || last == "D" || last == "scalar" || ends_with(last, "bias") || ends_with(name, "norm.weight"));
}

Tensor Parameter::operator()() const {
  if (store_ == nullptr) return {};
  PHASOR_CHECK(store_->flat_, "parameters are allocated before the first forward pass");
  const auto bytes = static_cast<std::size_t>(offset_) * size_of(store_->flat_.dtype());
  Tensor value = Tensor::borrow(static_cast<std::byte*>(store_->flat_.data()) + bytes, store_->flat_.dtype(), shape_);
  if (!frozen_) value.set_node(-1 - offset_);
  return value;
}

Tensor Table::operator()() const {
  if (store_ == nullptr) return {};
  PHASOR_CHECK(store_->tables_, "tables are filled before the first forward pass");
  return Tensor::borrow(store_->tables_.as<double>() + offset_, Dtype::f64, {count_});
}

Parameter ParameterStore::declare(std::string name, Shape shape, Init init, bool frozen, bool decays) {
  PHASOR_CHECK(!flat_, "parameters are declared before they are allocated");
  PHASOR_CHECK(init.kind != Init::Kind::table || static_cast<std::int64_t>(init.values.size()) == shape.size(),
               "initial table of " + name);
  PHASOR_CHECK(init.kind != Init::Kind::sin_cos || (shape.rank() == 2 && shape[1] % 2 == 0 && shape[1] >= 4),
               "sines and cosines of " + name);
  ParameterEntry entry{std::move(name), shape, std::move(init), frozen, decays, size_};
  Parameter handle;
  handle.store_ = this;
  handle.offset_ = size_;
  handle.shape_ = shape;
  handle.frozen_ = frozen;
  size_ += entry.count();
  entries_.push_back(std::move(entry));
  return handle;
}

Table ParameterStore::table(const std::vector<double>& values) {
  PHASOR_CHECK(!flat_, "tables are declared before parameters are allocated");
  Table handle;
  handle.store_ = this;
  handle.offset_ = static_cast<std::int64_t>(table_values_.size());
  handle.count_ = static_cast<std::int64_t>(values.size());
  table_values_.insert(table_values_.end(), values.begin(), values.end());
  return handle;
}

Parameter ParameterStore::stack(const std::vector<Parameter>& parts) {
  PHASOR_CHECK(!parts.empty(), "a stack has parts");
  Parameter whole = parts.front();
  std::int64_t rows = 0, end = whole.offset_;
  const int rank = whole.shape_.rank();
  for (const Parameter& part : parts) {
    const bool alike = part.shape_.rank() == rank && (rank == 1 || (rank == 2 && part.shape_[1] == whole.shape_[1]));
    PHASOR_CHECK(part.offset_ == end && alike && !part.frozen_,
                 "a stack is made of neighbouring matrices of one inner size, or of neighbouring vectors");
    rows += part.shape_[0];
    end += part.shape_.size();
  }
  whole.shape_ = rank == 1 ? Shape{rows} : Shape{rows, whole.shape_[1]};
  return whole;
}

Parameter ParameterStore::rows(const Parameter& matrix, std::int64_t first, std::int64_t count) {
  PHASOR_CHECK(matrix.shape_.rank() == 2 && first >= 0 && first + count <= matrix.shape_[0], "rows of a parameter");
  Parameter part = matrix;
  part.offset_ += first * matrix.shape_[1];
  part.shape_ = {count, matrix.shape_[1]};
  return part;
}

void ParameterStore::scale_init(const std::vector<std::string>& endings, double factor) {
  for (ParameterEntry& entry : entries_)
    for (const std::string& ending : endings)
      if (entry.init.kind == Init::Kind::normal && ends_with(entry.name, ending)) entry.init.a *= factor;
}

void ParameterStore::allocate(Dtype dtype, Device* device) {
  PHASOR_CHECK(!flat_, "parameters are allocated once");
  std::vector<std::string_view> names;  // looked at together: one by one takes minutes for ten thousand layers
  for (const ParameterEntry& entry : entries_) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  PHASOR_CHECK(twice == names.end(), "two parameters are called " + std::string(*twice));
  arena_.emplace(device);
  flat_ = Tensor(*arena_, dtype, {size_});
  const auto count = static_cast<std::int64_t>(table_values_.size());
  tables_ = Tensor(*arena_, Dtype::f64, {count});
  put(device, Tensor::borrow(table_values_.data(), Dtype::f64, {count}), tables_);
}

Tensor ParameterStore::value(const ParameterEntry& entry) const {
  const auto bytes = static_cast<std::size_t>(entry.offset) * size_of(flat_.dtype());
  return Tensor::borrow(static_cast<std::byte*>(flat_.data()) + bytes, flat_.dtype(), entry.shape);
}

void ParameterStore::initialise(std::uint64_t seed) {
  Arena memory;
  const Tensor start = device() != nullptr ? Tensor(memory, flat_.dtype(), {size_}) : flat_;
  for (const ParameterEntry& entry : entries_) {
    const RandomStream random(seed, Purpose::initialisation, hash64(entry.name));
    const std::int64_t width = entry.shape[-1];
    const auto element = [&](std::int64_t i) {
      switch (entry.init.kind) {
        case Init::Kind::constant: return entry.init.a;
        case Init::Kind::sphere:
        case Init::Kind::normal: return entry.init.a * random.normal(static_cast<std::uint64_t>(i));
        case Init::Kind::uniform:
          return entry.init.a + (entry.init.b - entry.init.a) * random.uniform(static_cast<std::uint64_t>(i));
        case Init::Kind::log_of_uniform:  // a number of zero would stay zero: the least is 2^-40 of the range
          return std::log(entry.init.a + (entry.init.b - entry.init.a) *
                                             std::max(random.uniform(static_cast<std::uint64_t>(i)), 0x1p-40));
        case Init::Kind::inverse_softplus:
          return std::log(std::expm1(
              entry.init.a * std::pow(entry.init.b / entry.init.a, random.uniform(static_cast<std::uint64_t>(i)))));
        case Init::Kind::sin_cos: return sin_cos(i / width, i % width, width / 2);
        case Init::Kind::table: return entry.init.values[static_cast<std::size_t>(i)];
      }
      return 0.0;
    };
    const auto row_length = [&](std::int64_t i) {  // of the row that element i belongs to
      double square = 0.0;
      for (std::int64_t j = i / width * width; j < (i / width + 1) * width; ++j) square += element(j) * element(j);
      return std::sqrt(square);
    };
    double length = 1.0;
    for (std::int64_t i = 0; i < entry.count(); ++i) {
      if (entry.init.kind == Init::Kind::sphere && i % width == 0) length = row_length(i);
      if (flat_.dtype() == Dtype::f64)
        start.as<double>()[entry.offset + i] = element(i) / length;
      else
        start.as<float>()[entry.offset + i] = static_cast<float>(element(i) / length);
    }
  }
  if (device() != nullptr) put(device(), start, flat_);
}

const ParameterEntry* ParameterStore::find(std::string_view name) const {
  const auto place = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e.name == name; });
  return place == entries_.end() ? nullptr : &*place;
}

std::int64_t ParameterStore::total(bool with_frozen) const {
  std::int64_t sum = 0;
  for (const ParameterEntry& entry : entries_)
    if (with_frozen || !entry.frozen) sum += entry.count();
  return sum;
}

ParameterScope ParameterScope::child(std::string_view name) const {
  return {*store_, prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name), init_std_};
}

Parameter ParameterScope::add(std::string_view name, Shape shape, Init init, bool frozen) const {
  std::string full = prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
  const bool decays = !frozen && decays_by_name(full);
  return store_->declare(std::move(full), shape, std::move(init), frozen, decays);
}

Parameter ParameterScope::weight(std::string_view name, std::int64_t out, std::int64_t in) const {
  return add(name, {out, in}, Init::normal(init_std_));
}

Parameter ParameterScope::zeros(std::string_view name, Shape shape) const { return add(name, shape, Init::zeros()); }

Parameter ParameterScope::ones(std::string_view name, Shape shape) const { return add(name, shape, Init::ones()); }

}  // namespace phasor
