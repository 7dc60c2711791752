#include "results/store.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/spec/strict_json.h"
#include "results/files.h"
#include "results/other_format.h"
#include "results/replace.h"
#include "results/h5.h"

namespace phasor::results {
namespace {

/// Of the layout in layout.md. A change that older readers would misread raises it; a new dataset does not.
constexpr std::int64_t format_version = 1;

constexpr std::pair<Status, const char*> status_names[] = {
    {Status::done, "done"},       {Status::diverged, "diverged"}, {Status::error, "error"}, {Status::oom, "oom"},
    {Status::crashed, "crashed"}, {Status::timeout, "timeout"},   {Status::lost, "lost"}};

Status status_of(const std::string& text) {
  for (const auto& [status, name] : status_names) {
    if (text == name) return status;
  }
  throw h5::Failure("status is \"" + text + "\", expected done, diverged, error, oom, crashed, timeout or lost");
}

/// One member of every entry, as a column.
template <class Column, class Entry, class Take>
std::vector<Column> column_of(const std::vector<Entry>& entries, Take take) {
  std::vector<Column> column;
  column.reserve(entries.size());
  for (const Entry& entry : entries) column.push_back(static_cast<Column>(take(entry)));
  return column;
}

void put_steps(h5::Writer& file, const std::vector<StepLog>& steps) {
  file.group("steps");
  file.column("steps/step", column_of<std::int64_t>(steps, [](const StepLog& s) { return s.step; }), "updates");
  file.column("steps/loss", column_of<double>(steps, [](const StepLog& s) { return s.loss; }), "nats per token");
  file.column("steps/lr", column_of<double>(steps, [](const StepLog& s) { return s.lr; }));
  file.column("steps/grad_norm", column_of<double>(steps, [](const StepLog& s) { return s.grad_norm; }));
  file.column("steps/clipped", column_of<std::uint8_t>(steps, [](const StepLog& s) { return s.clipped; }));
}

void put_evals(h5::Writer& file, const std::vector<EvalPoint>& evals) {
  file.group("evals");
  file.column("evals/step", column_of<std::int64_t>(evals, [](const EvalPoint& e) { return e.step; }), "updates");
  file.column("evals/split", column_of<std::string>(evals, [](const EvalPoint& e) { return e.split; }));
  file.column("evals/metric", column_of<std::string>(evals, [](const EvalPoint& e) { return e.metric; }));
  file.column("evals/slice", column_of<std::int64_t>(evals, [](const EvalPoint& e) { return e.slice; }), "tokens");
  file.column("evals/value", column_of<double>(evals, [](const EvalPoint& e) { return e.value; }));
  file.column("evals/count", column_of<std::int64_t>(evals, [](const EvalPoint& e) { return e.count; }),
              "rows or tokens");
}

void put_parameters(h5::Writer& file, const std::vector<ParameterInfo>& parameters) {
  file.group("parameters");
  file.column("parameters/name", column_of<std::string>(parameters, [](const ParameterInfo& p) { return p.name; }));
  file.column("parameters/count", column_of<std::int64_t>(parameters, [](const ParameterInfo& p) { return p.count; }),
              "numbers");
  file.column("parameters/frozen", column_of<std::uint8_t>(parameters, [](const ParameterInfo& p) { return p.frozen; }));
  file.column("parameters/decays", column_of<std::uint8_t>(parameters, [](const ParameterInfo& p) { return p.decays; }));
}

template <class Value>
void put_pairs(h5::Writer& file, const std::string& group, const std::vector<std::pair<std::string, Value>>& pairs) {
  file.group(group);
  file.column(group + "/name", column_of<std::string>(pairs, [](const auto& p) { return p.first; }));
  file.column(group + "/value", column_of<Value>(pairs, [](const auto& p) { return p.second; }));
}

template <class Column>
void same_length(const std::string& group, std::size_t expected, const std::vector<Column>& column) {
  if (column.size() != expected) throw h5::Failure("the columns of " + group + " differ in length");
}

std::vector<StepLog> take_steps(const h5::Reader& file) {
  const auto step = file.integers("steps/step");
  const auto loss = file.doubles("steps/loss");
  const auto lr = file.doubles("steps/lr");
  const auto grad_norm = file.doubles("steps/grad_norm");
  const auto clipped = file.flags("steps/clipped");
  same_length("steps", step.size(), loss);
  same_length("steps", step.size(), lr);
  same_length("steps", step.size(), grad_norm);
  same_length("steps", step.size(), clipped);
  std::vector<StepLog> steps;
  steps.reserve(step.size());
  for (std::size_t i = 0; i < step.size(); ++i) {
    steps.push_back({step[i], loss[i], lr[i], grad_norm[i], clipped[i] != 0});
  }
  return steps;
}

std::vector<EvalPoint> take_evals(const h5::Reader& file) {
  const auto step = file.integers("evals/step");
  auto split = file.strings("evals/split");
  auto metric = file.strings("evals/metric");
  const auto slice = file.integers("evals/slice");
  const auto value = file.doubles("evals/value");
  const auto count = file.integers("evals/count");
  same_length("evals", step.size(), split);
  same_length("evals", step.size(), metric);
  same_length("evals", step.size(), slice);
  same_length("evals", step.size(), value);
  same_length("evals", step.size(), count);
  std::vector<EvalPoint> evals;
  evals.reserve(step.size());
  for (std::size_t i = 0; i < step.size(); ++i) {
    evals.push_back({step[i], std::move(split[i]), std::move(metric[i]), slice[i], value[i], count[i]});
  }
  return evals;
}

std::vector<ParameterInfo> take_parameters(const h5::Reader& file) {
  auto name = file.strings("parameters/name");
  const auto count = file.integers("parameters/count");
  const auto frozen = file.flags("parameters/frozen");
  const auto decays = file.flags("parameters/decays");
  same_length("parameters", name.size(), count);
  same_length("parameters", name.size(), frozen);
  same_length("parameters", name.size(), decays);
  std::vector<ParameterInfo> parameters;
  parameters.reserve(name.size());
  for (std::size_t i = 0; i < name.size(); ++i) {
    parameters.push_back({std::move(name[i]), count[i], frozen[i] != 0, decays[i] != 0});
  }
  return parameters;
}

template <class Value>
std::vector<std::pair<std::string, Value>> take_pairs(const std::string& group, std::vector<std::string> names,
                                                      std::vector<Value> values) {
  same_length(group, names.size(), values);
  std::vector<std::pair<std::string, Value>> pairs;
  pairs.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) pairs.emplace_back(std::move(names[i]), std::move(values[i]));
  return pairs;
}

Json take_spec(const h5::Reader& file) {
  const auto text = file.strings("spec");
  if (text.size() != 1) throw h5::Failure("spec is not one string");
  // Its digest is right, so this is what a writer made of a value: the places of a mistake are looked for where there is one.
  StrictError error;
  std::optional<Json> spec = strict_json(text[0], error);
  return spec ? std::move(*spec) : parse_json(text[0], "spec");
}

/// The reason when `file` is not a whole trial of the name `id` (empty = any), else empty; `record` is filled.
std::string try_load(const std::string& file, const std::string& id, TrialRecord& record) {
  try {
    record = read_record(h5::Reader(read_file(file)));
  } catch (const h5::Failure& failure) {
    return failure.what();
  } catch (const UserError& error) {
    return error.what();
  }
  if (!id.empty() && record.id != id) return "holds trial " + record.id + ", the name says " + id;
  return "";
}

std::string image_of(const TrialRecord& record) {
  PHASOR_CHECK(!record.id.empty() && record.id.find('/') == std::string::npos, "a trial needs an id to be saved");
  h5::Writer file;
  write_record(file, record);
  return file.image();
}

}  // namespace

