// SPDX-License-Identifier: Apache-2.0
//
// Which configuration do the records advise for a problem, and how sure is
// that?
#pragma once

#include "autotune/db/TuningRecord.h"
#include "spargejit/tuning.h"

#include <map>
#include <string>
#include <vector>

namespace spargejit::autotune {

struct TuningMatch {
  MatchQuality quality = MatchQuality::Default;
  /// Empty for Default.
  std::map<std::string, std::int64_t> config;
  /// Of the sizes of the problem found: the root of the summed squares of the
  /// base-2 logarithms of their ratios. 0 for Exact.
  double distance = 0;
  /// The problem found.
  ProblemShape problem;
};

/// Distance of two problems of one class, by heads, lengths and density, each
/// on a logarithmic scale of its own: twice as long is as far as half as dense.
double problemDistance(const ProblemShape &a, const ProblemShape &b);

/// Thread-safe once it is made.
class TuningDb {
public:
  explicit TuningDb(std::vector<TuningRecord> records);

  /// Where only the driver or the assembler differ, a record still fits. Of
  /// another kernel text none does. Those of another code generator come after
  /// all others (README.md says why they come at all); an environment without
  /// one (a build without the compiler) takes all as its own. Classes of
  /// problems (dtype, head dimension, mask block, causal, dense or sparse) are
  /// never mixed. Of equals, the first record.
  TuningMatch find(const std::string &kernel, const ProblemShape &problem,
                   const TuningEnvironment &environment) const;

  /// The configurations of all records that find() may choose for problems of
  /// the class of `problem`, whatever their sizes and devices, each once.
  std::vector<std::map<std::string, std::int64_t>>
  configsOfClass(const std::string &kernel, const ProblemShape &problem,
                 const TuningEnvironment &environment) const;

  std::size_t size() const { return best_.size(); }

private:
  std::vector<TuningRecord> best_;
};

} // namespace spargejit::autotune
