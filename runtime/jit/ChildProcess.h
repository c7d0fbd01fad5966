// SPDX-License-Identifier: Apache-2.0
//
// Runs another program: without a shell, with a time limit, and with nothing of
// this process's but the command line.
#pragma once

#include "spargejit/status.h"

#include <chrono>
#include <string>
#include <vector>

namespace spargejit::jit {

struct ProgramOutcome {
  /// What it exited with, or 128 + the signal that ended it.
  int exitCode = 0;
  /// True when it ran past the limit and was ended.
  bool timedOut = false;
  /// Standard output and error, as they came.
  std::string output;
};

/// Runs arguments[0] (a path) with the arguments, an empty standard input and
/// the environment LC_ALL=C alone, and waits for it.
/// IoError when it cannot be started.
Result<ProgramOutcome> runProgram(const std::vector<std::string> &arguments,
                                  std::chrono::milliseconds limit);

/// The arguments as a shell takes them, for people to repeat a command.
std::string commandLine(const std::vector<std::string> &arguments);

} // namespace spargejit::jit
