#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <memory>
#include <sched.h>
#include <string_view>
#include <sys/statvfs.h>
#include <system_error>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/session.h"
#include "core/base/error.h"
#include "core/graph/device.h"
#include "experiments/trial.h"
#include "sweeps/folder.h"

namespace phasor::cli {

namespace {

/// One line each; what is not well says what to do.
class Report {
 public:
  void well(std::string_view what, const std::string& found) { fmt::print("{:<16} {}\n", what, found); }
  void ill(std::string_view what, const std::string& found, const std::string& advice) {
    fmt::print("{:<16} {}   ! {}\n", what, found, advice);
    ++problems_;
  }
  void line(bool good, std::string_view what, const std::string& found, const std::string& advice) {
    good ? well(what, found) : ill(what, found, advice);
  }
  int problems() const { return problems_; }

 private:
  int problems_ = 0;
};

constexpr double megabyte = 1e6, gigabyte = 1e9;

void build(Report& report) {
  std::string libraries;
  for (const auto& [name, value] : machine_provenance()) {
    if (name.starts_with("library.")) {
      libraries += (libraries.empty() ? "" : ", ") + name.substr(8) + " " + value;
    } else if (name == "version" || name == "commit" || name == "compiler" || name == "flags") {
      report.well(name, value);
    } else if (name == "dirty" && value != "no") {
      report.well("sources", "changed since the commit: records say so");
    }
  }
  report.well("libraries", libraries);
  report.well("plugin boundary", host_fingerprint());
  std::string reason;
  const std::unique_ptr<Device> device = open_cuda(reason);
  report.well("cuda", device != nullptr ? device->name() : reason);
  if (device == nullptr) return;
  const std::string library = device->attention_library(reason);
  report.well("attention there", library.empty() ? "our own kernels; no cuDNN: " + reason : "our own kernels, or with train.attention " + library);
}

/// Subnormal numbers are lost for the whole process when a library that was linked with -ffast-math is loaded.
bool keeps_subnormals() {
  volatile float small = std::numeric_limits<float>::min();
  volatile float half = small * 0.5f;
  return half > 0.0f;
}

void processor(Report& report) {
  for (const auto& [name, value] : machine_provenance()) {
    if (name == "processor") report.well(name, value);
    if (name == "instruction_set") report.well("instructions", "built for " + value);
  }
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  report.line(avx2, "features", fmt::format("AVX2 and FMA {}, AVX-512 {}", avx2 ? "yes" : "no", avx512 ? "yes" : "no"),
              "build with -DPHASOR_ARCH=x86-64-v2");
#endif
  report.line(keeps_subnormals(), "arithmetic", keeps_subnormals() ? "subnormal numbers are kept" : "subnormal numbers are flushed to zero",
              "a loaded library was linked with -ffast-math; build the plugins without it");
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int usable = ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 0;
  report.line(usable > 0, "threads", fmt::format("{} cores can be used", usable), "see `taskset -p $$`");
}

void memory(Report& report) {
  double available = 0.0, total = 0.0;
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (double kilobytes = 0.0; file >> name >> kilobytes; std::getline(file, unit)) {
    if (name == "MemAvailable:") available = kilobytes * 1024.0;
    if (name == "MemTotal:") total = kilobytes * 1024.0;
  }
  double limit = std::numeric_limits<double>::infinity();
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;  // "max" leaves it as it is, or 0
  if (limit <= 0.0) limit = std::numeric_limits<double>::infinity();
  const double usable = std::min(available, limit);
  report.line(usable > 500.0 * megabyte, "memory",
              fmt::format("{:.1f} GB available of {:.1f} GB", usable / gigabyte, std::min(total, limit) / gigabyte),
              "end other programs, or run fewer trials side by side (--jobs 1)");
}

void plugin_files(Report& report, const Plugins& plugins) {
  const Registry& registry = plugins.registry;
  report.line(!registry.tasks().empty() && !registry.backbones().empty() && !registry.encodings().empty(), "plugins",
              fmt::format("{} files: {} tasks, {} backbones, {} encodings", registry.libraries().size(),
                          registry.tasks().size(), registry.backbones().size(), registry.encodings().size()),
              "build them, or install the program with its plugins");
  for (const PluginFile& file : plugins.files) {
    if (!file.problem.empty()) report.ill("refused", file.path, file.problem);
  }
  for (const std::string& line : plugins.refused) report.ill("refused", line, "repair it, or leave the option out");
  for (const std::string& line : registry.duplicates()) report.ill("two files", line, "remove one of them");
}

/// The folder itself, or the nearest above it that is there.
std::filesystem::path existing(const std::string& folder) {
  std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  std::error_code error;
  while (!std::filesystem::exists(path, error) && path != path.root_path()) path = path.parent_path();
  return path;
}

void results_folder(Report& report, const std::string& folder) {
  const std::filesystem::path path = existing(folder);
  try {
    if (!std::filesystem::is_directory(path)) throw UserError(path.string() + ": found something that is not a folder");
    sweeps::prepare_folder(path.string());
    report.well("results", folder + " can be written");
  } catch (const UserError& error) {
    report.ill("results", folder, error.what());
  }
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) != 0) return;
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  report.line(free > 200.0 * megabyte && disk.f_favail != 0, "disk", fmt::format("{:.1f} GB free there", free / gigabyte),
              "free some space, or choose another folder with --out");
}

void locale(Report& report) {
  std::string found = "C";
  for (const char* name : {"LANG", "LC_NUMERIC", "LC_ALL"}) {  // the later counts more
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') found = value;
  }
  report.well("locale", found + "; numbers are read and written with a point whatever it says");
}

}  // namespace

int doctor(const Arguments& arguments) {
  std::string folder = "results/data";
  std::vector<std::string> named;
  Options options(
      "phasor doctor [--out DIR] [--plugin FILE]...",
      "Looks at this build, the processor, memory, plugins and the folder of results; a line with \"!\" says what is\n"
      "not well and what to do.\n"
      "exit codes: 0 all is well, 3 something is not");
  options.text("out", folder, "folder where results are to go; default results/data");
  options.list("plugin", named, "FILE", plugin_help);
  if (!options.parse(arguments)) return exit_code::done;
  Report report;
  const Plugins plugins(named);
  build(report);
  processor(report);
  memory(report);
  plugin_files(report, plugins);
  results_folder(report, folder);
  locale(report);
  if (report.problems() == 0) {
    fmt::print("all is well\n");
    return exit_code::done;
  }
  fmt::print("{} lines with \"!\"\n", report.problems());
  return exit_code::incomplete;
}

}  // namespace phasor::cli
