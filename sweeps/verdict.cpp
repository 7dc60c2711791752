#include "sweeps/verdict.h"

#include <csignal>
#include <fstream>

namespace phasor::sweeps {

using results::Status;

Verdict verdict_of(const Exit& exit, Ended by, const Limits& limits, const std::string& log, bool kernel_ended_one) {
  const std::string said = log.empty() ? "" : ": " + log;
  if (by == Ended::over_time)
    return {Status::timeout, "took longer than " + std::to_string(limits.seconds) + " s (limits.seconds)" + said};
  if (log.find("out of memory") != std::string::npos) return {Status::oom, log};
  if (exit.by_signal && exit.number == SIGKILL && kernel_ended_one)
    return {Status::oom, "ended by the system for want of memory" + said};
  if (exit.by_signal) return {Status::crashed, to_text(exit) + said};
  return {Status::error, "ended without a record, " + to_text(exit) + said};
}

bool was_interrupted(const Exit& exit) {
  return exit.by_signal ? exit.number == SIGTERM || exit.number == SIGINT : exit.number == interrupted_code;
}

std::int64_t kernel_oom_kills() {
  std::ifstream counts("/proc/vmstat");
  std::string name;
  for (std::int64_t value = 0; counts >> name >> value;)
    if (name == "oom_kill") return value;
  return 0;
}

}  // namespace phasor::sweeps
