// SPDX-License-Identifier: Apache-2.0
//
// What calls have to do with tuning: which record they follow, and the search
// that AttentionConfig::tune asks for.
#include "autotune/db/RecordFile.h"
#include "autotune/db/ShippedRecords.h"
#include "runtime/api/Engine.h"
#include "runtime/api/tune/FirstUse.h"
#include "runtime/base/Log.h"
#include "runtime/cache/FileIo.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/TunedProblem.h"

#include <fmt/format.h>

namespace spargejit::api {

namespace {

/// "2x12x32760x128 on 12x32760, 128x64, 0.05".
std::string problemName(const autotune::ProblemShape &problem) {
  return fmt::format(
      "{}x{}x{}x{} on {}x{}, {}, {}x{}{}, {:g}", problem.batch, problem.qHeads,
      problem.qLen, problem.headDim, problem.kvHeads, problem.kvLen,
      dataTypeName(problem.dtype), problem.maskBlockQ, problem.maskBlockKv,
      problem.causal ? ", causal" : "", problem.density);
}

/// The kernel that attends, the one with a tuning space.
std::string attentionKernel(const MethodPlan &plan) {
  for (const PlanLaunch &launch : plan.launches)
    if (!plan::isSelection(plan, launch))
      return launch.kernel;
  return "";
}

/// Leaves the record to later processes.
void keepRecord(const Environment &settings,
                const autotune::TuningRecord &record) {
  const std::string path = autotune::keptRecordsFile(settings);
  if (path.empty())
    return;
  Status status;
  if (int error = cache::makeFolders(settings.cacheFolder); error != 0)
    status = Status(ErrorCode::IoError,
                    settings.cacheFolder + ": " + cache::errorText(error));
  else
    status = autotune::appendRecords(path, {record});
  if (!status.ok())
    warnOnce("the tuning record cannot be kept: " + status.message());
}

} // namespace

Result<TuningInfo> Engine::tuningOf(const TensorView &q, const TensorView &k,
                                    const TensorView &v,
                                    const AttentionConfig &config) {
  auto call = begin({&q, &k, &v, nullptr, nullptr}, config, MemoryUse::Ignored);
  if (!call.ok())
    return call.status();
  auto plan = findPlan(*call);
  if (!plan.ok())
    return plan.status();
  TuningInfo info;
  for (const PlanLaunch &launch : (*plan)->launches) {
    if (plan::isSelection(**plan, launch))
      continue;
    const autotune::TuningMatch match = call->entry.tuning->match(
        launch.kernel, plan::tunedProblem(**plan, call->problem, config));
    info.quality = match.quality;
    info.distance = match.distance;
    info.problem = match.problem.name;
    info.config = autotune::describeConfig(match.config);
  }
  return info;
}

Result<autotune::TuningEnvironment>
Engine::tuningEnvironment(Device device, const std::string &kernel) {
  auto entry = devices_.find(device);
  if (!entry.ok())
    return entry.status();
  autotune::TuningEnvironment environment =
      (*entry)->tuning->environmentOf(kernel);
  if (environment.kernelText.empty())
    return Status(
        ErrorCode::Unsupported,
        fmt::format("there is no {} for {}", kernel, environment.target));
  return environment;
}

void Engine::tuneOnFirstUse(const Call &call, const Plan &plan) {
  autotune::TuningTable &table = *call.entry.tuning;
  const std::string kernel = attentionKernel(*plan);
  autotune::ProblemShape problem =
      plan::tunedProblem(*plan, call.problem, call.config);
  if (table.match(kernel, problem).quality == MatchQuality::Exact ||
      !call.device().mayPrepare(call.config).ok())
    return;
  problem.name = problemName(problem);
  const Device device = call.problem.device;
  using Outcome = Result<std::shared_ptr<const autotune::TuningRecord>>;
  auto record = searches_.get(
      fmt::format("{} {} {}: {}", static_cast<int>(device.kind), device.ordinal,
                  kernel, problem.name),
      [&]() -> Outcome {
        auto environment = tuningEnvironment(device, kernel);
        if (!environment.ok())
          return environment.status();
        logFormatted(LogLevel::Info, "tuning {} for {}", kernel, problem.name);
        auto found = tuneForFirstUse({generator_,
                                      texts_,
                                      settings_,
                                      *this,
                                      device,
                                      *environment,
                                      kernel,
                                      {},
                                      call.config.threads,
                                      1},
                                     problem);
        if (!found.ok())
          return found.status();
        // Of this very problem, so that no later call searches again.
        table.add(*found);
        keepRecord(settings_, *found);
        return std::make_shared<const autotune::TuningRecord>(
            *std::move(found));
      });
  if (!record.ok())
    warnOnce(fmt::format("{} was not tuned for {}: {}", kernel, problem.name,
                         record.status().message()));
}

} // namespace spargejit::api
