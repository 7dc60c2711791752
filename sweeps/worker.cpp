#include "sweeps/worker.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <utility>

#include "core/base/error.h"
#include "sweeps/child.h"

namespace phasor::sweeps {

namespace {

constexpr double longest_end = 10.0;  // seconds that a process without trials may take to end

void send_text(int socket, const std::string& text) {
  while (::send(socket, text.data(), text.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

/// One message; an empty one when there is none and nobody waits; nothing when the other side is gone, or where a signal stops the wait.
std::optional<std::string> receive(int socket, int flags, FunctionRef<bool()> stop) {
  std::string text(64 << 10, '\0');
  for (;;) {
    const ssize_t size = ::recv(socket, text.data(), text.size(), flags);
    if (size < 0 && errno == EINTR && !stop()) continue;
    if (size < 0 && errno == EAGAIN) return "";
    if (size <= 0) return std::nullopt;
    text.resize(static_cast<std::size_t>(size));
    return text;
  }
}

}  // namespace

std::optional<Order> RunnerLine::next(FunctionRef<bool()> stop) {
  const std::optional<std::string> text = receive(STDIN_FILENO, 0, stop);
  if (!text) return std::nullopt;
  Order order;
  std::istringstream words(*text);
  std::string verb;
  words >> verb >> order.token >> order.id;
  order.stop = verb == "stop";
  order.replaces = verb == "replace";
  std::getline(words.ignore(), order.log);  // a path may have spaces
  return order;
}

void RunnerLine::tell(const Report& report) {
  send_text(STDIN_FILENO, std::to_string(report.token) + " " + std::to_string(report.code));
}

Worker::Worker(const std::vector<std::string>& command, const std::string& log) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw UserError("a process of trials cannot be started: no socket: " + std::string(std::strerror(errno)));
  socket_ = ends[0];
  try {
    process_ = start_self(command, log, ends[1]);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
}

Worker::~Worker() {
  if (socket_ >= 0) ::close(socket_);
  constexpr double look = 0.01;
  for (double waited = 0.0; !ended && !sweeps::ended(process_); waited += look) {
    if (waited > longest_end) kill_group(process_);
    const timespec time{0, static_cast<long>(look * 1e9)};
    ::nanosleep(&time, nullptr);
  }
}

void Worker::start(const Order& order) {
  send_text(socket_, (order.replaces ? "replace " : "start ") + std::to_string(order.token) + " " + order.id + " " + order.log);
}

void Worker::stop(std::int64_t token) { send_text(socket_, "stop " + std::to_string(token)); }

std::optional<Report> Worker::report() {
  if (socket_ < 0) return std::nullopt;
  const std::optional<std::string> text = receive(socket_, MSG_DONTWAIT, [] { return false; });
  if (!text) ::close(std::exchange(socket_, -1));
  if (!text || text->empty()) return std::nullopt;
  Report report;
  std::istringstream(*text) >> report.token >> report.code;
  return report;
}

}  // namespace phasor::sweeps
