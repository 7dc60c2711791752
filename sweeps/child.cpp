#include "sweeps/child.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/error.h"

namespace phasor::sweeps {

namespace {

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
  return set;
}

/// What posix_spawn is told, with its destructors.
struct Plan {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  Plan() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
  }
  ~Plan() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
};

}  // namespace

std::string to_text(const Exit& exit) {
  if (!exit.by_signal) return "exit code " + std::to_string(exit.number);
  const char* name = ::strsignal(exit.number);
  return "killed by signal " + std::to_string(exit.number) + (name ? " (" + std::string(name) + ")" : "");
}

pid_t start_self(const std::vector<std::string>& arguments, const std::string& log, int input) {
  Plan plan;
  if (input >= 0)
    ::posix_spawn_file_actions_adddup2(&plan.files, input, STDIN_FILENO);
  else
    ::posix_spawn_file_actions_addopen(&plan.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&plan.files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND,
                                     0666);
  ::posix_spawn_file_actions_adddup2(&plan.files, STDOUT_FILENO, STDERR_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&plan.attributes, &none);
  ::posix_spawnattr_setpgroup(&plan.attributes, 0);
  ::posix_spawnattr_setflags(&plan.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);

  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t process = 0;
  // Not by name: the file may have been replaced by a new build since we were started.
  const int error = ::posix_spawn(&process, "/proc/self/exe", &plan.files, &plan.attributes, argv.data(), ::environ);
  if (error != 0)
    throw UserError("a trial cannot be started: " + std::string(std::strerror(error)) + " (log " + log + ")");
  return process;
}

std::optional<Exit> ended(pid_t process) {
  int status = 0;
  const pid_t found = ::waitpid(process, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return std::nullopt;
  if (found < 0) return Exit{false, -1};
  if (WIFSIGNALED(status)) return Exit{true, WTERMSIG(status)};
  return Exit{false, WEXITSTATUS(status)};
}

void kill_group(pid_t process) {
  ::kill(-process, SIGKILL);
  ::kill(process, SIGKILL);
}

void ask_to_end(pid_t process) { ::kill(process, SIGTERM); }

std::string last_line(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(0, std::ios::end);
  const std::streamoff size = stream.tellg();
  if (!stream || size <= 0) return "";
  constexpr std::streamoff longest = 4096;
  const std::streamoff from = size > longest ? size - longest : 0;
  std::string text(static_cast<std::size_t>(size - from), '\0');
  stream.seekg(from);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  const std::size_t end = text.find_last_not_of(" \r\n\t");
  if (end == std::string::npos) return "";
  const std::size_t line = text.find_last_of("\r\n", end);
  const std::size_t begin = line == std::string::npos ? 0 : line + 1;
  text = text.substr(begin, std::min<std::size_t>(end - begin + 1, 200));
  for (char& c : text) {
    if (c >= 0 && c < ' ') c = ' ';
  }
  return text;
}

SignalQueue::SignalQueue() {
  const sigset_t set = watched_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  descriptor_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor_ < 0) throw UserError("signals cannot be watched: " + std::string(std::strerror(errno)));
}

SignalQueue::~SignalQueue() {
  ::close(descriptor_);
  const sigset_t set = watched_signals();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

int SignalQueue::wait(double seconds, const std::vector<int>& descriptors) {
  std::vector<pollfd> watched = {{descriptor_, POLLIN, 0}};
  for (const int descriptor : descriptors) watched.push_back({descriptor, POLLIN, 0});
  if (::poll(watched.data(), watched.size(), static_cast<int>(seconds * 1e3)) <= 0) return 0;
  signalfd_siginfo signal{};
  const ssize_t size = ::read(descriptor_, &signal, sizeof signal);
  return size == static_cast<ssize_t>(sizeof signal) ? static_cast<int>(signal.ssi_signo) : 0;
}

}  // namespace phasor::sweeps
