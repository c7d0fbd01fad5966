// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the disk cache share: entries with random content, a folder
// of a test's own, and the warnings that were logged.
#pragma once

#include "runtime/cache/EntryFolder.h"
#include "spargejit/library.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/unit/runtime/tools/TemporaryFolder.h"

#include <mutex>
#include <string>
#include <vector>

namespace spargejit::unit {

inline cache::KernelKey keyNamed(const std::string &name) {
  return cache::KernelKey::ofFields(
      {{"key_version", "1"}, {"kernel", name}, {"generator", "fake 1"}});
}

/// An entry with `bytes` of random code.
inline cache::StoredEntry randomEntry(reference::Random &random,
                                      std::size_t bytes) {
  cache::StoredEntry entry;
  entry.kind = "kernel";
  entry.content = R"({"number":)" + std::to_string(random.next() % 100000) +
                  R"(,"text":"a \"quoted\" word"})";
  entry.codeFile = "kernel.o";
  entry.code.resize(bytes);
  for (char &byte : entry.code)
    byte = static_cast<char>(random.next());
  return entry;
}

inline bool operator==(const cache::StoredEntry &a,
                       const cache::StoredEntry &b) {
  return a.kind == b.kind && a.content == b.content &&
         a.codeFile == b.codeFile && a.code == b.code;
}

/// Collects warnings while it lives.
class Warnings {
public:
  Warnings() {
    setLogCallback([this](LogLevel level, const std::string &line) {
      std::lock_guard lock(mutex_);
      if (level == LogLevel::Warning)
        lines_.push_back(line);
    });
  }
  ~Warnings() { setLogCallback({}); }
  Warnings(const Warnings &) = delete;
  Warnings &operator=(const Warnings &) = delete;

  std::vector<std::string> lines() const {
    std::lock_guard lock(mutex_);
    return lines_;
  }

private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

} // namespace spargejit::unit
