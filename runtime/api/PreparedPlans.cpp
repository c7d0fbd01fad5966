// SPDX-License-Identifier: Apache-2.0
//
// From a plan to loaded kernels.
#include "runtime/api/PreparedPlans.h"

#include "runtime/base/CounterStore.h"
#include "runtime/base/Log.h"
#include "runtime/jit/CustomStage.h"

namespace spargejit::api {

namespace {

Result<std::shared_ptr<const jit::KernelText>>
textOf(CallDevice &device, const PlanLaunch &launch,
       const AttentionConfig &config) {
  if (!launch.isCustom())
    return device.text(launch.kernel);
  return std::make_shared<const jit::KernelText>(
      jit::customText(launch, config.customSource));
}

/// A record is advice: its configuration may be one that this build's code
/// generator makes nothing of, or that no pack has.
bool mayUseDefault(const Status &status) {
  return status.code() == ErrorCode::CompileFailed ||
         status.code() == ErrorCode::OutOfResources ||
         status.code() == ErrorCode::ArtifactMissing;
}

} // namespace

std::size_t PreparedPlans::KeyHash::operator()(const Key &key) const {
  auto hash =
      static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(key.plan));
  for (std::int64_t part :
       {static_cast<std::int64_t>(key.kind.dtype), key.kind.headDim,
        key.kind.maskBlockQ, key.kind.maskBlockKv,
        static_cast<std::int64_t>(key.kind.causal),
        static_cast<std::int64_t>(key.kind.rows),
        static_cast<std::int64_t>(key.kind.hasDense),
        static_cast<std::int64_t>(key.kind.precision),
        static_cast<std::int64_t>(key.scope),
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(key.tuned))})
    // The odd number is 2^64 over the golden ratio, which spreads small parts.
    hash = (hash ^ static_cast<std::size_t>(part)) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32) ^ DigestHash()(key.customSource);
}

Result<PreparedLaunch>
PreparedPlans::prepareLaunch(const MethodPlan &plan, const PlanLaunch &launch,
                             const plan::ProblemClass &kind,
                             const AttentionConfig &config,
                             const Configs::mapped_type *tuned) {
  auto text = textOf(device_, launch, config);
  if (!text.ok())
    return text.status();
  auto spec = plan::specialiseLaunch(plan, launch, kind, device_.target(),
                                     (*text)->parameters);
  if (!spec.ok())
    return spec.status();
  // What the kernel does not declare means nothing to it.
  for (const auto *values : {tuned, &(*text)->tuning})
    for (const auto &[name, value] : values ? *values : Configs::mapped_type())
      if (auto it = spec->parameters.find(name); it != spec->parameters.end())
        it->second = value;
  auto kernel = launch.isCustom() ? device_.loadCustom(*spec, **text)
                                  : device_.load(*spec, **text);
  if (!kernel.ok())
    return kernel.status();
  auto sources = plan::bindArguments(plan, launch, (*kernel)->launch());
  if (!sources.ok())
    return sources.status();
  return PreparedLaunch{*kernel, *std::move(sources),
                        plan::keepsGradients(plan, launch)};
}

Result<PreparedLaunch>
PreparedPlans::prepareTuned(const MethodPlan &plan, const PlanLaunch &launch,
                            const plan::ProblemClass &kind,
                            const AttentionConfig &config,
                            const Configs *tuned) {
  const Configs::mapped_type *values = nullptr;
  // Records are of kernels that keep nothing, and have that memory as well.
  if (tuned && !plan::hasPlaces(plan, launch))
    if (auto it = tuned->find(launch.kernel); it != tuned->end())
      values = &it->second;
  auto ready = prepareLaunch(plan, launch, kind, config, values);
  if (ready.ok() || !values || !mayUseDefault(ready.status()))
    return ready;
  auto byDefault = prepareLaunch(plan, launch, kind, config, nullptr);
  if (byDefault.ok())
    warnOnce("the configuration that tuning records advise cannot be used, the "
             "default is: " +
             ready.status().message());
  return byDefault;
}

Result<std::shared_ptr<const PreparedPlan>>
PreparedPlans::get(const std::shared_ptr<const MethodPlan> &plan,
                   const plan::ProblemClass &kind, PlanScope scope,
                   const AttentionConfig &config, const Configs *tuned) {
  const Key key{plan.get(), kind, scope, tuned,
                plan->takesCustomSource() ? hashText(config.customSource)
                                          : Digest()};
  if (const auto *kept = prepared_.find(key)) {
    if (kept->ok())
      countKernelCacheHits(
          static_cast<std::int64_t>((**kept)->launches.size()));
    return *kept;
  }
  if (Status status = device_.mayPrepare(config); !status)
    return status;
  return prepared_.get(key,
                       [&] { return make(plan, kind, scope, config, tuned); });
}

Result<std::shared_ptr<const PreparedPlan>>
PreparedPlans::make(const std::shared_ptr<const MethodPlan> &plan,
                    const plan::ProblemClass &kind, PlanScope scope,
                    const AttentionConfig &config, const Configs *tuned) {
  PreparedPlan prepared{plan, {}};
  for (const PlanLaunch &launch : plan->launches) {
    if (scope == PlanScope::SelectionOnly && !plan::isSelection(*plan, launch))
      continue;
    auto ready = prepareTuned(*plan, launch, kind, config, tuned);
    if (!ready.ok())
      return ready.status();
    // Nobody would wait for rows that are selected, and set the counters back.
    if (scope == PlanScope::SelectionOnly)
      for (plan::ArgumentSource &source : ready->sources)
        if (source.kind == plan::ArgumentSource::Kind::Progress &&
            source.part == 1)
          source = {};
    prepared.launches.push_back(*std::move(ready));
  }
  return std::make_shared<const PreparedPlan>(std::move(prepared));
}

} // namespace spargejit::api
