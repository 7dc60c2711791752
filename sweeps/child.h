#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace phasor::sweeps {

/// How a process ended.
struct Exit {
  bool by_signal = false;
  int number = 0;  // of the signal, or the exit code
};
/// "exit code 1", "killed by signal 9 (Killed)"
std::string to_text(const Exit& exit);
/// Exit code of a trial that was asked to end and did, with a checkpoint where it keeps them.
inline constexpr int interrupted_code = 130;

/// This program again, in a process group of its own, so that Ctrl-C in the terminal reaches only us. `input`: its standard
/// input, -1: nothing to read there; both outputs go to a file, made anew. UserError when it cannot be started.
pid_t start_self(const std::vector<std::string>& arguments, const std::string& log, int input = -1);

/// How the process ended, or nothing while it runs.
std::optional<Exit> ended(pid_t process);

/// Ends the whole process group at once.
void kill_group(pid_t process);
/// Asks the process to end: a trial does after its step.
void ask_to_end(pid_t process);

/// Last line of a file that is not empty, at most 200 characters, or "".
std::string last_line(const std::string& file);

/// Signals of a runner, taken one at a time in its loop instead of in handlers. While it lives, SIGCHLD, SIGINT,
/// SIGTERM and SIGHUP do not interrupt this process.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  /// The next signal, or 0 after `seconds` without one, or as soon as there is something to read from one of these.
  int wait(double seconds, const std::vector<int>& descriptors = {});

 private:
  int descriptor_;
};

}  // namespace phasor::sweeps
