// SPDX-License-Identifier: Apache-2.0
//
// Finds the fastest right configuration of a kernel for a problem: enumerate,
// drop by requirement, rank by estimate, build and drop by the assembler's
// report, check against the reference, measure the best and a random few, those
// that are far behind only briefly.
#pragma once

#include "autotune/db/TuningRecord.h"
#include "autotune/space/ConfigSpace.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace spargejit::autotune {

/// What a candidate's build says of it.
struct BuildReport {
  int registers = 0;
  std::int64_t spillBytes = 0;
};

/// Where candidates are tried. A failure of a candidate is its Status; one of
/// the surroundings (DriverError, IoError) ends the search.
class TuningDevice {
public:
  virtual ~TuningDevice() = default;
  virtual TuningEnvironment environment() const = 0;
  /// What is going to be built, so that it may be compiled ahead on all cores.
  virtual void announce(const std::vector<Config> &) {}
  /// Compiles and assembles.
  virtual Result<BuildReport> build(const Config &config) = 0;
  /// Runs small shapes against the reference, with guard zones around every
  /// buffer: the largest difference, or why the result is wrong.
  virtual Result<double> check(const Config &config) = 0;
  /// Microseconds of each of `count` launches after a warm-up, on buffers that
  /// take turns so that none is found in a cache.
  virtual Result<std::vector<double>> measure(const Config &config,
                                              int count) = 0;
};

inline constexpr int kScreenCount = 3;

struct SearchRequest {
  std::string kernel;
  ProblemShape problem;
  /// What the space's expressions may refer to.
  Values facts;
  /// Measured first; what a winner has to beat.
  Config defaultConfig;
  /// How many of the cheapest by estimate are measured, and how many of the
  /// rest.
  int best = 24;
  int random = 6;
  /// Samples of one measurement; at least 20. A configuration that is a fifth
  /// slower than the fastest so far in its first kScreenCount gets no more.
  int count = 30;
  std::uint64_t seed = 1;
};

/// How far a search is; false from the receiver ends it.
struct SearchProgress {
  int done = 0;
  int total = 0;
  std::string config;
};

struct SearchOutcome {
  /// The default, where none was better by more than the spread.
  TuningRecord chosen;
  /// How the default did in the same comparison.
  TuningRecord defaultRecord;
  std::int64_t spaceSize = 0;
  std::vector<std::pair<std::string, std::int64_t>> rejected;
  int measured = 0;
  int failed = 0;
  int reused = 0; ///< found in earlier records
  bool isInterrupted = false;
};

/// `earlier` records of the same trials are taken in place of another
/// measurement, so that an interrupted search goes on. Every new record is
/// handed to `keep` at once.
/// Errors: those of the space and of the device's surroundings; CompileFailed
/// or another where the default itself cannot be tried.
Result<SearchOutcome>
searchConfigs(const ConfigSpace &space, const SearchRequest &request,
              TuningDevice &device, const std::vector<TuningRecord> &earlier,
              const std::function<Status(const TuningRecord &)> &keep,
              const std::function<bool(const SearchProgress &)> &progress);

/// Median and distance of the quartiles.
struct Spread {
  double median = 0;
  double quartiles = 0;
};
Spread spreadOf(std::vector<double> samples);

} // namespace spargejit::autotune
