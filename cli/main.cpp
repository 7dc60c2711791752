#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/last_words.h"
#include "cli/trial_run.h"
#include "core/base/blame.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "experiments/trial.h"

namespace {

using phasor::cli::Arguments;

struct Command {
  const char* name;
  const char* help;
  int (*start)(const Arguments&);
};

constexpr std::array commands = {
    Command{"run", "train one experiment and store its record", phasor::cli::run},
    Command{"sweep", "train every missing trial of a sweep", phasor::cli::sweep},
    Command{"table", "make the ablation table of a sweep's results", phasor::cli::table},
    Command{"plot", "draw the figures of a sweep's results", phasor::cli::plot},
    Command{"report", "make one HTML file of a sweep's results", phasor::cli::report},
    Command{"serve", "show that report live in a browser on this machine", phasor::cli::serve},
    Command{"describe", "show an experiment: full spec, what is not default, parameters", phasor::cli::describe},
    Command{"plugins", "list tasks, backbones and encodings, and their options", phasor::cli::plugins},
    Command{"check", "probe backbones and encodings for leaks of the future", phasor::cli::check},
    Command{"bench", "time the training step of an experiment", phasor::cli::bench},
    Command{"status", "show where the trials of a sweep stand", phasor::cli::status},
    Command{"logs", "print what the process of a trial wrote", phasor::cli::logs},
    Command{"verify", "say which files of a sweep are whole and which trials are lost", phasor::cli::verify},
    Command{"merge", "put every record of a sweep into one HDF5 file", phasor::cli::merge},
    Command{"export", "write the parameters of a trained model as safetensors", phasor::cli::export_weights},
    Command{"theory", "check the numbers behind the paper's statements", phasor::cli::theory},
    Command{"doctor", "look at this build, machine, plugins and folder", phasor::cli::doctor},
    Command{"schema", "print the JSON Schema of experiment and sweep files", phasor::cli::schema},
};

void print_help() {
  fmt::print("phasor: a laboratory for sequence models\n\nusage: phasor COMMAND [arguments]\n\ncommands\n");
  for (const Command& command : commands) fmt::print("  {:<10}{}\n", command.name, command.help);
  fmt::print("\nphasor COMMAND --help tells more; phasor --version tells the build\n");
}

void print_version() {
  std::string version = "unknown";
  std::string rest;
  for (const auto& [name, value] : phasor::machine_provenance()) {
    if (name == "version") {
      version = value;
    } else {
      rest += fmt::format("{:<16} {}\n", name, value);
    }
  }
  fmt::print("phasor {}\n{}", version, rest);
}

int dispatch(const Arguments& all) {
  if (all.empty() || all[0] == "--help" || all[0] == "-h" || all[0] == "help") {
    print_help();
    return all.empty() ? phasor::cli::exit_code::user : phasor::cli::exit_code::done;
  }
  if (all[0] == "--version") {
    print_version();
    return phasor::cli::exit_code::done;
  }
  if (all[0] == "trials") return phasor::cli::trials(Arguments(all.begin() + 1, all.end()));  // for the runner of a sweep
  for (const Command& command : commands) {
    if (all[0] == command.name) return command.start(Arguments(all.begin() + 1, all.end()));
  }
  std::vector<std::string> names = {"--help", "--version"};
  for (const Command& command : commands) names.emplace_back(command.name);
  const std::optional<std::string> meant = phasor::nearest(all[0], names);
  throw phasor::UserError("unknown command \"" + all[0] + "\", " +
                          (meant ? "did you mean \"" + *meant + "\"?" : "expected " + phasor::quoted_list(names)));
}

}  // namespace

namespace {
/// A file opened later must not take the place of a standard stream that the caller closed.
void occupy_standard_streams() {
  int descriptor = ::open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::open("/dev/null", O_RDWR);
  if (descriptor >= 0) ::close(descriptor);
}
}  // namespace

namespace {
/// A destructor that throws ends the process, whatever we do; the last line says whose it was.
[[noreturn]] void tell_and_abort() {
  const phasor::Blame now = phasor::blame();
  const std::string text = std::current_exception() == nullptr ? "no exception" : [] {
    try {
      std::rethrow_exception(std::current_exception());
    } catch (...) {
      return phasor::exception_text();
    }
  }();
  std::fflush(stdout);
  const std::string place = now.who == nullptr ? "ended" : std::string(now.who) + ": " + now.phase;
  std::fprintf(stderr, "phasor: %s: %s\n", place.c_str(), text.c_str());
  std::signal(SIGABRT, SIG_DFL);  // it is told
  std::abort();
}
}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  std::set_terminate(tell_and_abort);
  phasor::cli::tell_faults();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is told by who writes, as a full disk is
  int code = phasor::cli::told(stderr, [&] { return dispatch(Arguments(argv + std::min(argc, 1), argv + argc)); });
  // Output that did not arrive (a full disk behind a pipe) is no success.
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;  // an earlier flush may have failed already
  if (lost && !phasor::cli::output_was_closed() && code == phasor::cli::exit_code::done) {
    std::fputs("phasor: standard output: cannot be written\n", stderr);
    code = phasor::cli::exit_code::failed;
  }
  return code;
}
