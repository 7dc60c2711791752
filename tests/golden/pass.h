#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/tape.h"
#include "core/nn/parameters.h"
#include "tests/golden/compare.h"

namespace phasor::golden {

Shape shape_of(const std::vector<std::int64_t>& dims);
/// Of a tensor in the memory of a stream's device.
Numbers read(const Stream& stream, const Tensor& tensor);
void fill(const Stream& stream, const Tensor& tensor, const std::vector<double>& values);
Numbers scalar(double value);

/// The name a file gives to one of our parameters. A file keeps the encoding inside the mixer (`attn.rotary.`); with us
/// it stands beside it (`encoding.`).
std::string file_name_of(const std::string& parameter);

/// Gives the declared parameters memory of a stream's device and the values of /params. Throws UserError when the two sides do not have the
/// same parameters, of the same shapes, trained or frozen alike.
void fill_parameters(ParameterStore& store, const GoldenFile& file, const Stream& stream);
/// Frozen parameters are tables: what a fresh model would start with has to be what the file says.
void check_frozen_start(ParameterStore& store, const GoldenFile& file);

/// The gradient of every trained parameter, out of the flat buffer.
void read_gradients(const ParameterStore& store, const Tensor& flat, Results& results);

/// One forward and backward pass over the tensors of a file. Memory is filled with NaN before it is handed out.
class Pass {
 public:
  /// `store`: filled parameters of a module under test; null when the parameters are inputs of an op.
  Pass(const GoldenFile& file, const Stream& stream, const ParameterStore* store = nullptr);

  Tape& tape() { return tape_; }
  const GoldenFile& file() const { return file_; }

  /// Of /inputs or /params, as a leaf whose gradient is compared; empty when the file has no such tensor.
  Tensor leaf(const std::string& name) { return leaf(name, tape_.dtype()); }
  Tensor leaf(const std::string& name, Dtype dtype);
  /// Of /params, frozen: no gradient; empty when the file has no such tensor.
  Tensor constant(const std::string& name);
  /// Of /inputs, as i32; `ignored`: what -100 becomes.
  Tensor indices(const std::string& name);

  /// A result that is compared under `name`; its cotangent, if the file has one, starts the backward pass.
  void output(const std::string& name, const Tensor& value);
  /// A result that the caller worked out of others.
  void report(const std::string& name, Numbers value) { results_.outputs.insert_or_assign(name, std::move(value)); }
  /// Gradient of the loss with respect to a value that the file does not have, such as the losses of single rows.
  void seed(const Tensor& value, const std::vector<double>& gradient);

  /// Runs the backward pass.
  Results finish();

 private:
  const GoldenFile& file_;
  const ParameterStore* store_;
  Arena arena_;
  Tensor gradients_;
  Tape tape_;
  std::vector<std::pair<std::string, Tensor>> leaves_;
  std::vector<std::pair<Tensor, Tensor>> seeds_;
  Results results_;
};

}  // namespace phasor::golden
