// SPDX-License-Identifier: Apache-2.0
//
// list_blocks of kernels_ir.
#include "runtime/plan/MaskLists.h"

#include "runtime/plan/DefaultTuning.h"

#include <bit>

namespace spargejit::plan {

KernelSpec maskListsSpec(const Target &target) {
  // The kernel has no head dimension; any will do.
  const ProblemClass kind{DataType::BFloat16, 128, 128, 64, false};
  const auto tuning = defaultTuning(kind, target, false);
  KernelSpec spec;
  spec.kernel = "list_blocks";
  spec.target = target;
  for (const char *name : {"list_run", "list_rows", "list_warps", "list_ctas"})
    if (auto it = tuning.find(name); it != tuning.end())
      spec.parameters[it->first] = it->second;
  return spec;
}

std::array<std::int64_t, 25> packMaskLists(const TensorView &mask,
                                           const TensorView &indices,
                                           const TensorView &counts) {
  std::array<std::int64_t, 25> slots{};
  std::size_t at = 0;
  for (const TensorView *view : {&mask, &indices, &counts}) {
    slots[at++] = std::bit_cast<std::int64_t>(view->data);
    for (const auto *numbers : {&view->sizes, &view->strides})
      for (int i = 0; i < view->rank; ++i)
        slots[at++] = (*numbers)[static_cast<std::size_t>(i)];
  }
  return slots;
}

} // namespace spargejit::plan