const char* to_text(Status status) {
  for (const auto& [known, name] : status_names) {
    if (known == status) return name;
  }
  throw InternalError("unknown status of a trial");
}

void write_record(h5::Writer& file, const TrialRecord& record) {
  file.attribute("format", format_version);
  file.attribute("id", record.id);
  file.attribute("status", std::string(to_text(record.status)));
  file.attribute("message", record.message);
  file.attribute("bits", record.bits);
  file.column("spec", std::vector<std::string>{record.spec.canonical()});
  put_steps(file, record.steps);
  put_evals(file, record.evals);
  put_parameters(file, record.parameters);
  put_pairs(file, "summary", record.summary);
  put_pairs(file, "provenance", record.provenance);
  file.attribute("complete", 1);  // last, so that a file that lacks anything lacks this
}

TrialRecord read_record(const h5::Reader& file) {
  if (!file.has_attribute("format")) throw h5::Failure("an HDF5 file, but not of a phasor trial (no attribute format)");
  if (const std::int64_t format = file.integer_attribute("format"); format != format_version) {
    throw h5::Failure("format " + std::to_string(format) + ", this program reads format " +
                      std::to_string(format_version) + ", use the phasor that wrote it or a newer one");
  }
  if (!file.has_attribute("complete") || file.integer_attribute("complete") != 1) {
    throw h5::Failure("not complete, the writer did not finish");
  }
  TrialRecord record;
  record.id = file.text_attribute("id");
  record.status = status_of(file.text_attribute("status"));
  record.message = file.text_attribute("message");
  record.bits = file.text_attribute("bits");
  record.spec = take_spec(file);
  record.steps = take_steps(file);
  record.evals = take_evals(file);
  record.parameters = take_parameters(file);
  record.summary = take_pairs("summary", file.strings("summary/name"), file.doubles("summary/value"));
  record.provenance = take_pairs("provenance", file.strings("provenance/name"), file.strings("provenance/value"));
  return record;
}

