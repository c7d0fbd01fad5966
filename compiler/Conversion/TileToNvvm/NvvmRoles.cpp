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
static constexpr int64_t kRegisters = 65536; // of a multiprocessor

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

/// What a CTA does not start with no role can take: setmaxnreg would wait for
/// it forever.
LogicalResult NvvmEmitter::verifyRegisters() {
  int64_t wanted = 0, warpgroups = threads() / kWarpgroupThreads;
  for (ArrayRef<tile::RoleOp> group : groupRoles(kernel_)) {
    tile::RoleOp role = group.front();
    wanted += *tile::getFixed(role.getRegisters()) * warpgroupsOf(role);
  }
  int64_t given = startRegisters() * warpgroups;
  if (warpgroups > 1 && wanted > given)
    return kernel_.emitOpError()
           << "expects roles to take at most the " << given
           << " registers that its warpgroups start with, got " << wanted;
  return success();
}

LogicalResult NvvmEmitter::emitRoles() {
  SmallVector<SmallVector<tile::RoleOp>> groups = groupRoles(kernel_);
  if (groups.empty())
    return kernel_.emitOpError() << "expects a tile.role, got none";
  if (failed(verifyRegisters()))
    return failure();
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
  // Warpgroup 0's first turn comes from the last; the pass of the last turn is
  // taken at the end, so that no barrier is left with arrivals.
  bool takesTurns = warpsOf(op) > 4 && op.walk([](tile::TakeTurnOp) {
                                           return WalkResult::interrupt();
                                         }).wasInterrupted();
  auto onlyIn = [&](int64_t number, function_ref<void()> body) {
    auto branch =
        scf::IfOp::create(b_, op.getLoc(), p_.equals(warpgroup, number),
                          /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(branch.thenBlock());
    body();
  };
  if (takesTurns)
    onlyIn(warpgroupsOf(op) - 1, [&] { passTurn(warpgroup); });
  for (Operation &inner : op.getBody().front())
    if (failed(emitOp(&inner)))
      return failure();
  if (takesTurns)
    onlyIn(0, [&] { takeTurn(); });
  return success();
}

/// Named barrier 1 + w is warpgroup w's turn. Arrives: the warpgroup before;
/// waits: warpgroup w.
void NvvmEmitter::takeTurn() {
  p_.ptx("bar.sync $0, 256;", "r,~{memory}", p_.add(role_.warpgroup, 1));
}

void NvvmEmitter::passTurn(Value warpgroup) {
  Value next = p_.add(warpgroup, 1);
  Value wraps = p_.equals(next, role_.warps / 4);
  p_.ptx("bar.arrive $0, 256;", "r,~{memory}",
         p_.add(p_.select(wraps, p_.constant(0), next), 1));
}

LogicalResult NvvmEmitter::emit(tile::TakeTurnOp) {
  if (role_.warps > 4)
    takeTurn();
  return success();
}

LogicalResult NvvmEmitter::emit(tile::PassTurnOp) {
  if (role_.warps > 4)
    passTurn(role_.warpgroup);
  return success();
}

/// As many as the roles' registers and their rings leave room for.
int64_t NvvmEmitter::ctasPerMultiprocessor() {
  if (team_)
    return *tile::getFixed(team_.getCtas());
  int64_t registers = 0;
  for (ArrayRef<tile::RoleOp> group : groupRoles(kernel_)) {
    tile::RoleOp role = group.front();
    registers += *tile::getFixed(role.getRegisters()) * warpgroupsOf(role);
  }
  constexpr int64_t kSharedBytes = 228 << 10, kReserved = 1024;
  return std::max<int64_t>(std::min(kRegisters / kWarpgroupThreads / registers,
                                    kSharedBytes / (plan_.bytes() + kReserved)),
                           1);
}

/// All threads start with what an even share of the registers gives.
int64_t NvvmEmitter::startRegisters() {
  constexpr int64_t kStep = 8, kMost = 255;
  int64_t all = threads() * ctasPerMultiprocessor();
  return std::min(kRegisters / all / kStep * kStep, kMost);
}

void NvvmEmitter::emitRegisterLimit(int64_t registers) {
  int64_t start = startRegisters();
  if (registers == start || threads() == kWarpgroupThreads)
    return;
  auto action = registers < start ? NVVM::SetMaxRegisterAction::decrease
                                  : NVVM::SetMaxRegisterAction::increase;
  NVVM::SetMaxRegisterOp::create(b_, p_.location(),
                                 static_cast<uint32_t>(registers), action);
}
