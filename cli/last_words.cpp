#include "cli/last_words.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <unistd.h>

#include "core/base/blame.h"

namespace phasor::cli {

namespace {

struct Fault {
  int number;
  const char* what;
};
constexpr std::array faults = {Fault{SIGSEGV, "an address that is not its own (signal 11, segmentation fault)"},
                               Fault{SIGBUS, "an address that has no memory behind it (signal 7, bus error)"},
                               Fault{SIGFPE, "arithmetic that has no result, such as an integer divided by zero (signal 8)"},
                               Fault{SIGILL, "an instruction that this processor does not have (signal 4)"},
                               Fault{SIGABRT, "a call of abort() (signal 6)"}};

/// A line put together without memory of its own: there may be none, or the fault may have happened while it was asked for.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    const std::size_t room = std::min(text.size(), sizeof text_ - size_);
    std::memcpy(text_ + size_, text.data(), room);
    size_ += room;
    return *this;
  }
  void write(int descriptor) const { [[maybe_unused]] const ssize_t written = ::write(descriptor, text_, size_); }

 private:
  char text_[600];
  std::size_t size_ = 0;
};

void on_fault(int number, siginfo_t* info, void*) {
  const char* what = "a fault";
  for (const Fault& fault : faults)
    if (fault.number == number) what = fault.what;
  const Blame now = blame();
  Line line;
  line << "phasor: ";
  if (now.who != nullptr) line << now.who << ": " << now.phase << ": ";
  line << "ended by " << what;
  if (info->si_code <= 0 && info->si_pid != ::getpid())
    line << ", which another process sent\n";
  else if (now.who != nullptr)
    line << "; `gdb --args` before the command shows where in that plugin\n";
  else
    line << ", in no plugin's call; `gdb --args` before the command shows where, for a report\n";
  line.write(STDERR_FILENO);
  ::raise(number);  // the handler is gone: it is taken when this one returns
}

std::atomic<bool> output_closed = false;
int nowhere = -1;
static_assert(std::atomic<bool>::is_always_lock_free, "it is set in a signal handler");

void on_closed(int) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    pollfd one{descriptor, POLLOUT, 0};
    if (::poll(&one, 1, 0) < 1 || (one.revents & POLLERR) == 0) continue;
    ::dup2(nowhere, descriptor);
    if (descriptor != STDOUT_FILENO || output_closed.exchange(true)) continue;
    (Line() << "phasor: nobody reads standard output any more; the work goes on\n").write(STDERR_FILENO);
  }
}

}  // namespace

void tell_faults() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which tell more themselves
  alignas(16) static std::array<std::byte, 1 << 16> room;  // an endless recursion has used up the other stack
  const stack_t stack{room.data(), 0, room.size()};
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_RESETHAND | SA_ONSTACK);
  for (const Fault& fault : faults) ::sigaction(fault.number, &action, nullptr);
#endif
}

void outlive_readers() {
  if (nowhere >= 0) return;
  nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  struct sigaction action {};
  action.sa_handler = on_closed;
  action.sa_flags = static_cast<int>(SA_RESTART);
  if (nowhere >= 0) ::sigaction(SIGPIPE, &action, nullptr);
}

bool output_was_closed() { return output_closed; }

}  // namespace phasor::cli
