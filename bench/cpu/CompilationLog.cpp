// SPDX-License-Identifier: Apache-2.0
//
// CompilationLog.h.
#include "bench/cpu/CompilationLog.h"

#include "spargejit/library.h"

#include <stdexcept>

namespace spargejit::bench {

CompilationLog::CompilationLog()
    : countedMs_(counters().compileMilliseconds),
      countBefore_(counters().kernelsCompiled) {
  setLogCallback([this](LogLevel, const std::string &line) { take(line); });
}

CompilationLog::~CompilationLog() { setLogCallback({}); }

void CompilationLog::take(const std::string &line) {
  static const std::string kStart = "compiled ";
  if (!line.starts_with(kStart))
    return;
  std::lock_guard lock(mutex_);
  const double total = counters().compileMilliseconds;
  const std::size_t end = line.rfind(" in ");
  kernels_.push_back(
      {{"kernel", line.substr(kStart.size(), end - kStart.size())},
       {"ms", total - countedMs_}});
  countedMs_ = total;
}

nlohmann::ordered_json CompilationLog::kernels() const {
  std::lock_guard lock(mutex_);
  if (static_cast<std::int64_t>(kernels_.size()) !=
      counters().kernelsCompiled - countBefore_)
    throw std::runtime_error("the library's log does not name every kernel "
                             "that its counters have (SPARGEJIT_LOG?)");
  return kernels_;
}

} // namespace spargejit::bench
