// SPDX-License-Identifier: Apache-2.0
//
// Log lines of the library. They go to the callback of setLogCallback
// (spargejit/library.h) and nowhere else.
#pragma once

#include "spargejit/library.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace spargejit {

/// True when a line of this level would reach a callback.
bool logWanted(LogLevel level);
/// Hands `line` to the callback, if there is one that wants it.
void logLine(LogLevel level, const std::string &line);

/// A warning, the first time that this process has it to say.
void warnOnce(const std::string &line);

/// Formats only when the line is wanted.
template <typename... Args>
void logFormatted(LogLevel level, fmt::format_string<Args...> format,
                  Args &&...args) {
  if (logWanted(level))
    logLine(level, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace spargejit
