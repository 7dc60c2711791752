#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <optional>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/session.h"
#include "experiments/trial.h"

namespace phasor::cli {

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

void print_kernels(const Profile& profile, std::int64_t steps) {
  std::vector<Profile::Entry> entries = profile.entries();
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  const double all =
      std::accumulate(entries.begin(), entries.end(), 0.0, [](double sum, const auto& e) { return sum + e.seconds; });
  fmt::print("\n{:<32} {:>7} {:>12} {:>12} {:>10}\n", "kernel", "share", "ms/step", "calls/step", "GFLOP/s");
  for (const Profile::Entry& entry : entries) {
    const std::string speed = entry.flops > 0.0 ? fmt::format("{:.1f}", entry.flops / entry.seconds / 1e9) : "";
    fmt::print("{:<32} {:>6.1f}% {:>12.3f} {:>12.1f} {:>10}\n", entry.name, 100.0 * entry.seconds / all,
               1e3 * entry.seconds / static_cast<double>(steps),
               static_cast<double>(entry.calls) / static_cast<double>(steps), speed);
  }
}

}  // namespace

int bench(const Arguments& arguments) {
  std::string file;
  std::vector<std::string> settings, plugin_files;
  std::optional<std::int64_t> steps, warmup;
  Options options(
      "phasor bench FILE.json [--steps N] [--warmup N] [--set PATH=VALUE]... [--plugin FILE]...",
      "Times the training step of an experiment, without evaluation, and the time in each kernel. The peak is\n"
      "that of 1024^3 matrix products on the same threads, taken in turn with the steps.\n"
      "exit codes: 0 done, 2 a mistake in the file or an option");
  options.positional("experiment file", file, true);
  options.list("set", settings, "PATH=VALUE", "change one value, such as run.threads=2");
  options.list("plugin", plugin_files, "FILE", plugin_help);
  options.integer("steps", steps, 1, "measured steps; default 20");
  options.integer("warmup", warmup, 0, "steps before them; default 3");
  if (!options.parse(arguments)) return exit_code::done;

  const Plugins plugins(plugin_files);
  plugins.require();
  ExperimentSpec spec(plugins.registry);
  read_experiment(file, settings, spec);
  const std::int64_t measured = steps.value_or(20);
  const BenchResult result = bench_trial(spec, warmup.value_or(3), measured);
  const double step = median(result.step_seconds), peak = median(result.peak_gflops);
  const double speed = result.matrix_flops_per_step / step / 1e9;
  const auto [fastest, slowest] = std::minmax_element(result.step_seconds.begin(), result.step_seconds.end());
  fmt::print("{}   {} parameters, {} threads, batch {}\n", title_of(spec), grouped(result.parameters), spec.run.threads,
             spec.train.batch);
  fmt::print("step             {:.3f} ms (median of {}; {:.3f} to {:.3f})\n", 1e3 * step, measured, 1e3 * *fastest,
             1e3 * *slowest);
  fmt::print("tokens/s         {}\n",
             grouped(static_cast<std::int64_t>(static_cast<double>(result.tokens_per_step) / step)));
  fmt::print("arithmetic       {:.1f} GFLOP/s, {:.1f} % of the matrix product's peak of {:.1f}\n", speed,
             100.0 * speed / peak, peak);
  print_kernels(result.profile, measured);
  return exit_code::done;
}

}  // namespace phasor::cli
