// SPDX-License-Identifier: Apache-2.0
//
// One readable function a target, in stages whose names are those of the dumps.
#pragma once

#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace mlir::sparge {

/// Stage "specialise": sizes, flags and element types fixed ("name=value").
void addSpecialisePasses(OpPassManager &passes,
                         const std::vector<std::string> &parameters);

/// Stage "tile" of the host: layouts chosen.
void addHostTilePasses(OpPassManager &passes);

/// Stage "lower" of the host: the llvm dialect. `dotColumns` as in
/// convert-tile-to-host.
void addHostLowerPasses(OpPassManager &passes, int64_t dotColumns);

/// Stage "lower" of sm_90a: the llvm and nvvm dialects. `everyLaneArrives` as
/// in convert-tile-to-nvvm.
void addNvvmLowerPasses(OpPassManager &passes, bool everyLaneArrives);

} // namespace mlir::sparge
