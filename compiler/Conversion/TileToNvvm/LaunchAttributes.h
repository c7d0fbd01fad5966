// SPDX-License-Identifier: Apache-2.0
//
// What convert-tile-to-nvvm says about a launch, as attributes on its
// llvm.func.
//
// The function's first parameter is the argument slots by value (int64 slots as
// in runtime/base/KernelSpec.h), the others are tensor maps, 128 bytes each, by
// value, in the order of `spargejit.tensor_maps`.
#pragma once

namespace mlir::sparge {

/// i64: threads of a CTA.
inline constexpr char kThreadsAttr[] = "spargejit.threads";
/// i64: dynamic shared memory of a CTA, bytes.
inline constexpr char kSharedBytesAttr[] = "spargejit.shared_bytes";
/// Array of [bytes a column, columns' multiple, argument slot]: shared memory
/// whose size follows from the call, beside `spargejit.shared_bytes`
/// (DynamicScratch in runtime/base/KernelSpec.h).
inline constexpr char kDynamicSharedAttr[] = "spargejit.dynamic_shared";
/// i64: CTAs that run a program together, as a cluster.
inline constexpr char kMembersAttr[] = "spargejit.members";
/// bool: launched with as many CTAs as run at once, not one a program.
inline constexpr char kPersistentAttr[] = "spargejit.persistent";
/// i64: of a persistent kernel, the most CTAs on a multiprocessor.
inline constexpr char kResidentCtasAttr[] = "spargejit.resident_ctas";
/// bool: may be launched before the launch before it has ended.
inline constexpr char kStartsEarlyAttr[] = "spargejit.starts_early";
/// i64: level of the assembler's optimiser, where it is not the default, 3.
inline constexpr char kAssemblerLevelAttr[] = "spargejit.assembler_level";
/// Array of [argument number, box rows, box columns, swizzle bytes]; the box is
/// 1 in all dimensions but the last two, and beyond the end zeros are read.
inline constexpr char kTensorMapsAttr[] = "spargejit.tensor_maps";

} // namespace mlir::sparge
