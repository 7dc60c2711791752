#include <algorithm>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <optional>

#include "cli/commands.h"
#include "cli/default_pair.h"
#include "cli/options.h"
#include "cli/session.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/probe.h"
#include "core/ops/gemm.h"

namespace phasor::cli {

namespace {

/// What the probe says of one pair.
std::string verdict(const BackbonePlugin& backbone, const EncodingPlugin& encoding) {
  const DefaultPair pair(backbone, encoding);
  if (pair.misfit) return "refused: " + pair.misfit->reason;
  const ProbeReport report = probe(pair.choice(), pair.dim);
  return report.clean() ? "ok" : report.text();
}

/// The same; what a plugin throws is what is wrong with it.
std::string guarded_verdict(const BackbonePlugin& backbone, const EncodingPlugin& encoding) {
  try {
    return verdict(backbone, encoding);
  } catch (const std::exception& error) {
    return std::string("FAILS: ") + error.what();
  } catch (...) {
    return "FAILS: it threw something that is not an exception";
  }
}

/// UserError for a name that is neither a backbone's nor an encoding's.
void require_known(const Registry& registry, const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  for (const auto& plugin : registry.backbones()) names.push_back(plugin->info.name);
  for (const auto& plugin : registry.encodings()) names.push_back(plugin->info.name);
  for (const std::string& name : wanted) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::optional<std::string> meant = nearest(name, names);
    throw UserError("no backbone or encoding is called \"" + name + "\", " +
                    (meant ? "did you mean \"" + *meant + "\"?" : "expected " + quoted_list(names)));
  }
}

}  // namespace

int check(const Arguments& arguments) {
  std::vector<std::string> wanted, plugin_files;
  Options options(
      "phasor check [NAME]... [--plugin FILE]...",
      "Probes every backbone with every encoding (with NAMEs, those that are named) at their default options: outputs\n"
      "must not depend on later tokens, a sequence in pieces must be the whole, documents packed in a row must not see\n"
      "each other. One line per pair: ok, refused (the two do not go together), or what is wrong.\n"
      "exit codes: 0 nothing found, 2 no such name or a file of --plugin that cannot be loaded, 3 something is wrong");
  options.positionals("backbone or encoding", wanted);
  options.list("plugin", plugin_files, "FILE", plugin_help);
  if (!options.parse(arguments)) return exit_code::done;
  const Plugins loaded(plugin_files);
  loaded.require();
  require_known(loaded.registry, wanted);
  use_one_thread_for_gemm();
  const auto named = [&](const std::string& name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  int code = exit_code::done;
  for (const auto& backbone : loaded.registry.backbones()) {
    for (const auto& encoding : loaded.registry.encodings()) {
      if (!named(backbone->info.name) && !named(encoding->info.name)) continue;
      const std::string text = guarded_verdict(*backbone, *encoding);
      fmt::print("{:<20} {:<20} {}\n", backbone->info.name, encoding->info.name, text);
      std::fflush(stdout);
      if (text != "ok" && !text.starts_with("refused: ")) code = exit_code::incomplete;
    }
  }
  return code;
}

}  // namespace phasor::cli
