// SPDX-License-Identifier: Apache-2.0
//
// The plan cache.
#include "runtime/plan/PlanCache.h"

#include "runtime/base/CounterStore.h"
#include "runtime/base/Log.h"

namespace spargejit::plan {

Result<std::shared_ptr<const MethodPlan>>
PlanCache::get(const MethodText &method) {
  using Outcome = Result<std::shared_ptr<const MethodPlan>>;
  return plans_.get(method.digest, [&]() -> Outcome {
    Result<MethodPlan> plan = planMethod_(method.text, method.fileName);
    if (!plan.ok())
      return Status(plan.status())
          .withContext("while planning method " + method.name);
    countPlan();
    logFormatted(LogLevel::Debug, "planned method {}: {} launches", method.name,
                 plan->launches.size());
    return std::make_shared<const MethodPlan>(*std::move(plan));
  });
}

} // namespace spargejit::plan
