// SPDX-License-Identifier: Apache-2.0
//
// Checks that the verifiers of several TileAsync*.td share.
#pragma once

#include "compiler/Dialect/Tile/TileDialect.h"

namespace mlir::tile {

/// `op` stands in a tile.role of one warp.
LogicalResult verifyInOneWarpRole(Operation *op);

/// `op` stands in a tile.role of warpgroups.
LogicalResult verifyInWarpgroupRole(Operation *op);

/// The type's own constraints, which specialising it may have broken.
LogicalResult verifyShared(Operation *op, SharedType type);

} // namespace mlir::tile
