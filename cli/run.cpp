#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <sys/resource.h>

#include "cli/commands.h"
#include "cli/last_words.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/trial_run.h"
#include "core/base/error.h"
#include "sweeps/folder.h"

namespace phasor::cli {

namespace {

/// What the process may ask for, so that beyond it the trial ends as oom and its neighbours notice nothing.
void limit_memory(std::int64_t megabytes) {
  const rlim_t bytes = static_cast<rlim_t>(megabytes) << 20;
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_DATA, &limit) != 0)
    throw UserError(fmt::format("--memory-mb {}: {}", megabytes, std::strerror(errno)));
}

}  // namespace

int run(const Arguments& arguments) {
  std::string file, device, folder = sweeps::default_folder("runs");
  std::vector<std::string> settings, plugin_files;
  bool force = false;
  std::optional<std::int64_t> memory, parent, lease, slot, replaces;
  Options options(
      "phasor run FILE.json [--set PATH=VALUE]... [--device WHERE] [--plugin FILE]... [--out DIR] [--force]",
      "Trains one experiment and stores its record as DIR/<id>.h5; the id follows from the experiment alone.\n"
      "A trial that has a record is not run again: its numbers are shown.\n"
      "exit codes: 0 done, 4 diverged (loss or gradient not finite), 1 failed, 2 a mistake in a file or\n"
      "option (nothing was started), 130 interrupted (a checkpoint is kept where run.checkpoint_every asks for them)");
  options.positional("experiment file", file, true);
  options.list("set", settings, "PATH=VALUE", "change one value, such as optimizer.lr=1e-3");
  options.list("plugin", plugin_files, "FILE", plugin_help);
  options.text("device", device, "cpu, cuda, or auto: what there is; short for --set run.device=WHERE");
  options.text("out", folder, "folder of records; default results/data/runs");
  options.flag("force", force, "run again although there is a record, and replace it");
  options.integer("memory-mb", memory, 1, "memory the process may ask for; default: no limit");
  options.hidden("child", parent);
  options.hidden("lease", lease);
  options.hidden("slot", slot);
  options.hidden("replace", replaces);
  if (!options.parse(arguments)) return exit_code::done;
  if (!device.empty()) settings.push_back("run.device=" + device);
  if (parent) follow_parent(*parent);
  if (memory) limit_memory(*memory);

  const Plugins plugins(plugin_files);
  plugins.require();
  watch_interrupts();
  outlive_readers();
  TrialRun trial{file, folder, settings, plugin_files, force, memory, lease, replaces.value_or(0) != 0, slot.value_or(0)};
  trial.stop = interrupted;
  return carry_out(trial, plugins.registry);
}

}  // namespace phasor::cli
