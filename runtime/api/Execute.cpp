// SPDX-License-Identifier: Apache-2.0
//
// Memory, arguments and launches of one call.
#include "runtime/api/Execute.h"

#include "runtime/api/BlockListOps.h"
#include "runtime/backend/cpu/CpuBackend.h"
#include "runtime/base/AlignedMemory.h"
#include "runtime/plan/CallBinding.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

namespace spargejit::api {

namespace {

using ValueKind = PlanValue::Kind;

/// What a thread keeps from call to call.
struct CallFrame {
  plan::ValueTensors tensors;
  std::vector<std::int64_t> slots;
  GrowingMemory workspace;
};

void setLists(plan::ValueTensors &values, int value, const BlockLists &lists) {
  values.at(value, 0) = lists.indices.view();
  values.at(value, 1) = lists.counts.view();
}

/// Sets the tensors that are the caller's, and the lists that outlive the call.
void setCallerMemory(const MethodPlan &plan, const CallTensors &tensors,
                     const AttentionConfig &config, const BlockLists *lists,
                     plan::ValueTensors &values) {
  values.reset(plan);
  values.setAll(plan, ValueKind::Query, *tensors.q);
  values.setAll(plan, ValueKind::Key, *tensors.k);
  if (tensors.v)
    values.setAll(plan, ValueKind::Value, *tensors.v);
  if (tensors.o)
    values.setAll(plan, ValueKind::Output, *tensors.o);
  if (tensors.lse)
    values.setAll(plan, ValueKind::Lse, *tensors.lse);
  if (int attended = plan::attendedLists(plan); lists && attended >= 0)
    setLists(values, attended, *lists);
  if (config.lists)
    for (std::size_t i = 0; i < plan.values.size(); ++i)
      if (plan.values[i].kind == ValueKind::CallerLists)
        setLists(values, static_cast<int>(i), *config.lists);
}

Status takeWorkspace(const MethodPlan &plan,
                     const plan::AttentionProblem &problem, CallFrame &frame) {
  auto bytes = plan::placeWorkspace(plan, problem, nullptr, frame.tensors);
  if (!bytes.ok())
    return bytes.status();
  void *base = frame.workspace.require(*bytes);
  if (!base)
    return Status(ErrorCode::OutOfResources,
                  fmt::format("{} bytes of workspace for method {} cannot be "
                              "had",
                              *bytes, plan.name));
  return plan::placeWorkspace(plan, problem, base, frame.tensors).status();
}

void fillListsFromMask(const MethodPlan &plan, const AttentionConfig &config,
                       const plan::ValueTensors &values) {
  for (std::size_t i = 0; i < plan.values.size(); ++i) {
    int value = static_cast<int>(i);
    if (plan.values[i].kind == ValueKind::CallerLists)
      listsFromMask(*config.blockMask, values.at(value, 0), values.at(value, 1),
                    config.threads);
  }
}

} // namespace

Status execute(const PreparedPlan &prepared,
               const plan::AttentionProblem &problem,
               const CallTensors &tensors, const AttentionConfig &config,
               const BlockLists *lists) {
  static thread_local CallFrame frame;
  const MethodPlan &plan = *prepared.plan;
  setCallerMemory(plan, tensors, config, lists, frame.tensors);
  if (Status status = takeWorkspace(plan, problem, frame); !status.ok())
    return status;
  if (config.blockMask)
    fillListsFromMask(plan, config, frame.tensors);
  for (const PreparedLaunch &launch : prepared.launches) {
    const LaunchInfo &info = launch.kernel->launch;
    frame.slots.resize(static_cast<std::size_t>(info.slotCount()));
    plan::packArguments(plan, info, launch.sources, problem, frame.tensors,
                        frame.slots.data());
    Status status = cpu::runLaunch(info, launch.kernel->function,
                                   frame.slots.data(), config.threads);
    if (!status.ok())
      return status;
  }
  return Status();
}

void writeEmptyRows(const CallTensors &tensors) {
  const TensorView &o = *tensors.o;
  const std::size_t element = dataTypeSize(o.dtype);
  const auto rowBytes = static_cast<std::size_t>(o.sizes[3]) * element;
  for (std::int64_t b = 0; b < o.sizes[0]; ++b)
    for (std::int64_t h = 0; h < o.sizes[1]; ++h)
      for (std::int64_t i = 0; i < o.sizes[2]; ++i) {
        std::int64_t row =
            b * o.strides[0] + h * o.strides[1] + i * o.strides[2];
        // All-zero bytes are 0 in every floating-point type.
        std::memset(static_cast<char *>(o.data) +
                        row * static_cast<std::int64_t>(element),
                    0, rowBytes);
        if (const TensorView *lse = tensors.lse)
          static_cast<float *>(
              lse->data)[b * lse->strides[0] + h * lse->strides[1] +
                         i * lse->strides[2]] =
              -std::numeric_limits<float>::infinity();
      }
}

} // namespace spargejit::api
