#include "experiments/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/graph/transfer.h"
#include "results/files.h"
#include "results/h5.h"
#include "results/store.h"

namespace phasor {

namespace {

constexpr const char* subfolder = "checkpoints";

/// Facts that must be the same for the bits to go on, from a record's provenance.
bool decides_bits(const std::string& name) {
  for (const char* fact : {"commit", "dirty", "processor", "instruction_set", "compiler", "flags", "library.gemm", "device"})
    if (name == fact) return true;
  return name.starts_with("numerics.") || name.starts_with("data.");
}

/// The first such fact in which two records differ.
std::string difference(const results::TrialRecord& then, const results::TrialRecord& now) {
  for (const auto& [name, value] : now.provenance) {
    if (!decides_bits(name)) continue;
    const auto old = std::find_if(then.provenance.begin(), then.provenance.end(), [&](const auto& fact) { return fact.first == name; });
    const std::string was = old == then.provenance.end() ? "absent" : old->second;
    if (was != value) return fmt::format("{} was {}, now {}", name, was, value);
  }
  return "";
}

void write(results::h5::Writer& file, const std::string& path, const Tensor& values) {
  if (values.dtype() == Dtype::f64)
    file.column(path, std::vector<double>(values.as<double>(), values.as<double>() + values.size()));
  else
    file.column(path, std::vector<float>(values.as<float>(), values.as<float>() + values.size()));
}

/// Checked before anything is changed: a checkpoint that lacks a part leaves the trainer as it was.
template <class T>
std::vector<T> take(const results::h5::Reader& file, const std::string& path, const Tensor& to) {
  std::vector<T> values;
  if constexpr (std::is_same_v<T, double>)
    values = file.doubles(path);
  else
    values = file.floats(path);
  if (static_cast<std::int64_t>(values.size()) != to.size())
    throw results::h5::Failure(fmt::format("{} has {} numbers, expected {}", path, values.size(), to.size()));
  return values;
}

std::vector<std::pair<std::string, Tensor>> parts_of(const Trainer& trainer) {
  std::vector<std::pair<std::string, Tensor>> parts;
  for (const ParameterEntry& entry : trainer.parameters().entries())
    parts.emplace_back("values/" + entry.name, trainer.parameters().value(entry));
  for (const auto& [name, tensor] : trainer.optimizer().memory()) parts.emplace_back("memory/" + name, tensor);
  return parts;
}

template <class T>
void restore(const results::h5::Reader& file, const std::vector<std::pair<std::string, Tensor>>& parts, Device* device) {
  std::vector<std::vector<T>> values;
  for (const auto& [path, tensor] : parts) values.push_back(take<T>(file, path, tensor));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Tensor& to = parts[i].second;
    put(device, Tensor::borrow(values[i].data(), to.dtype(), to.shape()), to);
  }
}

TrialCounts counts_of(const results::h5::Reader& file) {
  const std::vector<std::int64_t> integers = file.integers("checkpoint/integers");
  const std::vector<double> numbers = file.doubles("checkpoint/numbers"), recent = file.doubles("checkpoint/recent_norms");
  if (integers.size() != 6 || numbers.size() != 4) throw results::h5::Failure("checkpoint: counts of another version");
  TrialCounts counts;
  counts.clipped = integers[2];
  counts.without_targets = integers[3];
  counts.spikes = SpikeCounter(integers[4], recent);
  counts.steps_to_solve = numbers[0];
  if (integers[5] != 0) counts.last_norm = numbers[1];
  counts.seconds = numbers[2];
  counts.train_seconds = numbers[3];
  counts.bits = file.text_attribute("bits");
  return counts;
}

}  // namespace

void save_checkpoint(const std::string& folder, const Checkpoint& checkpoint, const Trainer& trainer) {
  results::TrialRecord record = checkpoint.record;
  const TrialCounts& counts = checkpoint.counts;
  record.status = results::Status::error;
  record.message = fmt::format("checkpoint after step {}", trainer.steps_done());
  record.bits = counts.bits;
  results::h5::Writer file;
  results::write_record(file, record);
  file.group("checkpoint");
  file.column("checkpoint/integers",
              std::vector<std::int64_t>{trainer.steps_done(), trainer.optimizer().updates(), counts.clipped,
                                        counts.without_targets, counts.spikes.spikes(), counts.last_norm ? 1 : 0});
  file.column("checkpoint/numbers", std::vector<double>{counts.steps_to_solve, counts.last_norm.value_or(0.0), counts.seconds,
                                                        counts.train_seconds});
  file.column("checkpoint/recent_norms", counts.spikes.recent());
  file.group("values");
  file.group("memory");
  Arena memory;
  for (const auto& [path, tensor] : parts_of(trainer)) write(file, path, fetched(trainer.device(), tensor, memory));
  const std::string where = folder + "/" + subfolder;
  std::error_code ignored;
  std::filesystem::create_directories(where, ignored);  // what is wrong with it, write_whole says
  results::write_whole(where, record.id + ".h5", record.id, file.image());
}

std::optional<Checkpoint> load_checkpoint(const std::string& folder, const results::TrialRecord& record, Trainer& trainer,
                                          std::string& warning) {
  const std::string path = results::checkpoint_file(folder, record.id);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  try {
    const std::string image = results::read_file(path);
    const results::h5::Reader file(image);
    Checkpoint checkpoint{results::read_record(file), counts_of(file)};
    if (checkpoint.record.id != record.id) throw results::h5::Failure("holds trial " + checkpoint.record.id);
    if (const std::string other = difference(checkpoint.record, record); !other.empty())
      throw results::h5::Failure("of another build or machine: " + other);
    const std::vector<std::int64_t> integers = file.integers("checkpoint/integers");
    if (trainer.parameters().flat().dtype() == Dtype::f64)
      restore<double>(file, parts_of(trainer), trainer.device());
    else
      restore<float>(file, parts_of(trainer), trainer.device());
    trainer.resume(integers[0], integers[1]);
    return checkpoint;
  } catch (const results::h5::Failure& failure) {
    warning = fmt::format("checkpoint {} is not used, the trial starts anew: {}", path, failure.what());
  } catch (const UserError& error) {
    warning = fmt::format("checkpoint {} is not used, the trial starts anew: {}", path, error.what());
  }
  return std::nullopt;
}

void read_trained(const std::string& path, FunctionRef<void(const results::h5::Reader&)> work) {
  const std::string image = results::read_file(path);
  try {
    const results::h5::Reader file(image);
    if (!file.has("values"))
      throw UserError(path +
                      ": no trained parameters, expected a checkpoint: run.keep_checkpoint keeps the last one in "
                      "checkpoints/, beside the record");
    work(file);
  } catch (const results::h5::Failure& failure) {
    throw UserError(path + ": " + failure.what() + "; expected a whole checkpoint of a trial");
  }
}

void remove_checkpoint(const std::string& folder, const std::string& id) {
  std::error_code ignored;
  std::filesystem::remove(results::checkpoint_file(folder, id), ignored);
  std::filesystem::remove(folder + "/" + subfolder, ignored);  // only when it is empty
}

void drop_checkpoint(const std::string& folder, const results::TrialRecord& record, bool keep) {
  if (!keep && !results::is_failure(record.status)) remove_checkpoint(folder, record.id);
}

}  // namespace phasor
