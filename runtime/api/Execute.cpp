// SPDX-License-Identifier: Apache-2.0
//
// Memory, arguments and launches of one call.
#include "runtime/api/Execute.h"

#include "runtime/plan/CallBinding.h"

#include <algorithm>
#include <array>

namespace spargejit::api {

namespace {

using ValueKind = PlanValue::Kind;

/// What a thread keeps from call to call.
struct CallFrame {
  plan::ValueTensors tensors, someHeads;
  std::vector<std::int64_t> slots, nextSlots;
};

void setLists(plan::ValueTensors &values, int value, const BlockLists &lists) {
  values.at(value, 0) = lists.indices.view();
  values.at(value, 1) = lists.counts.view();
}

/// Values by head in the form that kernels read: [batch, qHeads, 1].
TensorView spreadByHead(const TensorView &values,
                        const plan::AttentionProblem &problem) {
  const std::int64_t last =
      values.sizes[values.rank - 1] == 1 ? 0 : values.strides[values.rank - 1];
  const std::int64_t first = values.rank == 2 ? values.strides[0] : 0;
  TensorView view = values;
  view.rank = 3;
  view.sizes = {problem.batch, problem.qHeads, 1};
  view.strides = {first, last, 1};
  return view;
}

/// The call's tensor behind values of a kind, or null.
const TensorView *callersTensor(const CallTensors &tensors, ValueKind kind) {
  switch (kind) {
  case ValueKind::Query:
    return tensors.q;
  case ValueKind::Key:
    return tensors.k;
  case ValueKind::Value:
    return tensors.v;
  case ValueKind::Output:
    return tensors.o;
  case ValueKind::Lse:
    return tensors.lse;
  case ValueKind::DOutput:
    return tensors.dO;
  case ValueKind::DLse:
    return tensors.dLse;
  case ValueKind::DQuery:
    return tensors.dQ;
  case ValueKind::DKey:
    return tensors.dK;
  case ValueKind::DValue:
    return tensors.dV;
  case ValueKind::QuantisedQuery:
    return tensors.eightQ;
  case ValueKind::QuantisedKey:
    return tensors.eightK;
  case ValueKind::QuantisedValue:
    return tensors.eightV;
  case ValueKind::ValueScales:
    return tensors.vScales;
  case ValueKind::QueryFactors:
    return tensors.qFactors;
  case ValueKind::KeyFactors:
    return tensors.kFactors;
  default:
    return nullptr;
  }
}

/// Sets the tensors that are the caller's, and the lists that outlive the call.
void setCallerMemory(const MethodPlan &plan,
                     const plan::AttentionProblem &problem,
                     const CallTensors &tensors, const AttentionConfig &config,
                     const BlockLists *lists, plan::ValueTensors &values) {
  values.reset(plan);
  if (int attended = lists ? plan::attendedLists(plan) : -1; attended >= 0)
    setLists(values, attended, *lists);
  for (std::size_t i = 0; i < plan.values.size(); ++i) {
    const PlanValue &value = plan.values[i];
    const int number = static_cast<int>(i);
    if (const TensorView *view = callersTensor(tensors, value.kind)) {
      values.at(number) = *view;
    } else if (value.kind == ValueKind::CallerLists && tensors.lists) {
      setLists(values, number, *tensors.lists);
    } else if (value.kind == ValueKind::Scalar) {
      const std::optional<TensorView> &byHead =
          value.name == "top_k" ? config.topKByHead : config.topPByHead;
      if (byHead)
        values.at(number) = spreadByHead(*byHead, problem);
    }
  }
}

/// Takes the workspace and places in it what is not the caller's.
Result<Workspace> takeWorkspace(CallDevice &device, const MethodPlan &plan,
                                const plan::AttentionProblem &problem,
                                const AttentionConfig &config,
                                plan::ValueTensors &tensors) {
  auto bytes = plan::placeWorkspace(plan, problem, nullptr, tensors);
  if (!bytes.ok())
    return bytes.status();
  auto workspace = device.workspace(*bytes, config);
  if (!workspace.ok())
    return Status(workspace.status()).withContext("method " + plan.name);
  if (*bytes > 0)
    if (Status status =
            plan::placeWorkspace(plan, problem, workspace->base, tensors)
                .status();
        !status)
      return status;
  tensors.setCounters(workspace->counters);
  return workspace;
}

Status fillListsFromMask(CallDevice &device, const MethodPlan &plan,
                         const AttentionConfig &config,
                         const plan::ValueTensors &values) {
  Status status;
  for (std::size_t i = 0; i < plan.values.size() && status.ok(); ++i) {
    int value = static_cast<int>(i);
    if (plan.values[i].kind == ValueKind::CallerLists)
      status = device.listsFromMask(*config.blockMask, values.at(value, 0),
                                    values.at(value, 1), config);
  }
  return status;
}

/// A call that ends between its launches may leave counts that the launches to
/// come would have cleared. The failure is reported, whatever this meets.
void clearCounters(CallDevice &device, const Workspace &workspace) {
  static constexpr std::array<std::int32_t, kCounters> kZeros{};
  if (workspace.counters)
    static_cast<void>(device.write(
        kZeros.data(), workspace.counters,
        static_cast<std::int64_t>(kZeros.size() * sizeof(std::int32_t))));
}

/// Heads [first, first + count) of a tensor whose second dimension is heads.
TensorView headsOf(TensorView view, std::int64_t first, std::int64_t count) {
  if (view.data)
    view.data = static_cast<char *>(view.data) +
                first * view.strides[1] *
                    static_cast<std::int64_t>(dataTypeSize(view.dtype));
  view.sizes[1] = count;
  return view;
}

/// The call's tensors for its launches that keep gradients, of heads of k from
/// `first` on.
void narrowToHeads(const MethodPlan &plan, std::int64_t first,
                   const plan::AttentionProblem &problem,
                   const plan::ValueTensors &all, plan::ValueTensors &some) {
  const std::int64_t group = problem.qHeads / problem.kvHeads;
  const std::int64_t count =
      std::min(problem.keptHeads, problem.kvHeads - first);
  some = all;
  for (std::size_t i = 0; i < plan.values.size(); ++i) {
    const ValueKind kind = plan.values[i].kind;
    const int value = static_cast<int>(i);
    const bool isOfK = kind == ValueKind::Key || kind == ValueKind::Value ||
                       kind == ValueKind::DKey || kind == ValueKind::DValue;
    if (kind == ValueKind::Kept) {
      some.at(value).sizes[0] = problem.batch * count * group;
      continue;
    }
    for (int part : {0, 1})
      if (TensorView &view = some.at(value, part); view.data)
        view = isOfK ? headsOf(view, first, count)
                     : headsOf(view, first * group, count * group);
  }
}

CallFrame &callFrame() {
  static thread_local CallFrame frame;
  return frame;
}

} // namespace

Status execute(CallDevice &device, const PreparedPlan &prepared,
               const plan::AttentionProblem &problem,
               const CallTensors &tensors, const AttentionConfig &config,
               const BlockLists *lists) {
  CallFrame &frame = callFrame();
  const MethodPlan &plan = *prepared.plan;
  setCallerMemory(plan, problem, tensors, config, lists, frame.tensors);
  auto workspace = takeWorkspace(device, plan, problem, config, frame.tensors);
  if (!workspace.ok())
    return workspace.status();
  // A backward pass has the lists that the forward pass made of the mask.
  if (config.blockMask && !tensors.lists)
    if (Status status = fillListsFromMask(device, plan, config, frame.tensors);
        !status)
      return status;
  bool isNext = false;
  auto pack = [&](const PreparedLaunch &launch,
                  const plan::ValueTensors &values,
                  std::vector<std::int64_t> &slots) {
    const LaunchInfo &info = launch.kernel->launch();
    slots.resize(static_cast<std::size_t>(info.slotCount()));
    plan::packArguments(plan, info, launch.sources, problem, values,
                        slots.data());
    return slots.data();
  };
  const auto &launches = prepared.launches;
  auto run = [&](const PreparedLaunch &launch,
                 const plan::ValueTensors &values) {
    const std::int64_t *slots = pack(launch, values, frame.slots);
    const DeviceKernel &kernel = *launch.kernel;
    const PreparedLaunch *next = &launch + 1;
    const bool hasNext =
        next != launches.data() + launches.size() && kernel.leavesRoom();
    Status status = hasNext
                        ? kernel.runBeside(*next->kernel,
                                           pack(*next, values, frame.nextSlots),
                                           slots, config, isNext)
                        : kernel.run(slots, config, isNext);
    if (!status.ok() && isNext)
      clearCounters(device, *workspace);
    isNext = true;
    return status;
  };
  for (std::size_t i = 0; i < launches.size();) {
    std::size_t end = i;
    while (end < launches.size() && launches[end].keeps)
      ++end;
    if (end == i) {
      if (Status status = run(launches[i++], frame.tensors); !status)
        return status;
      continue;
    }
    // Some heads at a time, whose score gradients fit the workspace.
    for (std::int64_t head = 0; head < problem.kvHeads;
         head += problem.keptHeads) {
      narrowToHeads(plan, head, problem, frame.tensors, frame.someHeads);
      for (std::size_t j = i; j < end; ++j)
        if (Status status = run(launches[j], frame.someHeads); !status)
          return status;
    }
    i = end;
  }
  return Status();
}

Status reserve(CallDevice &device, const MethodPlan &plan,
               const plan::AttentionProblem &problem,
               const CallTensors &tensors, const AttentionConfig &config) {
  CallFrame &frame = callFrame();
  setCallerMemory(plan, problem, tensors, config, nullptr, frame.tensors);
  return takeWorkspace(device, plan, problem, config, frame.tensors).status();
}

Result<std::int64_t> workspaceBytes(const MethodPlan &plan,
                                    const plan::AttentionProblem &problem,
                                    const CallTensors &tensors,
                                    const AttentionConfig &config) {
  CallFrame &frame = callFrame();
  setCallerMemory(plan, problem, tensors, config, nullptr, frame.tensors);
  return plan::placeWorkspace(plan, problem, nullptr, frame.tensors);
}

} // namespace spargejit::api
