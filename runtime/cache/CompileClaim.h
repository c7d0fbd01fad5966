// SPDX-License-Identifier: Apache-2.0
//
// Keeps many processes that start at once from compiling one kernel each: the
// first leaves a small file, the others wait for its result. A courtesy only:
// nothing goes wrong where a claim is lost, stale or taken twice.
#pragma once

#include <chrono>
#include <string>

namespace spargejit::cache {

class CompileClaim {
public:
  struct Limits {
    /// How long to wait for a process of this machine that is alive, and for
    /// one of which nothing is known.
    std::chrono::milliseconds known = std::chrono::minutes(2);
    std::chrono::milliseconds unknown = std::chrono::seconds(20);
  };

  /// Holds nothing.
  CompileClaim() = default;
  /// The claim on parent/name. Where another process has it, waits until the
  /// entry appears, the claim is gone, its owner has died, or the limit is up.
  static CompileClaim take(const std::string &parent, const std::string &name,
                           const Limits &limits);
  static CompileClaim take(const std::string &parent, const std::string &name) {
    return take(parent, name, Limits());
  }

  CompileClaim(CompileClaim &&other) noexcept;
  CompileClaim &operator=(CompileClaim &&) = delete;
  ~CompileClaim();

  /// True when another process had it meanwhile: the entry may be there now.
  bool hasWaited() const { return hasWaited_; }
  bool isHeld() const { return !path_.empty(); }

private:
  std::string path_;
  bool hasWaited_ = false;
};

} // namespace spargejit::cache
