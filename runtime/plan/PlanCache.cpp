// SPDX-License-Identifier: Apache-2.0
//
// The plan cache.
#include "runtime/plan/PlanCache.h"

#include "runtime/base/CounterStore.h"
#include "runtime/base/Log.h"
#include "runtime/plan/StoredPlan.h"

namespace spargejit::plan {

Result<MethodPlan> PlanCache::make(const MethodText &method) const {
  const auto key = planKey(method.digest, generator_);
  if (auto entry = store_.find(key)) {
    auto plan = planOf(*entry);
    if (plan.ok())
      return plan;
    warnOnce("passed over a kept entry: " + plan.status().message());
  }
  Result<MethodPlan> plan = planMethod_(method.text, method.fileName);
  if (!plan.ok())
    return Status(plan.status())
        .withContext("while planning method " + method.name);
  countPlan();
  logFormatted(LogLevel::Debug, "planned method {}: {} launches", method.name,
               plan->launches.size());
  store_.keep(key, entryOf(*plan));
  return plan;
}

Result<std::shared_ptr<const MethodPlan>>
PlanCache::get(const MethodText &method) {
  using Outcome = Result<std::shared_ptr<const MethodPlan>>;
  return plans_.get(method.digest, [&]() -> Outcome {
    Result<MethodPlan> plan = make(method);
    if (!plan.ok())
      return plan.status();
    return std::make_shared<const MethodPlan>(*std::move(plan));
  });
}

Result<std::shared_ptr<const MethodPlan>>
PlanCache::get(const MethodText &method, PlanForm form) {
  if (form == PlanForm::AsWritten)
    return get(method);
  using Outcome = Result<std::shared_ptr<const MethodPlan>>;
  return forms_.get({method.digest, form}, [&]() -> Outcome {
    auto plan = get(method);
    if (!plan.ok() || (*plan)->isBackward())
      return plan;
    return std::make_shared<const MethodPlan>(withForm(**plan, form));
  });
}

} // namespace spargejit::plan
