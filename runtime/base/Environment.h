// SPDX-License-Identifier: Apache-2.0
//
// The environment variables of the library; the table for users is in
// runtime/README.md. No other file reads the environment.
#pragma once

#include "spargejit/library.h"
#include "spargejit/status.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spargejit {

struct Environment {
  /// SPARGEJIT_LOG: the least level handed to the log callback; none for "off".
  std::optional<LogLevel> leastLogLevel = LogLevel::Debug;
  /// SPARGEJIT_DUMP: folder that receives the stages of each compilation;
  /// empty: no dumps.
  std::string dumpFolder;
  /// SPARGEJIT_JIT: false forbids compiling kernels.
  bool jit = true;
  /// SPARGEJIT_PTXAS: the ptxas program that assembles GPU kernels; empty: the
  /// driver does.
  std::string ptxas;
  /// SPARGEJIT_RACECHECK: GPU kernels that compute-sanitizer's racecheck can
  /// follow.
  bool racecheck = false;
  /// SPARGEJIT_LIBCUDA: the CUDA driver's library, a name or a path.
  std::string cudaDriver = "libcuda.so.1";
  /// SPARGEJIT_CACHE_DIR, else the user's cache folder (XDG_CACHE_HOME or
  /// ~/.cache): where compiled kernels are kept; empty: nowhere
  /// (SPARGEJIT_CACHE=off, or no such folder).
  std::string cacheFolder;
  /// SPARGEJIT_CACHE_MAX_MB: what the kept kernels may take, in 2^20 bytes.
  std::int64_t cacheMaxMegabytes = 1024;
  /// SPARGEJIT_PACK: folders of kernels made by `spargejit compile`, looked at
  /// in this order.
  std::vector<std::string> packFolders;
  /// By kernel, values of tuning parameters in place of the defaults. No
  /// variable sets them: they are for who tries configurations
  /// (autotune/search).
  std::map<std::string, std::map<std::string, std::int64_t>> tuning;
  /// SPARGEJIT_RECORDS: files of tuning records, looked at in this order and
  /// before those that ship; false for "off": no records, not even these.
  std::vector<std::string> recordFiles;
  bool usesRecords = true;
  /// SPARGEJIT_NVRTC: NVRTC's library, a name or a path; empty: the usual
  /// names.
  std::string nvrtc;
  /// PATH: where programs are looked for.
  std::string searchPath;

  bool logs(LogLevel level) const {
    return leastLogLevel && level >= *leastLogLevel;
  }
};

/// Reads the variables through `find`, which gives null for an unset one.
/// InvalidArgument names the variable, the values it may have and the one
/// found.
Result<Environment>
readEnvironment(const std::function<const char *(const char *)> &find);

/// The process's environment, read at the first call and kept.
const Result<Environment> &environment();

} // namespace spargejit
