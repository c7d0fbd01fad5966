// SPDX-License-Identifier: Apache-2.0
//
// Child processes by posix_spawn, in a process group of their own.
#include "runtime/jit/ChildProcess.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace spargejit::jit {

namespace {

using Clock = std::chrono::steady_clock;

class FileDescriptor {
public:
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(const FileDescriptor &) = delete;
  FileDescriptor &operator=(const FileDescriptor &) = delete;

  int number() const { return number_; }
  void reset() {
    if (number_ >= 0)
      close(number_);
    number_ = -1;
  }

private:
  int number_;
};

/// Starts the program with its output on `output`; an errno value.
int start(const std::vector<std::string> &arguments, int output, pid_t &child) {
  std::vector<char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  // ptxas takes 40 MB in small pieces: large pages, where the system has them
  // for the asking, save ten thousand page faults, 0.02 of the forward kernel's
  // 0.27 s on an EPYC (the least of ten).
  std::array environment{
      const_cast<char *>("LC_ALL=C"),
      const_cast<char *>("GLIBC_TUNABLES=glibc.malloc.hugetlb=1:"
                         "glibc.malloc.top_pad=67108864"),
      static_cast<char *>(nullptr)};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY,
                                   0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  posix_spawnattr_t settings;
  posix_spawnattr_init(&settings);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&settings, &none);
  posix_spawnattr_setflags(&settings,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  int failure = posix_spawn(&child, arguments[0].c_str(), &files, &settings,
                            argv.data(), environment.data());
  posix_spawnattr_destroy(&settings);
  posix_spawn_file_actions_destroy(&files);
  return failure;
}

/// Appends what arrives until the other end is closed; false at the deadline.
bool readAll(int input, Clock::time_point deadline, std::string &text) {
  std::array<char, 4096> buffer;
  for (;;) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0)
      return false;
    pollfd waiting{input, POLLIN, 0};
    // In steps, so that any limit fits poll's int.
    int ready = poll(&waiting, 1,
                     static_cast<int>(std::min<std::chrono::milliseconds::rep>(
                         left.count(), 1000)));
    if (ready <= 0)
      continue;
    ssize_t count = read(input, buffer.data(), buffer.size());
    if (count == 0 || (count < 0 && errno != EINTR))
      return true;
    if (count > 0)
      text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// Waits until the child has ended; false at the deadline.
bool waitFor(pid_t child, Clock::time_point deadline, int &exitCode) {
  for (;;) {
    int state = 0;
    pid_t ended = waitpid(child, &state, WNOHANG);
    if (ended == child) {
      exitCode =
          WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
      return true;
    }
    // A process that ignores SIGCHLD is never told how its children ended.
    if (ended < 0 && errno != EINTR)
      return true;
    if (Clock::now() >= deadline)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

} // namespace

Result<ProgramOutcome> runProgram(const std::vector<std::string> &arguments,
                                  std::chrono::milliseconds limit) {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return Status(ErrorCode::IoError,
                  fmt::format("pipe: {}", std::strerror(errno)));
  FileDescriptor input(ends[0]);
  FileDescriptor output(ends[1]);
  pid_t child = 0;
  if (int failure = start(arguments, output.number(), child))
    return Status(ErrorCode::IoError,
                  fmt::format("{}: cannot be started: {}", arguments[0],
                              std::strerror(failure)));
  output.reset();
  ProgramOutcome outcome;
  auto deadline = Clock::now() + limit;
  outcome.timedOut = !readAll(input.number(), deadline, outcome.output) ||
                     !waitFor(child, deadline, outcome.exitCode);
  if (outcome.timedOut) {
    kill(-child, SIGKILL);
    waitFor(child, Clock::time_point::max(), outcome.exitCode);
  }
  return outcome;
}

std::string commandLine(const std::vector<std::string> &arguments) {
  constexpr const char *kPlain = "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_-+=./,:@%";
  std::string line;
  for (const std::string &argument : arguments) {
    line += line.empty() ? "" : " ";
    if (!argument.empty() &&
        argument.find_first_not_of(kPlain) == std::string::npos) {
      line += argument;
      continue;
    }
    line += "'";
    for (char letter : argument)
      line += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    line += "'";
  }
  return line;
}

} // namespace spargejit::jit
