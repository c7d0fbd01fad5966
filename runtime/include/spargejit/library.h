// SPDX-License-Identifier: Apache-2.0
//
// The library as a whole: version, log, counters.
#pragma once

#include "spargejit/export.h"

#include <cstdint>
#include <functional>
#include <string>

namespace spargejit {

/// "major.minor.patch".
SPARGEJIT_API const char *version();
/// True when this build has the compiler in it (SPARGEJIT_ENABLE_COMPILER).
SPARGEJIT_API bool hasCompiler();

enum class LogLevel { Debug, Info, Warning };

/// Installs the receiver of log lines; an empty function switches logging off,
/// which is the default: the library itself writes to no stream. The function
/// may be called from several threads at once.
SPARGEJIT_API void
setLogCallback(std::function<void(LogLevel, const std::string &)> callback);

/// What this process has done so far; never reset.
struct Counters {
  std::int64_t kernelsCompiled = 0; ///< compilations that ran to their end
  std::int64_t kernelCacheHits = 0; ///< look-ups answered from memory
  /// Kernels taken from the disk cache or a pack in place of a compilation.
  std::int64_t kernelsFromDisk = 0;
  std::int64_t plansMade = 0;      ///< method files turned into plans
  std::int64_t bytesAllocated = 0; ///< workspace bytes taken so far
  double compileMilliseconds = 0;  ///< sum over kernelsCompiled
};
SPARGEJIT_API Counters counters();

} // namespace spargejit
