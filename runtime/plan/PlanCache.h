// SPDX-License-Identifier: Apache-2.0
//
// Method texts turned into MethodPlans, once per text: from memory, the store,
// or the code generator.
#pragma once

#include "runtime/base/MethodPlan.h"
#include "runtime/base/SingleFlight.h"
#include "runtime/cache/ArtifactStore.h"
#include "runtime/plan/MethodLibrary.h"

#include <functional>
#include <memory>
#include <string>

namespace spargejit::plan {

/// Thread-safe; single flight per text; failures are kept.
class PlanCache {
public:
  /// Parses a text: (text, file name for diagnostics).
  using PlanMethod = std::function<Result<MethodPlan>(const std::string &,
                                                      const std::string &)>;
  /// `generator`: the identity of what plans.
  explicit PlanCache(PlanMethod planMethod, cache::ArtifactStore store = {},
                     std::string generator = {})
      : planMethod_(std::move(planMethod)), store_(std::move(store)),
        generator_(std::move(generator)) {}

  Result<std::shared_ptr<const MethodPlan>> get(const MethodText &method);

private:
  Result<MethodPlan> make(const MethodText &method) const;

  PlanMethod planMethod_;
  cache::ArtifactStore store_;
  std::string generator_;
  SingleFlight<Digest, MethodPlan, DigestHash> plans_;
};

} // namespace spargejit::plan
