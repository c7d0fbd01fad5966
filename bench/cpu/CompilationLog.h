// SPDX-License-Identifier: Apache-2.0
//
// Which kernels the library compiles, and how long each takes.
#pragma once

#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

namespace spargejit::bench {

/// Listens to the library's log while it lives. A kernel's name comes from the
/// log's line about it, its time from what the counters have gained since the
/// line before.
class CompilationLog {
public:
  CompilationLog();
  ~CompilationLog();
  CompilationLog(const CompilationLog &) = delete;
  CompilationLog &operator=(const CompilationLog &) = delete;

  /// [{"kernel": name and parameters, "ms"}] in order. Throws when the log and
  /// the counters do not agree on their number.
  nlohmann::ordered_json kernels() const;

private:
  void take(const std::string &line);

  mutable std::mutex mutex_;
  nlohmann::ordered_json kernels_ = nlohmann::ordered_json::array();
  double countedMs_;
  std::int64_t countBefore_;
};

} // namespace spargejit::bench
