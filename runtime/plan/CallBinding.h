// SPDX-License-Identifier: Apache-2.0
//
// One call's memory: places what lies between launches in a workspace, and
// writes the argument slots of each launch. Runs on every call; allocates
// nothing.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "runtime/base/MethodPlan.h"
#include "runtime/plan/AttentionProblem.h"
#include "runtime/plan/Planner.h"
#include "spargejit/tensor.h"

#include <cstdint>
#include <vector>

namespace spargejit::plan {

/// The tensors behind MethodPlan::values: part `part` of value `value` is
/// tensors[2·value + part]. A tensor with null data is absent. A scalar has one
/// where the call brings its values by head: float32 [batch, qHeads, 1].
class ValueTensors {
public:
  /// Heads of all batches that "progress" and "selected" have a counter for.
  static constexpr std::int64_t kMostHeads = kProgressCounters / 2;

  /// Makes room for the plan's values, all absent.
  void reset(const MethodPlan &plan) {
    tensors_.assign(2 * plan.values.size(), TensorView());
    tickets_ = {};
    progress_ = {};
  }
  /// kCounters counters of the device (KernelSpec.h); null for none.
  void setCounters(void *counters) {
    if (!counters)
      return;
    auto *first = static_cast<std::int32_t *>(counters);
    for (std::int64_t i = 0; i < kTicketCounters; ++i)
      tickets_[static_cast<std::size_t>(i)] = countersAt(first + i, 1);
    for (std::int64_t i = 0; i < 2; ++i)
      progress_[static_cast<std::size_t>(i)] = countersAt(
          first + kFirstProgressCounter + i * kMostHeads, kMostHeads);
  }
  /// Of counter number `counter` < kTicketCounters.
  const TensorView &tickets(int counter) const {
    return tickets_[static_cast<std::size_t>(counter)];
  }
  /// The counters "progress" (0) or "selected" (1), kMostHeads each.
  const TensorView &progress(int part) const {
    return progress_[static_cast<std::size_t>(part)];
  }
  TensorView &at(int value, int part = 0) {
    return tensors_[static_cast<std::size_t>(2 * value + part)];
  }
  const TensorView &at(int value, int part = 0) const {
    return tensors_[static_cast<std::size_t>(2 * value + part)];
  }

private:
  // TensorView::contiguous() takes its sizes from the heap.
  static TensorView countersAt(std::int32_t *first, std::int64_t count) {
    TensorView view;
    view.data = first;
    view.dtype = DataType::Int32;
    view.rank = 1;
    view.sizes[0] = count;
    view.strides[0] = 1;
    return view;
  }

  std::vector<TensorView> tensors_;
  std::array<TensorView, kTicketCounters> tickets_;
  std::array<TensorView, 2> progress_;
};

/// Sizes of v in eight bits: on the CPU those of v; on a GPU [batch, kvHeads,
/// cores, 128], the core matrices of eight channels and sixteen keys, those of
/// eight rows of ones behind each sixteen keys'.
std::array<std::int64_t, TensorView::kMaxRank>
quantisedValueSizes(const AttentionProblem &problem);

/// Gives every pooled tensor, block list, delta and tensor of eight bits, with
/// what belongs to it, that is still absent its
/// place after `base`, each 64-byte aligned, and returns the bytes that all of
/// them take. With a null `base` only the sum is formed. OutOfResources when it
/// does not fit 63 bits.
Result<std::int64_t> placeWorkspace(const MethodPlan &plan,
                                    const AttentionProblem &problem, void *base,
                                    ValueTensors &tensors);

/// Writes info.slotCount() slots.
void packArguments(const MethodPlan &plan, const LaunchInfo &info,
                   const std::vector<ArgumentSource> &sources,
                   const AttentionProblem &problem, const ValueTensors &tensors,
                   std::int64_t *slots);

} // namespace spargejit::plan
