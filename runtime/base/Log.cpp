// SPDX-License-Identifier: Apache-2.0
//
// The process's log callback.
#include "runtime/base/Log.h"

#include "runtime/base/Environment.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

namespace spargejit {

namespace {

using Callback = std::function<void(LogLevel, const std::string &)>;

std::mutex callbackMutex;
std::shared_ptr<const Callback> callback;
std::atomic<bool> hasCallback{false};

} // namespace

void setLogCallback(Callback receiver) {
  bool present = static_cast<bool>(receiver);
  auto shared =
      present ? std::make_shared<const Callback>(std::move(receiver)) : nullptr;
  std::lock_guard lock(callbackMutex);
  callback.swap(shared);
  hasCallback.store(present, std::memory_order_release);
}

bool logWanted(LogLevel level) {
  if (!hasCallback.load(std::memory_order_acquire))
    return false;
  const Result<Environment> &settings = environment();
  return !settings.ok() || settings->logs(level);
}

void logLine(LogLevel level, const std::string &line) {
  if (!logWanted(level))
    return;
  std::shared_ptr<const Callback> receiver;
  {
    std::lock_guard lock(callbackMutex);
    receiver = callback;
  }
  // Called without the lock: the receiver may log or change the callback.
  if (receiver)
    (*receiver)(level, line);
}

void warnOnce(const std::string &line) {
  static std::mutex mutex;
  static std::set<std::string> said;
  if (!logWanted(LogLevel::Warning))
    return;
  {
    std::lock_guard lock(mutex);
    if (!said.insert(line).second)
      return;
  }
  logLine(LogLevel::Warning, line);
}

} // namespace spargejit
