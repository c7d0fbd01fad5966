// SPDX-License-Identifier: Apache-2.0
//
// The search.
#include "autotune/search/Search.h"

#include "autotune/search/UtcTime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

namespace spargejit::autotune {

namespace {

constexpr int kLeastCount = 20;
/// Measurements of each side when a winner meets the default, in turns, so that
/// a clock that changes meanwhile changes both.
constexpr int kDuelRounds = 6;
/// How much slower than the fastest, or the default, a configuration has to be
/// to be left alone: more than an H200 that gets warm loses of its clock, since
/// those measured later must not lose by that (14 % seen).
constexpr double kHopeless = 1.2;

bool isOfTheSurroundings(const Status &status) {
  return status.code() == ErrorCode::DriverError ||
         status.code() == ErrorCode::IoError;
}

/// The cheapest by estimate, and a few of the others.
std::vector<Config> pickCandidates(const std::vector<Candidate> &candidates,
                                   const SearchRequest &request) {
  std::vector<Config> picked;
  auto first = std::min<std::size_t>(candidates.size(),
                                     static_cast<std::size_t>(request.best));
  for (std::size_t i = 0; i < first; ++i)
    picked.push_back(candidates[i].config);
  std::vector<Candidate> rest(candidates.begin() +
                                  static_cast<std::ptrdiff_t>(first),
                              candidates.end());
  std::mt19937_64 random(request.seed);
  std::shuffle(rest.begin(), rest.end(), random);
  auto few = std::min<std::size_t>(rest.size(),
                                   static_cast<std::size_t>(request.random));
  for (std::size_t i = 0; i < few; ++i)
    picked.push_back(rest[i].config);
  return picked;
}

/// One search: the request, the device, and what came of it so far.
class Search {
public:
  Search(const SearchRequest &request, TuningDevice &device,
         const std::vector<TuningRecord> &earlier,
         const std::function<Status(const TuningRecord &)> &keep)
      : request_(request), device_(device), earlier_(earlier), keep_(keep),
        environment_(device.environment()) {}

  /// Tries one configuration: from an earlier record, or anew, against the
  /// fastest so far, default included.
  Result<TuningRecord> tryConfig(const Config &config,
                                 const std::optional<TuningRecord> &leader,
                                 SearchOutcome &outcome);
  /// Those that no earlier record answers for.
  std::vector<Config> newOnes(const std::vector<Config> &configs) const;
  /// True when the fastest is faster than the default beyond doubt; writes what
  /// both did into `winner` and `byDefault`.
  Result<bool> duel(TuningRecord &winner, TuningRecord &byDefault);
  /// What an earlier search found when both met: their second records. False
  /// where they have none.
  bool recallDuel(TuningRecord &winner, TuningRecord &byDefault) const;

private:
  TuningRecord blank(const Config &config) const {
    TuningRecord record;
    record.kernel = request_.kernel;
    record.problem = request_.problem;
    record.environment = environment_;
    record.config = config;
    record.isDefault = config == request_.defaultConfig;
    record.date = utcNow();
    return record;
  }
  /// Build, check, measure; the first failure ends up in the record.
  Status fill(TuningRecord &record,
              const std::optional<TuningRecord> &leader) const;
  /// Adds a measurement of `count` samples to the record.
  Status measure(TuningRecord &record, int count) const;

