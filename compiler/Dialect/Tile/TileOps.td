// SPDX-License-Identifier: Apache-2.0
//
// All ops of the tile dialect, by topic.
#ifndef SPARGEJIT_TILE_OPS_TD
#define SPARGEJIT_TILE_OPS_TD

include "compiler/Dialect/Tile/TileKernelOps.td"
include "compiler/Dialect/Tile/TileMemoryOps.td"
include "compiler/Dialect/Tile/TileComputeOps.td"
include "compiler/Dialect/Tile/TileAsyncRoles.td"
include "compiler/Dialect/Tile/TileAsyncRings.td"
include "compiler/Dialect/Tile/TileAsyncCopies.td"
include "compiler/Dialect/Tile/TileAsyncDots.td"
include "compiler/Dialect/Tile/TileStacks.td"
include "compiler/Dialect/Tile/TileTeams.td"
include "compiler/Dialect/Tile/TileRows.td"
include "compiler/Dialect/Tile/TileNarrow.td"

#endif
