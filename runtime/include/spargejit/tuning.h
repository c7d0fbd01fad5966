// SPDX-License-Identifier: Apache-2.0
//
// Where the configuration of a call's attention kernel comes from.
#pragma once

#include "spargejit/export.h"

#include <string>

namespace spargejit {

/// How well a tuning record fits a call, from sure to unsure.
enum class MatchQuality {
  Exact,          ///< this problem was measured on this device
  NearestShape,   ///< another size of this class of problems, on this device
  SameArch,       ///< another device of this architecture
  OtherGenerator, ///< measured with code of another version of the compiler
  Default         ///< no record fits
};

/// "exact", "nearest shape", "same architecture", "other code generator",
/// "default".
SPARGEJIT_API const char *matchQualityName(MatchQuality quality);

/// Whether a call may measure configurations.
enum class TuneMode {
  Off,       ///< records, or the default
  OnFirstUse ///< where no record is Exact: measures once, outside of captures
};

/// The configuration of one call's attention kernel.
struct TuningInfo {
  MatchQuality quality = MatchQuality::Default;
  /// Of the sizes of the problem measured and the call's: the root of the
  /// summed squares of the base-2 logarithms of their ratios (heads, heads that
  /// share one key head, both lengths, density). 0 for Exact.
  double distance = 0;
  /// "k_stages=2, tile_q=128"; empty for Default.
  std::string config;
  /// Name of the problem that was measured; empty for Default.
  std::string problem;
};

} // namespace spargejit
