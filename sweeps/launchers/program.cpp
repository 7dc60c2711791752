#include "sweeps/launchers/program.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/error.h"

namespace phasor::sweeps {

namespace {

using Clock = std::chrono::steady_clock;

/// Both ends are closed in programs that we start, but for what is made one of their standard streams.
struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw UserError("no pipe: " + std::string(std::strerror(errno)));
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    ::close(read);
    if (write >= 0) ::close(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
};

int start(const std::vector<std::string>& words, Pipe& out, Pipe& error, pid_t& process) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out.write, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, error.write, STDERR_FILENO);
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int failed = ::posix_spawnp(&process, argv[0], &files, nullptr, argv.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&files);
  for (Pipe* pipe : {&out, &error}) {
    ::close(pipe->write);
    pipe->write = -1;
  }
  return failed;
}

/// Reads both until they end; false when that took too long.
bool read_both(Pipe& out, Pipe& error, Said& said, double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::array<pollfd, 2> open{pollfd{out.read, POLLIN, 0}, pollfd{error.read, POLLIN, 0}};
  const std::array<std::string*, 2> texts{&said.out, &said.error};
  while (open[0].fd >= 0 || open[1].fd >= 0) {  // poll passes over what is negative
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    if (::poll(open.data(), open.size(), static_cast<int>(left)) <= 0) continue;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (open[i].fd < 0 || open[i].revents == 0) continue;
      char part[4096];
      const ssize_t size = ::read(open[i].fd, part, sizeof part);
      if (size > 0) {
        texts[i]->append(part, static_cast<std::size_t>(size));
      } else if (size == 0 || errno != EINTR) {
        open[i].fd = -1;
      }
    }
  }
  return true;
}

}  // namespace

Said run_program(const std::vector<std::string>& words, double seconds) {
  Said said;
  Pipe out, error;
  pid_t process = 0;
  if (const int failed = start(words, out, error, process); failed != 0) {
    said.found = failed != ENOENT;
    said.code = -1;
    said.error = std::strerror(failed);
    return said;
  }
  const bool in_time = read_both(out, error, said, seconds);
  if (!in_time) ::kill(process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  said.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (!in_time) said.error = "no answer for " + std::to_string(static_cast<int>(seconds)) + " s";
  return said;
}

std::string complaint(const std::string& program, const Said& said) {
  if (!said.found) return program + " is not installed here";
  std::string text;
  std::istringstream lines(said.error);
  for (std::string line; std::getline(lines, line);) {
    for (const std::string& head : {program + ": ", std::string("error: ")})
      if (line.starts_with(head)) line.erase(0, head.size());
    if (!line.empty()) text += (text.empty() ? "" : "; ") + line;
  }
  return program + ": " + (text.empty() ? "exit code " + std::to_string(said.code) : text);
}

}  // namespace phasor::sweeps
