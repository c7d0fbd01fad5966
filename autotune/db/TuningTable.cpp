// SPDX-License-Identifier: Apache-2.0
//
// The table: matches are worked out once for each problem.
#include "autotune/db/TuningTable.h"

#include <bit>
#include <mutex>
#include <utility>

namespace spargejit::autotune {

namespace {

/// Problems remembered, far more than a process has; beyond them the table
/// starts anew, so that lengths that never come again do not pile up.
constexpr std::size_t kMostProblems = 4096;

} // namespace

std::size_t TuningTable::KeyHash::operator()(const Key &key) const {
  std::size_t hash = 0;
  for (std::int64_t part : key)
    // The odd number is 2^64 over the golden ratio, which spreads small parts.
    hash = (hash ^ static_cast<std::size_t>(part)) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

TuningTable::TuningTable(std::vector<TuningRecord> records,
                         TuningEnvironment here,
                         std::map<std::string, std::string> kernelTexts)
    : here_(std::move(here)), kernelTexts_(std::move(kernelTexts)), db_({}) {
  for (TuningRecord &record : records)
    if (record.environment.target == here_.target &&
        record.environment.kernelText ==
            environmentOf(record.kernel).kernelText)
      records_.push_back(std::move(record));
  db_ = TuningDb(records_);
  hasRecords_ = db_.size() > 0;
}

TuningEnvironment TuningTable::environmentOf(const std::string &kernel) const {
  TuningEnvironment environment = here_;
  auto text = kernelTexts_.find(kernel);
  environment.kernelText = text == kernelTexts_.end() ? "" : text->second;
  return environment;
}

TuningMatch TuningTable::matchLocked(const std::string &kernel,
                                     const ProblemShape &problem) const {
  return db_.find(kernel, problem, environmentOf(kernel));
}

TuningMatch TuningTable::match(const std::string &kernel,
                               const ProblemShape &problem) const {
  std::shared_lock lock(mutex_);
  return matchLocked(kernel, problem);
}

const TuningTable::Configs *TuningTable::choose(const ProblemShape &problem) {
  Configs configs;
  for (const auto &[kernel, text] : kernelTexts_)
    if (TuningMatch match = matchLocked(kernel, problem);
        match.quality != MatchQuality::Default)
      configs.emplace(kernel, std::move(match.config));
  if (configs.empty())
    return nullptr;
  auto &kept = kept_[configs];
  if (!kept)
    kept = std::make_unique<const Configs>(std::move(configs));
  return kept.get();
}

const TuningTable::Configs *
TuningTable::configsFor(const ProblemShape &problem) {
  if (!hasRecords_.load(std::memory_order_acquire))
    return nullptr;
  const Key key = {static_cast<std::int64_t>(problem.dtype),
                   problem.batch,
                   problem.qHeads,
                   problem.kvHeads,
                   problem.qLen,
                   problem.kvLen,
                   problem.headDim,
                   problem.maskBlockQ,
                   problem.maskBlockKv,
                   static_cast<std::int64_t>(problem.causal),
                   std::bit_cast<std::int64_t>(problem.density)};
  {
    std::shared_lock lock(mutex_);
    if (auto it = chosen_.find(key); it != chosen_.end())
      return it->second;
  }
  std::unique_lock lock(mutex_);
  if (chosen_.size() >= kMostProblems)
    chosen_.clear();
  const Configs *configs = choose(problem);
  chosen_[key] = configs;
  return configs;
}

void TuningTable::add(TuningRecord record) {
  std::unique_lock lock(mutex_);
  records_.insert(records_.begin(), std::move(record));
  db_ = TuningDb(records_);
  chosen_.clear();
  hasRecords_.store(db_.size() > 0, std::memory_order_release);
}

} // namespace spargejit::autotune
