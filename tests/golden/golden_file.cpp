#include "tests/golden/golden_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <hdf5.h>
#include <tuple>
#include <utility>

#include "core/base/error.h"

namespace phasor::golden {

namespace {

/// An open HDF5 object of any kind.
class Handle {
 public:
  Handle(hid_t id, const std::string& what) : id_(id) {
    if (id_ < 0) throw UserError(what + " cannot be read, expected a golden file");
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { H5Idec_ref(id_); }
  hid_t operator()() const { return id_; }

 private:
  hid_t id_;
};

void check(herr_t status, const std::string& what) {
  if (status < 0) throw UserError(what + " cannot be read, expected a golden file");
}

Numbers read_dataset(hid_t group, const std::string& name, const std::string& path) {
  const std::string what = path + ": " + name;
  const Handle set(H5Dopen2(group, name.c_str(), H5P_DEFAULT), what);
  const Handle space(H5Dget_space(set()), what);
  Numbers numbers;
  std::vector<hsize_t> dims(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space()))));
  check(H5Sget_simple_extent_dims(space(), dims.data(), nullptr), what);
  std::size_t count = 1;
  for (const hsize_t size : dims) {
    numbers.dims.push_back(static_cast<std::int64_t>(size));
    count *= static_cast<std::size_t>(size);
  }
  numbers.values.resize(count);
  check(H5Dread(set(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.values.data()), what);
  return numbers;
}

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

Group read_group(hid_t file, const std::string& name, const std::string& path) {
  const Handle group(H5Gopen2(file, name.c_str(), H5P_DEFAULT), path + ": " + name);
  std::vector<std::string> names;
  check(H5Literate(group(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_name, &names), path + ": " + name);
  Group out;
  for (const std::string& dataset : names) out.emplace(dataset, read_dataset(group(), dataset, path));
  return out;
}

std::string text_attribute(hid_t file, const std::string& name, const std::string& path) {
  const Handle attribute(H5Aopen(file, name.c_str(), H5P_DEFAULT), path + ": " + name);
  const Handle type(H5Aget_type(attribute()), path + ": " + name);
  std::string text(H5Tget_size(type()), '\0');
  check(H5Aread(attribute(), type(), text.data()), path + ": " + name);
  return text.substr(0, text.find('\0'));
}

std::pair<double, double> pair_attribute(hid_t file, const std::string& name, const std::string& path) {
  const Handle attribute(H5Aopen(file, name.c_str(), H5P_DEFAULT), path + ": " + name);
  double pair[2] = {0.0, 0.0};
  check(H5Aread(attribute(), H5T_NATIVE_DOUBLE, pair), path + ": " + name);
  return {pair[0], pair[1]};
}

}  // namespace

GoldenFile read_golden(const std::string& path) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // what went wrong is in the exception
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), path);
  GoldenFile out;
  out.name = std::filesystem::path(path).stem().string();
  out.unit = text_attribute(file(), "unit", path);
  out.options = parse_json(text_attribute(file(), "options", path), path);
  out.inputs = read_group(file(), "inputs", path);
  out.params = read_group(file(), "params", path);
  out.outputs = read_group(file(), "outputs", path);
  out.cotangents = read_group(file(), "cotangents", path);
  out.grads = read_group(file(), "grads", path);
  const Json indices = parse_json(text_attribute(file(), "index_datasets", path), path);
  for (const Json& index : indices.as_array()) out.indices.insert(index.as_string());
  std::tie(out.single_outputs, out.single_grads) = pair_attribute(file(), "fp32_rel_err", path);
  return out;
}

std::string golden_folder() {
  const char* elsewhere = std::getenv("PHASOR_GOLDEN");
  return elsewhere != nullptr && *elsewhere != '\0' ? elsewhere : PHASOR_GOLDEN_DATA;
}

std::vector<std::string> golden_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
    if (entry.path().extension() == ".h5") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string unit_of(const std::string& name) { return name.substr(0, name.find("__")); }

}  // namespace phasor::golden
