#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "core/base/function_ref.h"

namespace phasor::sweeps {

/// What a runner tells a process that carries out several trials at once.
struct Order {
  bool stop = false;       // the trial of this token after its step; else a new trial
  bool replaces = false;   // the new trial: the record that there is
  std::int64_t token = 0;  // of the trial's lease
  std::string id, log;     // of a new trial; where its lines go, made anew
};
/// What such a process tells its runner: a trial has ended, as a process of its own would have with this exit code.
struct Report {
  std::int64_t token = 0;
  int code = 0;
};

/// The standard input of such a process is a socket, on which orders come and reports go.
class RunnerLine {
 public:
  /// The next order; nothing when the runner has no more, or is gone, or when a signal comes and `stop` is true.
  std::optional<Order> next(FunctionRef<bool()> stop);
  void tell(const Report& report);
};

/// A process of several trials (cli/trials.cpp), as its runner has it.
class Worker {
 public:
  /// `command`: words of this program. Its own lines, and those of plugins, go to `log`. UserError when it cannot be started.
  Worker(const std::vector<std::string>& command, const std::string& log);
  ~Worker();  // it gets no more trials; ended where it does not end by itself
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  pid_t process() const { return process_; }
  /// Readable when there is a report; -1 when none can come any more.
  int descriptor() const { return socket_; }
  /// Orders to a process that has just ended are lost: `sweeps::ended` will say so.
  void start(const Order& order);
  void stop(std::int64_t token);
  std::optional<Report> report();

  bool killed = false;  // by us, for the sake of one of its trials
  bool ended = false;   // seen

 private:
  int socket_ = -1;
  pid_t process_ = 0;
};

}  // namespace phasor::sweeps
