// SPDX-License-Identifier: Apache-2.0
//
// Matching of records.
#include "autotune/db/TuningDb.h"

#include "autotune/db/RecordFile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

namespace spargejit::autotune {

namespace {

/// What decides which configurations are right at all.
bool isSameClass(const ProblemShape &a, const ProblemShape &b) {
  auto parts = [](const ProblemShape &problem) {
    return std::tuple(problem.dtype, problem.headDim, problem.maskBlockQ,
                      problem.maskBlockKv, problem.causal, problem.density < 1);
  };
  return parts(a) == parts(b);
}

/// Whether a record says anything about the kernel on the environment's target.
bool fits(const TuningRecord &record, const std::string &kernel,
          const ProblemShape &problem, const TuningEnvironment &environment) {
  return record.kernel == kernel &&
         record.environment.target == environment.target &&
         record.environment.kernelText == environment.kernelText &&
         isSameClass(record.problem, problem);
}

MatchQuality qualityOf(const TuningRecord &record, const ProblemShape &problem,
                       const TuningEnvironment &environment) {
  const TuningEnvironment &made = record.environment;
  if (!environment.generator.empty() && made.generator != environment.generator)
    return MatchQuality::OtherGenerator;
  if (made.device != environment.device)
    return MatchQuality::SameArch;
  return isSameProblem(record.problem, problem) ? MatchQuality::Exact
                                                : MatchQuality::NearestShape;
}

} // namespace

double problemDistance(const ProblemShape &a, const ProblemShape &b) {
  auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const std::array<std::pair<double, double>, 5> sizes = {
      {{number(a.batch * a.qHeads), number(b.batch * b.qHeads)},
       // Query heads that share one key head.
       {number(a.qHeads) / number(a.kvHeads),
        number(b.qHeads) / number(b.kvHeads)},
       {number(a.qLen), number(b.qLen)},
       {number(a.kvLen), number(b.kvLen)},
       {a.density, b.density}}};
  double sum = 0;
  for (const auto &[left, right] : sizes)
    sum += std::pow(std::log2(left / right), 2);
  return std::sqrt(sum);
}

TuningDb::TuningDb(std::vector<TuningRecord> records)
    : best_(bestRecords(mergeRecords(std::move(records)))) {}

TuningMatch TuningDb::find(const std::string &kernel,
                           const ProblemShape &problem,
                           const TuningEnvironment &environment) const {
  TuningMatch match;
  const TuningRecord *chosen = nullptr;
  for (const TuningRecord &record : best_) {
    if (!fits(record, kernel, problem, environment))
      continue;
    const double distance = problemDistance(record.problem, problem);
    const MatchQuality quality = qualityOf(record, problem, environment);
    if (chosen &&
        std::tie(match.quality, match.distance) <= std::tie(quality, distance))
      continue;
    chosen = &record;
    match.quality = quality;
    match.distance = distance;
  }
  if (chosen) {
    match.config = chosen->config;
    match.problem = chosen->problem;
  }
  return match;
}

std::vector<std::map<std::string, std::int64_t>>
TuningDb::configsOfClass(const std::string &kernel, const ProblemShape &problem,
                         const TuningEnvironment &environment) const {
  std::vector<std::map<std::string, std::int64_t>> configs;
  for (const TuningRecord &record : best_)
    if (fits(record, kernel, problem, environment) &&
        std::find(configs.begin(), configs.end(), record.config) ==
            configs.end())
      configs.push_back(record.config);
  return configs;
}

} // namespace spargejit::autotune

namespace spargejit {

const char *matchQualityName(MatchQuality quality) {
  switch (quality) {
  case MatchQuality::Exact:
    return "exact";
  case MatchQuality::NearestShape:
    return "nearest shape";
  case MatchQuality::SameArch:
    return "same architecture";
  case MatchQuality::OtherGenerator:
    return "other code generator";
  case MatchQuality::Default:
    break;
  }
  return "default";
}

} // namespace spargejit
