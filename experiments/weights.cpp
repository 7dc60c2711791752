#include "experiments/weights.h"

#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/nn/model.h"
#include "core/spec/problems.h"
#include "experiments/checkpoint.h"
#include "experiments/spec.h"
#include "results/h5.h"
#include "results/store.h"

namespace phasor {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

template <class T>
void append(std::string& bytes, const std::vector<T>& values) {
  const std::size_t at = bytes.size();
  bytes.resize(at + values.size() * sizeof(T));
  std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(T));
}

/// The values of one parameter behind what is there already; its dtype in the words of the format.
const char* append_values(std::string& data, const results::h5::Reader& file, const ParameterEntry& entry,
                          bool doubles) {
  const std::string path = "values/" + entry.name;
  const std::size_t before = data.size();
  if (doubles) {
    append(data, file.doubles(path));
  } else {
    append(data, file.floats(path));
  }
  const std::size_t count = (data.size() - before) / (doubles ? sizeof(double) : sizeof(float));
  if (count != static_cast<std::size_t>(entry.count()))
    throw results::h5::Failure(fmt::format("{} has {} numbers, expected {}", path, count, entry.count()));
  return doubles ? "F64" : "F32";
}

/// Length of the header, header padded to 8 bytes, values.
std::string assembled(const Json& header, const std::string& data) {
  std::string text = header.canonical();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + text + data;
}

std::string safetensors(const results::h5::Reader& file, const std::string& path, const Registry& registry) {
  const results::TrialRecord record = results::read_record(file);
  Document document = Document::parse(record.spec.canonical(), path + " (spec)");
  ExperimentSpec spec(registry);
  spec.read(document);
  document.require_none();
  ParameterStore store;
  const Model model(spec.model, spec.data_shape(), spec.mixer(), store);
  const Json* gate = record.spec.at_path("model.backbone.output_gate");
  Json header = Json::object();
  Json& metadata = header["__metadata__"];
  metadata["format"] = "pt";
  metadata["phasor.id"] = record.id;
  metadata["phasor.spec"] = record.spec.canonical();
  std::string data;
  for (const ParameterEntry& entry : store.entries()) {
    const NamedWeight weight = exported_weight(entry, spec.backbone.name, gate == nullptr || gate->as_bool());
    const std::size_t begin = data.size();
    Json& tensor = header[weight.name];
    tensor["dtype"] = append_values(data, file, entry, spec.train.precision == "f64");
    tensor["shape"] = Json::array();
    for (const std::int64_t size : weight.shape) tensor["shape"].push_back(size);
    tensor["data_offsets"] = Json::Array{static_cast<std::int64_t>(begin), static_cast<std::int64_t>(data.size())};
  }
  return assembled(header, data);
}

}  // namespace

NamedWeight exported_weight(const ParameterEntry& entry, const std::string& backbone, bool output_gate) {
  NamedWeight weight{entry.name, {}};
  for (int axis = 0; axis < entry.shape.rank(); ++axis) weight.shape.push_back(entry.shape[axis]);
  constexpr std::string_view norm = ".attn.g_norm.weight", gated_norm = ".attn.g_norm_swish_gate.weight";
  if (weight.name.ends_with(norm) && (backbone == "retnet" || (backbone == "gla" && output_gate)))
    weight.name.replace(weight.name.size() - norm.size(), norm.size(), gated_norm);
  if (weight.name.ends_with("conv1d.weight") && weight.shape.size() == 2)
    weight.shape.insert(weight.shape.begin() + 1, 1);
  if (!weight.name.starts_with("lm_head.")) weight.name = "model." + weight.name;
  return weight;
}

std::string safetensors_of_checkpoint(const std::string& path, const Registry& registry) {
  std::string bytes;
  read_trained(path, [&](const results::h5::Reader& file) { bytes = safetensors(file, path, registry); });
  return bytes;
}

}  // namespace phasor
