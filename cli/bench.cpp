#include <algorithm>
#include <charconv>
#include <deque>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>

#include "cli/bench_decode.h"
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
  fmt::print("\n{:<32} {:>7} {:>12} {:>12} {:>10} {:>8}\n", "kernel", "share", "ms/step", "calls/step", "GFLOP/s", "GB/s");
  for (const Profile::Entry& entry : entries) {
    const std::string speed = entry.flops > 0.0 ? fmt::format("{:.1f}", entry.flops / entry.seconds / 1e9) : "";
    fmt::print("{:<32} {:>6.1f}% {:>12.3f} {:>12.1f} {:>10} {:>8.1f}\n", entry.name, 100.0 * entry.seconds / all,
               1e3 * entry.seconds / static_cast<double>(steps),
               static_cast<double>(entry.calls) / static_cast<double>(steps), speed,
               static_cast<double>(entry.bytes) / entry.seconds / 1e9);
  }
}

/// What the step must do, how long that alone would take on this machine, and how far the step is from it.
void print_limits(const BenchResult& result, std::int64_t steps, double step) {
  const Profile::Entry all = result.profile.total();
  const double per_step = 1.0 / static_cast<double>(steps);
  const double flops = all.flops * per_step, bytes = static_cast<double>(all.bytes) * per_step;
  const double peak = median(result.peak_gflops), copy = median(result.copy_gbytes);
  const double arithmetic = flops / peak / 1e9, traffic = bytes / copy / 1e9;
  const auto least = static_cast<double>(result.least_step_bytes);
  fmt::print("arithmetic       {:.3f} GFLOP of matrix products and mixers: {:.3f} ms at the matrix product's peak of {:.1f} GFLOP/s\n",
             flops / 1e9, 1e3 * arithmetic, peak);
  fmt::print("memory           {:.3f} MB that the launches read and write: {:.3f} ms if all came from memory, at {:.1f} GB/s\n",
             bytes / 1e6, 1e3 * traffic, copy);
  fmt::print("least memory     {:.3f} MB of parameters, gradients, optimiser and batch, once each: {:.3f} ms\n", least / 1e6,
             1e3 * least / copy / 1e9);
  fmt::print("launches         {:.0f}\n", static_cast<double>(all.calls) * per_step);
  fmt::print("allocations      {} blocks from the system in the measured steps\n", result.blocks_taken);
  fmt::print("gap              {:.2f} times the arithmetic alone: {:.1f} % of the peak over the whole step\n", step / arithmetic,
             100.0 * arithmetic / step);
}

/// Evaluation does what the forward pass of training does, so it should be as fast.
void print_evaluation(const BenchResult& result, double step) {
  if (result.evaluate_seconds.empty()) return;
  double forward = 0.0;
  for (const Profile::Entry& entry : result.profile.entries())
    if (std::string_view(entry.name).ends_with(".forward")) forward += entry.seconds;
  const double share = forward / result.profile.total().seconds;
  const double training = static_cast<double>(result.tokens_per_step) / (step * share);
  const double evaluation = static_cast<double>(result.tokens_per_evaluation) / median(result.evaluate_seconds);
  fmt::print("evaluation       {} tokens/s, {:.2f} times the forward kernels of training ({:.0f} % of a step)\n",
             grouped(static_cast<std::int64_t>(evaluation)), evaluation / training, 100.0 * share);
}

struct Ratio {
  double low, middle, high;  // quartiles over the rounds
};

Ratio ratio_to(const std::vector<double>& first, const std::vector<double>& other) {
  std::vector<double> ratios(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) ratios[i] = other[i] / first[i];
  std::sort(ratios.begin(), ratios.end());
  return {ratios[ratios.size() / 4], median(ratios), ratios[ratios.size() - 1 - ratios.size() / 4]};
}

/// Steps of the experiment and of each variant in turn: what changes on the machine meanwhile meets all of them.
void compare(const std::deque<ExperimentSpec>& specs, const std::vector<Device*>& devices, const std::vector<std::string>& names,
             std::int64_t warmup, std::int64_t rounds) {
  const auto seconds = bench_in_turn(specs, devices, warmup, rounds);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Ratio ratio = ratio_to(seconds.front(), seconds[i]);
    fmt::print("{:.3f} ms/step   ratio {:.3f} (quartiles {:.3f} to {:.3f}, {} rounds)   {}\n", 1e3 * median(seconds[i]), ratio.middle,
               ratio.low, ratio.high, rounds, names[i]);
  }
}

std::vector<std::int64_t> numbers_of(const std::vector<std::string>& texts) {
  std::vector<std::int64_t> numbers;
  for (const std::string& text : texts) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 1)
      throw UserError("--context: found \"" + text + "\", expected a number of tokens from 1");
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

