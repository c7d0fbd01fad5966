// SPDX-License-Identifier: Apache-2.0
//
// Attention in eight bits: the launches of a method with q, k and v rounded
// before it attends. A property of a call and not of a method, so that every
// method has it, and kept plans and packs serve it as they are.
#pragma once

#include "runtime/base/MethodPlan.h"

#include <cstdint>

namespace spargejit::plan {

/// What the attention of a plan reads.
enum class PlanForm : std::uint8_t {
  AsWritten, ///< q, k and v as they are
  Rounding,  ///< q, k and v in eight bits, which launches before it make
  EightBits  ///< q, k and v in eight bits, which come with the call
};

/// `plan`, a forward pass, in another form than AsWritten. The launches that
/// round stand first: factors from a sample of the rows, rounded tensors, and
/// again what those factors were too large for
/// (kernels_ir/kernels/*/quantise*.mlir). Selection sees the tensors before
/// they are rounded; the means that it starts from come of the same reading, in
/// place of a launch `pool` for both. (It waits for all that is rounded, and
/// not head by head for what is pooled: it could end before v is rounded, and
/// let the attention behind it start.)
MethodPlan withForm(const MethodPlan &plan, PlanForm form);

/// The launches that round alone.
MethodPlan roundingPlan();

} // namespace spargejit::plan
