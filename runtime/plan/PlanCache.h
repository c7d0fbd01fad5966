// SPDX-License-Identifier: Apache-2.0
//
// Method texts turned into MethodPlans, once per text.
#pragma once

#include "runtime/base/MethodPlan.h"
#include "runtime/base/SingleFlight.h"
#include "runtime/plan/MethodLibrary.h"

#include <functional>
#include <memory>

namespace spargejit::plan {

/// Thread-safe; single flight per text; failures are kept.
class PlanCache {
public:
  /// Parses a text: (text, file name for diagnostics).
  using PlanMethod = std::function<Result<MethodPlan>(const std::string &,
                                                      const std::string &)>;
  explicit PlanCache(PlanMethod planMethod)
      : planMethod_(std::move(planMethod)) {}

  Result<std::shared_ptr<const MethodPlan>> get(const MethodText &method);

private:
  PlanMethod planMethod_;
  SingleFlight<Digest, MethodPlan, DigestHash> plans_;
};

} // namespace spargejit::plan