  const SearchRequest &request_;
  TuningDevice &device_;
  const std::vector<TuningRecord> &earlier_;
  const std::function<Status(const TuningRecord &)> &keep_;
  const TuningEnvironment environment_;
};

Status Search::measure(TuningRecord &record, int count) const {
  auto samples = device_.measure(record.config, count);
  if (!samples.ok())
    return samples.status();
  record.count = static_cast<std::int64_t>(samples->size());
  Spread spread = spreadOf(*std::move(samples));
  record.medianUs = spread.median;
  record.spreadUs = spread.quartiles;
  return Status();
}

Status Search::fill(TuningRecord &record,
                    const std::optional<TuningRecord> &leader) const {
  auto built = device_.build(record.config);
  if (!built.ok())
    return built.status();
  record.registers = built->registers;
  record.spillBytes = built->spillBytes;
  if (record.spillBytes > 0)
    return Status(ErrorCode::OutOfResources,
                  fmt::format("expected no spilled registers, got {} bytes",
                              record.spillBytes));
  auto error = device_.check(record.config);
  if (!error.ok())
    return error.status();
  record.maxError = *error;
  if (leader) {
    Status status = measure(record, kScreenCount);
    if (!status.ok() || record.medianUs > kHopeless * leader->medianUs)
      return status;
  }
  return measure(record, std::max(kLeastCount, request_.count));
}

std::vector<Config> Search::newOnes(const std::vector<Config> &configs) const {
  std::vector<Config> found;
  for (const Config &config : configs) {
    const TuningRecord record = blank(config);
    if (std::none_of(earlier_.begin(), earlier_.end(),
                     [&](const TuningRecord &known) {
                       return isSameTrial(known, record);
                     }))
      found.push_back(config);
  }
  return found;
}

Result<TuningRecord>
Search::tryConfig(const Config &config,
                  const std::optional<TuningRecord> &leader,
                  SearchOutcome &outcome) {
  TuningRecord record = blank(config);
  for (const TuningRecord &known : earlier_)
    if (isSameTrial(known, record)) {
      ++outcome.reused;
      record = known;
      record.isDefault = config == request_.defaultConfig;
      record.isWinner = false;
      return record;
    }
  Status status = fill(record, leader);
  if (!status.ok() && isOfTheSurroundings(status))
    return status;
  if (!status.ok()) {
    record.failure = status.message().empty() ? errorCodeName(status.code())
                                              : status.message();
    ++outcome.failed;
  } else {
    ++outcome.measured;
  }
  if (Status kept = keep_(record); !kept)
    return kept;
  return record;
}

Result<bool> Search::duel(TuningRecord &winner, TuningRecord &byDefault) {
  const int count =
      (std::max(kLeastCount, request_.count) + kDuelRounds - 1) / kDuelRounds;
  // By round what each side's samples are away from the middle of both sides,
  // which changes with the clock.
  std::vector<double> samples[2];
  TuningRecord *sides[2] = {&winner, &byDefault};
  double middles = 0;
  for (int round = 0; round < kDuelRounds; ++round) {
    std::vector<double> here[2];
    for (int side = 0; side < 2; ++side) {
      auto more = device_.measure(sides[side]->config, count);
      if (!more.ok())
        return more.status();
      here[side] = *std::move(more);
    }
    const double middle =
        (spreadOf(here[0]).median + spreadOf(here[1]).median) / 2;
    middles += middle / kDuelRounds;
    for (int side = 0; side < 2; ++side)
      for (double sample : here[side])
        samples[side].push_back(sample - middle);
  }
  for (int side = 0; side < 2; ++side) {
    for (double &sample : samples[side])
      sample += middles;
    Spread spread = spreadOf(samples[side]);
    sides[side]->medianUs = spread.median;
    sides[side]->spreadUs = spread.quartiles;
    sides[side]->count = static_cast<std::int64_t>(samples[side].size());
    sides[side]->date = utcNow();
  }
  return byDefault.medianUs - winner.medianUs >
         std::max(winner.spreadUs, byDefault.spreadUs);
}

bool Search::recallDuel(TuningRecord &winner, TuningRecord &byDefault) const {
  auto latest = [&](const TuningRecord &trial) -> const TuningRecord * {
    const TuningRecord *last = nullptr;
    int count = 0;
    for (const TuningRecord &known : earlier_)
      if (isSameTrial(known, trial)) {
        last = &known;
        ++count;
      }
    return count > 1 ? last : nullptr;
  };
  const TuningRecord *won = latest(winner), *held = latest(byDefault);
  if (!won || !held)
    return false;
  winner = *won;
  byDefault = *held;
  byDefault.isDefault = true;
  return true;
}

} // namespace

Spread spreadOf(std::vector<double> samples) {
  if (samples.empty())
    return {};
  std::sort(samples.begin(), samples.end());
  // Between two samples, the line that joins them.
  auto at = [&](double share) {
    double place = share * static_cast<double>(samples.size() - 1);
    auto low = static_cast<std::size_t>(place);
    std::size_t high = std::min(low + 1, samples.size() - 1);
    return samples[low] +
           (place - static_cast<double>(low)) * (samples[high] - samples[low]);
  };
  return {at(0.5), at(0.75) - at(0.25)};
}

Result<SearchOutcome>
searchConfigs(const ConfigSpace &space, const SearchRequest &request,
              TuningDevice &device, const std::vector<TuningRecord> &earlier,
              const std::function<Status(const TuningRecord &)> &keep,
              const std::function<bool(const SearchProgress &)> &progress) {
  auto enumeration = space.enumerate(request.facts);
  if (!enumeration.ok())
    return enumeration.status();
  SearchOutcome outcome;
  outcome.spaceSize = enumeration->total;
  outcome.rejected = enumeration->rejected;
  std::vector<Config> configs =
      pickCandidates(enumeration->candidates, request);
  configs.erase(
      std::remove(configs.begin(), configs.end(), request.defaultConfig),
      configs.end());

  Search search(request, device, earlier, keep);
  const int total = static_cast<int>(configs.size()) + 1;
  std::vector<Config> all = configs;
  all.insert(all.begin(), request.defaultConfig);
  device.announce(search.newOnes(all));
  auto byDefault =
      search.tryConfig(request.defaultConfig, std::nullopt, outcome);
  if (!byDefault.ok())
    return byDefault.status();
  if (!byDefault->isMeasured())
    return Status(ErrorCode::CompileFailed,
                  "the default configuration cannot be tried: " +
                      byDefault->failure);
  outcome.defaultRecord = outcome.chosen = *byDefault;
  std::optional<TuningRecord> fastest;
  std::optional<TuningRecord> leader = *byDefault;
  for (int i = 0; i < static_cast<int>(configs.size()); ++i) {
    const Config &config = configs[static_cast<std::size_t>(i)];
    if (!progress({i + 1, total, describeConfig(config)})) {
      outcome.isInterrupted = true;
      return outcome;
    }
    auto record = search.tryConfig(config, leader, outcome);
    if (!record.ok())
      return record.status();
    if (record->isMeasured() &&
        (!fastest || record->medianUs < fastest->medianUs))
      fastest = *std::move(record);
    if (fastest && fastest->medianUs < leader->medianUs)
      leader = fastest;
  }
  if (!progress({total, total, ""})) {
    outcome.isInterrupted = true;
    return outcome;
  }
  if (!fastest || fastest->medianUs > kHopeless * byDefault->medianUs)
    return outcome;
  // The same search again, ended before, adds nothing.
  if (outcome.reused == total &&
      search.recallDuel(*fastest, outcome.defaultRecord)) {
    outcome.chosen = fastest->isWinner ? *fastest : outcome.defaultRecord;
    return outcome;
  }
  auto won = search.duel(*fastest, outcome.defaultRecord);
  if (!won.ok())
    return won.status();
  fastest->isWinner = *won;
  for (const TuningRecord &record : {*fastest, outcome.defaultRecord})
    if (Status status = keep(record); !status)
      return status;
  outcome.chosen = *won ? *fastest : outcome.defaultRecord;
  return outcome;
}

} // namespace spargejit::autotune