void refuse_other_format(const std::string& folder, const std::string& id) {
  const std::string file = folder + "/" + id + ".h5";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return;
  if (std::filesystem::is_directory(file, ignored))
    throw UserError(file + ": is a folder, expected the record of that trial or nothing; move it away");
  std::int64_t format = format_version;
  try {
    const h5::Reader reader(read_file(file));
    if (reader.has_attribute("format")) format = reader.integer_attribute("format");
  } catch (const h5::Failure&) {  // damaged
  }
  if (format != format_version)
    throw UserError(file + ": a record of format " + std::to_string(format) + ", this program writes format " +
                    std::to_string(format_version) + "; it is not replaced, use the phasor that wrote it or another folder");
}

void save(const TrialRecord& record, const std::string& folder) {
  write_whole(folder, record.id + ".h5", record.id, image_of(record));
}

bool save_new(const TrialRecord& record, const std::string& folder) {
  return write_new(folder, record.id + ".h5", record.id, image_of(record), Durable::yes);
}

bool save_instead(const TrialRecord& record, const std::string& folder, const std::optional<Stamp>& seen) {
  return write_instead(folder, record.id + ".h5", record.id, image_of(record), seen);
}

TrialRecord load(const std::string& file) {
  const std::string image = read_file(file);
  try {
    return read_record(h5::Reader(image));
  } catch (const h5::Failure& failure) {
    throw UserError(file + ": " + failure.what());
  } catch (const UserError& error) {
    throw UserError(file + ": " + error.what());
  }
}

bool has(const std::string& folder, const std::string& id) {
  const std::string file = folder + "/" + id + ".h5";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return false;
  TrialRecord record;
  return try_load(file, id, record).empty();  // every status a record can hold is terminal
}

bool has_result(const std::string& folder, const std::string& id) {
  TrialRecord record;
  return try_load(folder + "/" + id + ".h5", id, record).empty() && !is_failure(record.status);
}

namespace {

/// Runs work(i) for all i < count, on all processors.
template <class Work>
void for_all(std::size_t count, const Work& work) {
  constexpr std::size_t least = 32;  // files that are worth a thread
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::future<void>> others;
  const std::size_t threads = std::min<std::size_t>(std::thread::hardware_concurrency(), count / least);
  for (std::size_t i = 1; i < threads; ++i) others.push_back(std::async(std::launch::async, run));
  run();
  for (std::future<void>& other : others) other.get();
}

}  // namespace

Folder load_folder(const std::string& folder, Steps steps) {
  std::error_code error;
  std::vector<std::string> ids;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) throw UserError(folder + ": cannot be listed, " + error.message() + "; name the folder of a sweep");
  for (const auto& entry : entries) {
    const std::filesystem::path& path = entry.path();
    const bool aside = path.filename().string().front() == '.';
    if (!aside && path.extension() == ".h5" && !entry.is_directory(error)) ids.push_back(path.stem().string());
  }
  std::sort(ids.begin(), ids.end());  // whatever the order of the disk
  std::vector<TrialRecord> records(ids.size());
  std::vector<std::string> reasons(ids.size());
  for_all(ids.size(), [&](std::size_t i) {
    reasons[i] = try_load(folder + "/" + ids[i] + ".h5", ids[i], records[i]);
    if (steps == Steps::dropped) records[i].steps = {};
  });
  Folder found;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (reasons[i].empty()) {
      found.records.push_back(std::move(records[i]));
    } else {
      found.damaged.push_back({folder + "/" + ids[i] + ".h5", std::move(reasons[i])});
    }
  }
  return found;
}

}  // namespace phasor::results
