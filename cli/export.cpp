#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/session.h"
#include "core/base/error.h"
#include "experiments/weights.h"
#include "results/files.h"

namespace phasor::cli {

int export_weights(const Arguments& arguments) {
  std::string checkpoint, weights;
  std::vector<std::string> plugin_files;
  Options options("phasor export CHECKPOINT.h5 --weights FILE.safetensors",
                  "Writes the parameters of a trained model under the names of flash-linear-attention, for other "
                  "programs. A trial keeps\n"
                  "its last checkpoint with run.keep_checkpoint, as DIR/checkpoints/<id>.h5.\n"
                  "exit codes: 0 done, 2 no checkpoint, a damaged one, or one of plugins that are not here");
  options.positional("checkpoint of a trial", checkpoint, true);
  options.text("weights", weights, "file to write");
  options.list("plugin", plugin_files, "FILE", plugin_help);
  if (!options.parse(arguments)) return exit_code::done;
  if (weights.empty()) throw UserError("nothing to write, expected --weights FILE.safetensors");
  const Plugins plugins(plugin_files);
  plugins.require();
  results::write_named(weights, safetensors_of_checkpoint(checkpoint, plugins.registry));
  fmt::print("{}\n", weights);
  return exit_code::done;
}

}  // namespace phasor::cli
