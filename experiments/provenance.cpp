#include <dnnl.h>
#include <unistd.h>

#include <fmt/core.h>

#include <fstream>
#include <string>

#include "core/ops/gemm.h"
#include "experiments/trial.h"
#include "phasor_version.h"  // generated at every build: commit, dirty, flags

namespace phasor {

namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string model, family, number, stepping;
  const auto value = [](const std::string& line) {
    const auto colon = line.find(": ");
    return colon == std::string::npos ? std::string() : line.substr(colon + 2);
  };
  for (std::string line; std::getline(info, line) && !line.empty();) {
    if (line.starts_with("model name")) model = value(line);
    else if (line.starts_with("cpu family")) family = value(line);
    else if (line.starts_with("model\t")) number = value(line);
    else if (line.starts_with("stepping")) stepping = value(line);
  }
  // Virtual machines hide the marketing name: the numbers tell models apart.
  return model.empty() ? "unknown" : model + " (family " + family + ", model " + number + ", stepping " + stepping + ")";
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

std::string gemm_instruction_set() {
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41: return "sse41";
    case dnnl_cpu_isa_avx: return "avx";
    case dnnl_cpu_isa_avx2: return "avx2";
    case dnnl_cpu_isa_avx2_vnni: return "avx2_vnni";
    case dnnl_cpu_isa_avx512_core: return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni: return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16: return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx: return "avx512_core_amx";
    default: return "other";
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> machine_provenance() {
  return {{"commit", PHASOR_COMMIT},
          {"dirty", PHASOR_DIRTY},
          {"version", PHASOR_VERSION},
          {"host", host_name()},
          {"processor", processor_name()},
          {"instruction_set", std::string(PHASOR_ARCH_TEXT) + ", gemm " + gemm_instruction_set()},
          {"compiler", "g++ " __VERSION__},
          {"flags", PHASOR_FLAGS},
          {"library.gemm", gemm_library()},
          {"library.hdf5", PHASOR_HDF5_VERSION},
          {"library.fmt", std::to_string(FMT_VERSION)},
          {"library.json", PHASOR_JSON_VERSION},
          {"library.boost", PHASOR_BOOST_VERSION}};
}

}  // namespace phasor
