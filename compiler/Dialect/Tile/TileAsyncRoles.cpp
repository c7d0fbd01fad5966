// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of TileAsyncRoles.td.
#include "compiler/Dialect/Tile/TileAsync.h"
#include "compiler/Dialect/Tile/TileSizes.h"

using namespace mlir;
using namespace mlir::tile;

/// Registers of an SM for each of the 128 threads of a warpgroup's place.
static constexpr int64_t kRegistersPerThreadNumber = 65536 / 128;

/// C4 and C5 for all roles of the kernel around `first`, its first role.
static LogicalResult verifyWarpgroups(RoleOp first) {
  int64_t registers = 0, sharing = 0;
  RoleOp previous;
  for (RoleOp role : first->getBlock()->getOps<RoleOp>()) {
    std::optional<int64_t> warps = getFixed(role.getWarps());
    std::optional<int64_t> own = getFixed(role.getRegisters());
    if (!warps || !own)
      return success();
    sharing = *warps == 1 ? sharing + 1 : 0;
    if (sharing > 4) // C4
      return role.emitOpError()
             << "expects at most four one-warp roles in a row, got one more";
    if (sharing > 1 && previous.getRegisters() != role.getRegisters()) // C4
      return role.emitOpError()
             << "expects the registers of the one-warp role before it, got "
             << *own;
    if (sharing <= 1)
      registers += *own * std::max<int64_t>(*warps / 4, 1);
    previous = role;
  }
  if (registers > kRegistersPerThreadNumber) // C5
    return first.emitOpError()
           << "expects at most " << kRegistersPerThreadNumber
           << " registers over all warpgroups' threads, got " << registers;
  return success();
}

LogicalResult RoleOp::verify() {
  if (!isa_and_present<KernelOp>((*this)->getParentOp())) // C1
    return emitOpError() << "expects to stand directly in a tile.kernel, got "
                            "another op around it";
  if (std::optional<int64_t> warps = getFixed(getWarps());
      warps && *warps != 1 && (*warps <= 0 || *warps % 4 != 0)) // C2
    return emitOpError() << "expects 1 warp or a multiple of 4, got " << *warps;
  if (std::optional<int64_t> registers = getFixed(getRegisters());
      registers &&
      (*registers < 24 || *registers > 256 || *registers % 8 != 0)) // C3
    return emitOpError()
           << "expects a multiple of 8 registers from 24 to 256, got "
           << *registers;
  if (*(*this)->getBlock()->getOps<RoleOp>().begin() == *this)
    return verifyWarpgroups(*this); // C4, C5
  return success();
}

LogicalResult TakeTurnOp::verify() {
  if (failed(verifyInWarpgroupRole(*this))) // C1
    return failure();
  auto own = (*this)->getParentOfType<RoleOp>();
  WalkResult others = own->getParentOp()->walk([&](TakeTurnOp other) {
    return other->getParentOfType<RoleOp>() == own ? WalkResult::advance()
                                                   : WalkResult::interrupt();
  });
  if (others.wasInterrupted()) // C2
    return emitOpError()
           << "expects turns in one role, got them in another too";
  return success();
}

LogicalResult PassTurnOp::verify() {
  return verifyInWarpgroupRole(*this); // C1
}

LogicalResult NextProgramOp::verify() {
  GlobalType counter = getCounter().getType();
  if (counter.getRank() != 1 || !counter.getElementType().isInteger(32) ||
      !isa<BlockArgument>(getCounter())) // C1
    return emitOpError()
           << "expects a kernel's argument of rank 1 and i32, got " << counter;
  return verifyInOneWarpRole(*this); // C2
}

LogicalResult NthLargestOp::verify() {
  ViewType view = getView().getType();
  if (view.getRank() != 1 || !view.getElementType().isInteger(32)) // C1
    return emitOpError() << "expects a view of rank 1 and i32, got " << view;
  return verifyInOneWarpRole(*this); // C2
}
