#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/trial_run.h"
#include "core/base/error.h"
#include "sweeps/worker.h"

namespace phasor::cli {

namespace {

/// One of the trials and its thread, which is new for each: what a plugin does to the floating-point state ends with it.
struct Beside {
  std::int64_t token = 0;
  std::atomic<bool> stop = false, ended = false;
  std::thread thread;
};

/// The trial's lines go to its log, line by line: nobody else writes there.
std::unique_ptr<std::FILE, int (*)(std::FILE*)> open_log(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> log(std::fopen(path.c_str(), "we"), std::fclose);
  if (!log) throw UserError(path + ": cannot be written");
  std::setvbuf(log.get(), nullptr, _IOLBF, 1 << 14);
  return log;
}

/// Threads that begin while it lives leave signals to those that were there.
class SignalsElsewhere {
 public:
  SignalsElsewhere() {
    sigset_t all;
    ::sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigdelset(&all, fault);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsElsewhere() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsElsewhere(const SignalsElsewhere&) = delete;
  SignalsElsewhere& operator=(const SignalsElsewhere&) = delete;

 private:
  sigset_t before_;
};

class Trials {
 public:
  Trials(TrialRun common, const Registry& registry) : common_(std::move(common)), registry_(registry) {}

  /// Until the runner has no more of them, or a signal asks this process to end: then what it was told of and has not begun is for
  /// the runner to start anew.
  void serve() {
    while (!interrupted()) {
      const std::optional<sweeps::Order> order = line_.next([] { return interrupted(); });
      if (!order) break;
      std::erase_if(running_, [](const std::unique_ptr<Beside>& each) {
        if (!each->ended) return false;
        each->thread.join();
        return true;
      });
      order->stop ? stop(order->token) : start(*order);
    }
    for (const auto& each : running_) each->thread.join();
  }

 private:
  void stop(std::int64_t token) {
    for (const auto& each : running_)
      if (each->token == token) each->stop = true;
  }

  void start(const sweeps::Order& order) {
    Beside& one = *running_.emplace_back(std::make_unique<Beside>());
    one.token = order.token;
    const SignalsElsewhere blocked;
    one.thread = std::thread([this, &one, order] {
      const int code = told(stderr, [&] { return carry_out_with_log(one, order); });
      if (code == lost_device) {  // the others can only fail, and must not be recorded as if they had by themselves
        std::fflush(nullptr);
        std::_Exit(lost_device);
      }
      one.ended = true;
      line_.tell({order.token, code});
    });
  }

  int carry_out_with_log(const Beside& one, const sweeps::Order& order) {
    const auto log = open_log(order.log);
    TrialRun run = common_;
    run.file = run.folder + "/" + order.id + ".json";
    run.lease = order.token;
    run.replaces = order.replaces;
    run.out = run.notes = log.get();
    run.stop = [&] { return one.stop || interrupted(); };
    return told(log.get(), [&] { return carry_out(run, registry_); });
  }

  const TrialRun common_;
  const Registry& registry_;
  sweeps::RunnerLine line_;
  std::list<std::unique_ptr<Beside>> running_;
};

}  // namespace

/// For the runner of a sweep (sweeps/worker.h), not for people.
int trials(const Arguments& arguments) {
  TrialRun common;
  common.beside_others = true;
  std::optional<std::int64_t> parent, slot;
  Options options("phasor trials", "Carries out several trials of a sweep at once, as its runner says.");
  options.list("plugin", common.plugin_files, "FILE", plugin_help);
  options.text("out", common.folder, "folder of records");
  options.hidden("child", parent);
  options.hidden("slot", slot);
  if (!options.parse(arguments)) return exit_code::done;
  if (!parent) throw UserError("phasor trials: found no --child, expected to be started by phasor sweep; use phasor run or sweep");
  follow_parent(*parent);
  common.slot = slot.value_or(0);
  // Queues beyond this number wait for each other. It is read when a process first asks for a device.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const Plugins plugins(common.plugin_files);
  plugins.require();
  watch_interrupts();
  Trials(common, plugins.registry).serve();
  return exit_code::done;
}

}  // namespace phasor::cli
