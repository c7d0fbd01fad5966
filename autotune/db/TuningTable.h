// SPDX-License-Identifier: Apache-2.0
//
// TuningTable: what the records advise on one device, for the way of a call.
#pragma once

#include "autotune/db/TuningDb.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace spargejit::autotune {

/// Thread-safe.
class TuningTable {
public:
  /// Configurations by kernel.
  using Configs = std::map<std::string, std::map<std::string, std::int64_t>>;

  /// `here`: the device; its kernelText is not looked at, but `kernelTexts`:
  /// digests of the texts of this target's kernels, by name.
  TuningTable(std::vector<TuningRecord> records, TuningEnvironment here,
              std::map<std::string, std::string> kernelTexts);

  /// What the records advise for a call's kernels, or null where they say
  /// nothing. Equal configurations have one address, for as long as the table
  /// lives, so that it names them.
  const Configs *configsFor(const ProblemShape &problem);

  /// The record behind it, of one kernel.
  TuningMatch match(const std::string &kernel,
                    const ProblemShape &problem) const;

  /// Takes another record in, before all others.
  void add(TuningRecord record);

  const TuningEnvironment &here() const { return here_; }
  /// `here` with the digest of a kernel's text; empty for one that there is
  /// not.
  TuningEnvironment environmentOf(const std::string &kernel) const;

private:
  /// The numbers of a problem.
  using Key = std::array<std::int64_t, 11>;
  struct KeyHash {
    std::size_t operator()(const Key &key) const;
  };

  const Configs *choose(const ProblemShape &problem);
  TuningMatch matchLocked(const std::string &kernel,
                          const ProblemShape &problem) const;

  const TuningEnvironment here_;
  const std::map<std::string, std::string> kernelTexts_;
  /// False: there is no record for this device's kernels, and nothing to do.
  std::atomic<bool> hasRecords_{false};
  mutable std::shared_mutex mutex_;
  std::vector<TuningRecord> records_;
  TuningDb db_;
  std::unordered_map<Key, const Configs *, KeyHash> chosen_;
  /// By content; never removed.
  std::map<Configs, std::unique_ptr<const Configs>> kept_;
};

} // namespace spargejit::autotune
