// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the GPU tests, in PTX, with the parameters of ours: argument slots
// as one structure by value, then tensor maps.
#pragma once

#include "runtime/base/KernelSpec.h"

namespace spargejit::gpu {

/// add_one(x int32 [1, 1, n, 1]): each element += 1; programs of 128 elements.
LaunchInfo addOneInfo();
extern const char *const kAddOnePtx;

/// spin(x int32 [1, 1, 1, 1], nanoseconds): waits that long on the device, then
/// writes 1 to x. One program.
LaunchInfo spinInfo();
extern const char *const kSpinPtx;

/// copy_box(x bfloat16 rank 4, out bfloat16 [1, 1, 16, 64], batch, head, row):
/// loads the box of 16 rows x 64 columns at (batch, head, row, 0) of x through
/// a tensor map with a swizzle of 128 bytes, and writes shared memory to out as
/// it lies there. One program.
LaunchInfo copyBoxInfo();
extern const char *const kCopyBoxPtx;

/// fault(x int32 [1, 1, 1, 1]): reads address 16. One program.
LaunchInfo faultInfo();
extern const char *const kFaultPtx;

} // namespace spargejit::gpu
