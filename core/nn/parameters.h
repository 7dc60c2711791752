#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace phasor {

/// How a parameter starts. Random values are a function of (seed, full name, element), so adding a parameter does not
/// change the others.
struct Init {
  enum class Kind { constant, normal, uniform, table, sphere, log_of_uniform, inverse_softplus, sin_cos };
  Kind kind = Kind::constant;
  double a = 0.0;  // constant: the value; normal: standard deviation; the uniform ones: lower end
  double b = 0.0;  // the uniform ones: upper end
  std::vector<double> values;  // table

  static Init zeros() { return {Kind::constant, 0.0, 0.0, {}}; }
  static Init ones() { return {Kind::constant, 1.0, 0.0, {}}; }
  static Init normal(double deviation) { return {Kind::normal, deviation, 0.0, {}}; }
  static Init uniform(double low, double high) { return {Kind::uniform, low, high, {}}; }
  /// Rows (last axis) of length one, in a direction drawn uniformly.
  static Init sphere() { return {Kind::sphere, 1.0, 0.0, {}}; }
  /// The logarithm of a number that is uniform in [low, high): of a rate of decay that the layer takes the exponential of.
  static Init log_of_uniform(double low, double high) { return {Kind::log_of_uniform, low, high, {}}; }
  /// What has a softplus between low and high, drawn uniformly in the logarithm of that: of a step size.
  static Init inverse_softplus(double low, double high) { return {Kind::inverse_softplus, low, high, {}}; }
  /// Of a table [positions, 2 h], h at least 2: row p is sin(p f_0) .. sin(p f_{h-1}), then the cosines, with
  /// f_i = 10000^(-i / (h - 1)) (Vaswani et al. 2017, but for the order and the last frequency, which is 1 / 10000).
  static Init sin_cos() { return {Kind::sin_cos, 0.0, 0.0, {}}; }
  static Init table(std::vector<double> values) { return {Kind::table, 0.0, 0.0, std::move(values)}; }
};

struct ParameterEntry {
  std::string name;  // "layers.0.attn.q_proj.weight"
  Shape shape;
  Init init;
  bool frozen = false;   // kept and stored, never updated
  bool decays = true;    // in the weight-decay group of `optimizer.decay: tagged`
  std::int64_t offset = 0;  // in the flat buffer, in elements
  std::int64_t count() const { return shape.size(); }
};

class ParameterStore;

/// Handle of one parameter, or of several neighbours as one matrix.
class Parameter {
 public:
  Parameter() = default;
  explicit operator bool() const { return store_ != nullptr; }
  /// The value as an op sees it; empty for a handle that was never set (an absent bias).
  Tensor operator()() const;

 private:
  friend class ParameterStore;
  const ParameterStore* store_ = nullptr;
  std::int64_t offset_ = 0;
  Shape shape_;
  bool frozen_ = false;
};

/// Handle of numbers that no one trains and no checkpoint keeps, because the options give them: frequencies, decays.
class Table {
 public:
  Table() = default;
  explicit operator bool() const { return store_ != nullptr; }
  /// [count], f64 in both precisions, in the memory that the parameters are in; empty for a handle that was never set.
  Tensor operator()() const;

 private:
  friend class ParameterStore;
  const ParameterStore* store_ = nullptr;
  std::int64_t offset_ = 0, count_ = 0;
};

/// All parameters of a model in one flat buffer. First everything is declared (cheap: sizes and names only), then
/// `allocate` and `initialise` make the values.
class ParameterStore {
 public:
  ParameterStore() = default;
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  Parameter declare(std::string name, Shape shape, Init init, bool frozen, bool decays);
  Table table(const std::vector<double>& values);
  /// Matrices that were declared one after the other and share the inner size, as one [sum of rows, inner]; or vectors
  /// (biases), as one.
  static Parameter stack(const std::vector<Parameter>& parts);
  /// Some rows of a matrix, as a matrix.
  static Parameter rows(const Parameter& matrix, std::int64_t first, std::int64_t count);
  /// Declared normal weights whose name ends in one of these start smaller (or larger) by a factor.
  void scale_init(const std::vector<std::string>& endings, double factor);

  /// `device`: where the values lie; null: in the memory of the processor.
  void allocate(Dtype dtype, Device* device = nullptr);
  void initialise(std::uint64_t seed);

  const std::vector<ParameterEntry>& entries() const { return entries_; }
  const ParameterEntry* find(std::string_view name) const;
  std::int64_t flat_size() const { return size_; }  // elements
  const Tensor& flat() const { return flat_; }      // [flat_size]
  Device* device() const { return arena_ ? arena_->device() : nullptr; }
  Tensor value(const ParameterEntry& entry) const;  // untracked
  std::int64_t total(bool with_frozen = true) const;

 private:
  friend class Parameter;
  friend class Table;
  std::vector<ParameterEntry> entries_;
  std::int64_t size_ = 0;
  std::optional<Arena> arena_;  // from allocate() on
  Tensor flat_;
  std::vector<double> table_values_;  // of all tables
  Tensor tables_;                     // the same numbers, f64
};

/// Which parameters `optimizer.decay: tagged` exempts: A_log, D, scalars, biases, norm weights (layers.md 2).
bool decays_by_name(std::string_view name);

/// A dotted prefix under which a module declares its parameters, and the model's initial scale.
class ParameterScope {
 public:
  ParameterScope(ParameterStore& store, std::string prefix, double init_std)
      : store_(&store), prefix_(std::move(prefix)), init_std_(init_std) {}

  ParameterScope child(std::string_view name) const;
  double init_std() const { return init_std_; }

  /// Weight of a linear map, [out, in], or of a depthwise convolution, [channels, taps]: N(0, init_std^2).
  Parameter weight(std::string_view name, std::int64_t out, std::int64_t in) const;
  Parameter zeros(std::string_view name, Shape shape) const;
  Parameter ones(std::string_view name, Shape shape) const;
  Parameter add(std::string_view name, Shape shape, Init init, bool frozen = false) const;
  Table table(const std::vector<double>& values) const { return store_->table(values); }

 private:
  ParameterStore* store_;
  std::string prefix_;
  double init_std_;
};

}  // namespace phasor
