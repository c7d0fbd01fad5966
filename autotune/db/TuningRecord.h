// SPDX-License-Identifier: Apache-2.0
//
// TuningRecord: one measurement of one configuration, or why there is none, as
// a line of JSON.
#pragma once

#include "autotune/db/ProblemLists.h"
#include "spargejit/status.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace spargejit::autotune {

/// What a measurement holds for. All of it is compared when records are
/// matched.
struct TuningEnvironment {
  std::string target;    ///< "sm_90a", "host"
  std::string device;    ///< "NVIDIA H200"
  std::string driver;    ///< "580.65"
  std::string assembler; ///< "ptxas 13.0.48", "the driver"
  /// The code generator's identity, and a digest of the kernel's text.
  std::string generator;
  std::string kernelText;

  friend bool operator==(const TuningEnvironment &,
                         const TuningEnvironment &) = default;
};

struct TuningRecord {
  std::string kernel;
  ProblemShape problem;
  TuningEnvironment environment;
  std::map<std::string, std::int64_t> config;
  /// The configuration that calls use where no record says otherwise.
  bool isDefault = false;
  /// Won against the default by more than the spread of both, in turns with it.
  bool isWinner = false;
  /// Microseconds of a launch: median, and the distance of the quartiles.
  double medianUs = 0;
  double spreadUs = 0;
  std::int64_t count = 0;
  /// What the assembler reported.
  int registers = 0;
  std::int64_t spillBytes = 0;
  /// Largest difference from the reference on the small shapes tried.
  double maxError = 0;
  /// ISO 8601, UTC.
  std::string date;
  /// Why there is no measurement; empty for one.
  std::string failure;
  /// Fields of the line that this version does not know, as a JSON object, to
  /// be written again.
  std::string otherFields = "{}";

  bool isMeasured() const { return failure.empty() && count > 0; }
};

/// True for shapes that are alike in all but their name.
bool isSameProblem(const ProblemShape &a, const ProblemShape &b);
/// True for two tries of one configuration in one environment.
bool isSameTrial(const TuningRecord &a, const TuningRecord &b);

/// "tile_kv=128, tile_q=64".
std::string describeConfig(const std::map<std::string, std::int64_t> &config);

/// One line, without its end.
std::string recordLine(const TuningRecord &record);
/// InvalidArgument, naming the field, for a line that is no record.
Result<TuningRecord> parseRecord(const std::string &line);

} // namespace spargejit::autotune
