// SPDX-License-Identifier: Apache-2.0
//
// Roles: which warps run which part of the kernel, and with how many registers.
//
//   if warpgroup == 0 { setmaxnreg; if warp == 0 {…} else if warp == 1 {…} … }
//   else              { setmaxnreg; … }
//
// Each role is one branch: ptxas gives up setmaxnreg where roles meet again.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"
#include "compiler/Dialect/Tile/TileSizes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::sparge;

static constexpr int64_t kWarpgroupThreads = 128, kWarpThreads = 32;

static int64_t warpsOf(tile::RoleOp role) {
  return *tile::getFixed(role.getWarps());
}
static int64_t warpgroupsOf(tile::RoleOp role) {
  return std::max<int64_t>(warpsOf(role) / 4, 1);
}

/// The kernel's roles, those that share a warpgroup together.
static SmallVector<SmallVector<tile::RoleOp>>
groupRoles(tile::KernelOp kernel) {
  SmallVector<SmallVector<tile::RoleOp>> groups;
  bool lastIsOneWarp = false;
  for (tile::RoleOp role : kernel.getBody().getOps<tile::RoleOp>()) {
    bool isOneWarp = warpsOf(role) == 1;
    if (!(isOneWarp && lastIsOneWarp))
      groups.emplace_back();
    groups.back().push_back(role);
    lastIsOneWarp = isOneWarp;
  }
  return groups;
}

int64_t NvvmEmitter::threads() {
  if (team_)
    return *tile::getFixed(team_.getWarps()) * kWarpThreads;
  int64_t warpgroups = 0;
  for (ArrayRef<tile::RoleOp> group : groupRoles(kernel_))
    warpgroups += warpgroupsOf(group.front());
  return warpgroups * kWarpgroupThreads;
}

LogicalResult NvvmEmitter::emitRoles() {
  SmallVector<SmallVector<tile::RoleOp>> groups = groupRoles(kernel_);
  if (groups.empty())
    return kernel_.emitOpError() << "expects a tile.role, got none";
  Location loc = kernel_.getLoc();
  p_.setLocation(loc);
  thread_ = NVVM::ThreadIdXOp::create(b_, loc, p_.i32());
  lane_ = p_.remainder(thread_, kWarpThreads);
  warp_ = p_.divide(p_.remainder(thread_, kWarpgroupThreads), kWarpThreads);
  auto sharedType = LLVM::LLVMPointerType::get(b_.getContext(), 3);
  Value address =
      LLVM::AddressOfOp::create(b_, loc, sharedType, "spargejit_shared");
  shared_ = LLVM::PtrToIntOp::create(b_, loc, p_.i32(), address);
  emitBarrierInit();
  Value warpgroup = p_.uniform(p_.divide(thread_, kWarpgroupThreads));
  return emitWarpgroups(groups, 0, warpgroup);
}

LogicalResult
NvvmEmitter::emitWarpgroups(ArrayRef<SmallVector<tile::RoleOp>> groups,
                            int64_t firstWarpgroup, Value warpgroup) {
  tile::RoleOp first = groups.front().front();
  int64_t next = firstWarpgroup + warpgroupsOf(first);
  auto body = [&]() -> LogicalResult {
    emitRegisterLimit(*tile::getFixed(first.getRegisters()));
    if (warpsOf(first) == 1)
      return emitOneWarpRoles(groups.front());
    return emitRole(first, p_.add(warpgroup, -firstWarpgroup));
  };
  if (groups.size() == 1)
    return body();
  OpBuilder::InsertionGuard guard(b_);
  p_.setLocation(first.getLoc());
  auto branch = scf::IfOp::create(b_, first.getLoc(),
                                  p_.less(warpgroup, p_.constant(next)),
                                  /*withElse=*/true);
  b_.setInsertionPointToStart(branch.thenBlock());
  if (failed(body()))
    return failure();
  b_.setInsertionPointToStart(branch.elseBlock());
  return emitWarpgroups(groups.drop_front(), next, warpgroup);
}

LogicalResult NvvmEmitter::emitOneWarpRoles(ArrayRef<tile::RoleOp> roles) {
  Value warp = p_.uniform(warp_);
  for (auto [index, entry] : llvm::enumerate(roles)) {
    tile::RoleOp role = entry;
    OpBuilder::InsertionGuard guard(b_);
    auto branch = scf::IfOp::create(
        b_, role.getLoc(), p_.equals(warp, static_cast<int64_t>(index)),
        /*withElse=*/false);
    b_.setInsertionPointToStart(branch.thenBlock());
    if (failed(emitRole(role, p_.constant(0))))
      return failure();
  }
  return success();
}

LogicalResult NvvmEmitter::emitRole(tile::RoleOp op, Value warpgroup) {
  p_.setLocation(op.getLoc());
  Value elected = NVVM::ElectSyncOp::create(b_, op.getLoc(), p_.i1(), Value());
  role_ = Role{warpsOf(op), elected, warpgroup};
  for (Operation &inner : op.getBody().front())
    if (failed(emitOp(&inner)))
      return failure();
  return success();
}

/// All threads start with what an even share of the registers gives.
void NvvmEmitter::emitRegisterLimit(int64_t registers) {
  constexpr int64_t kRegisters = 65536, kStep = 8, kMost = 255;
  int64_t start = std::min(kRegisters / threads() / kStep * kStep, kMost);
  if (registers == start || threads() == kWarpgroupThreads)
    return;
  auto action = registers < start ? NVVM::SetMaxRegisterAction::decrease
                                  : NVVM::SetMaxRegisterAction::increase;
  NVVM::SetMaxRegisterOp::create(b_, p_.location(),
                                 static_cast<uint32_t>(registers), action);
}