int bench(const Arguments& arguments) {
  std::string file;
  std::vector<std::string> settings, variants, plugin_files, contexts;
  std::optional<std::int64_t> steps, warmup, peak, rows;
  bool decode = false;
  Options options(
      "phasor bench FILE.json [--steps N] [--warmup N] [--set PATH=VALUE]... [--plugin FILE]...\n"
      "phasor bench FILE.json --against PATH=VALUE [--against PATH=VALUE]... [options as above]\n"
      "phasor bench FILE.json --decode [--rows N] [--context N]... [options as above]\n"
      "phasor bench DIR --decode [options as above]\n"
      "phasor bench --peak SECONDS",
      "Times the training step of an experiment and the time in each kernel, and says how far that is from the\n"
      "limits of this machine: 1024^3 matrix products and sums of arrays of 64 MB, on the same threads, in turn with\n"
      "the steps. GB/s counts every operand of a kernel once, wherever it lies: above the memory's it was in a cache.\n"
      "--decode times how rows are read (prefill) and continued token by token; of a sweep's folder one trial of every\n"
      "shape, in turn with steps of training, and writes DIR/costs.json, from which `phasor table DIR` has its costs.\n"
      "exit codes: 0 done, 2 a mistake in the file or an option");
  options.positional("experiment file, or with --decode the folder of a sweep", file, false);
  options.list("set", settings, "PATH=VALUE", "change one value, such as run.threads=2");
  options.list("against", variants, "PATH=VALUE",
               "only compare: steps of the experiment and of each variant in turn, and the ratio of neighbours in time");
  options.list("plugin", plugin_files, "FILE", plugin_help);
  options.flag("decode", decode, "time prefill and one-token decoding, and the bytes they carry");
  options.integer("rows", rows, 1, "with --decode: rows that are continued together; default the experiment's batch");
  options.list("context", contexts, "N", "with --decode: tokens before the decoded ones; default a quarter, once and four times the length");
  options.integer("steps", steps, 1, "measured steps; default 20; with --decode rounds; default 10");
  options.integer("warmup", warmup, 0, "steps before them; default 3");
  options.integer("peak", peak, 1, "only matrix products, on one thread, for so many seconds");
  if (!options.parse(arguments)) return exit_code::done;
  if (file.empty() != peak.has_value()) throw UserError("expected an experiment file or --peak SECONDS; phasor bench --help");
  if (peak) {
    fmt::print("peak             {:.1f} GFLOP/s\n", measure_peak(static_cast<double>(*peak)));
    return exit_code::done;
  }

  if (!decode && (rows || !contexts.empty())) throw UserError("--rows, --context: found without --decode, which they belong to");
  if (decode && (!variants.empty() || warmup)) throw UserError("--against, --warmup: found with --decode, which does not know them");
  const DecodeOptions decoding{rows.value_or(0), numbers_of(contexts), steps.value_or(10), false};

  const Plugins plugins(plugin_files);
  plugins.require();
  if (std::filesystem::is_directory(file)) {
    if (!decode) throw UserError(file + ": found a folder, expected an experiment file; --decode measures a sweep's folder");
    DecodeOptions with_training = decoding;
    with_training.training = true;
    bench_decode_sweep(file, settings, plugins, with_training);
    return exit_code::done;
  }
  std::deque<ExperimentSpec> specs;
  std::vector<std::unique_ptr<Device>> opened;
  std::vector<Device*> devices;
  std::vector<std::string> names{"as the file has it"};
  names.insert(names.end(), variants.begin(), variants.end());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<std::string> against = i > 0 ? std::vector<std::string>{names[i]} : std::vector<std::string>{};
    read_experiment(file, settings, specs.emplace_back(plugins.registry), against);
    require_data(specs.back());
    Place place = settle_device(specs.back().run.device);
    if (specs.back().run.device != "cpu") fmt::print("device           {}\n", place.text);
    devices.push_back(place.device.get());
    opened.push_back(std::move(place.device));
  }
  const ExperimentSpec& spec = specs.front();
  if (decode) {
    bench_decode_file(specs, decoding);
    return exit_code::done;
  }
  const std::int64_t measured = steps.value_or(20);
  if (!variants.empty()) {
    compare(specs, devices, names, warmup.value_or(3), measured);
    return exit_code::done;
  }
  const BenchResult result = bench_trial(spec, devices.front(), warmup.value_or(3), measured);
  const double step = median(result.step_seconds);
  const auto [fastest, slowest] = std::minmax_element(result.step_seconds.begin(), result.step_seconds.end());
  fmt::print("{}   {} parameters, {} threads, batch {}\n", title_of(spec), grouped(result.parameters), spec.run.threads,
             spec.train.batch);
  fmt::print("step             {:.3f} ms (median of {}; {:.3f} to {:.3f})\n", 1e3 * step, measured, 1e3 * *fastest,
             1e3 * *slowest);
  fmt::print("tokens/s         {}\n",
             grouped(static_cast<std::int64_t>(static_cast<double>(result.tokens_per_step) / step)));
  print_limits(result, measured, step);
  print_evaluation(result, step);
  print_kernels(result.profile, measured);
  return exit_code::done;
}

}  // namespace phasor::cli
