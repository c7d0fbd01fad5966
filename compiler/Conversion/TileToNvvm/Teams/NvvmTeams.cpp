// SPDX-License-Identifier: Apache-2.0
//
// Teams: kernels without roles, whose warps all run the same body. Where a warp
// stands, what its team shares, and how it waits for the others.
#include "compiler/Conversion/TileToNvvm/LaunchAttributes.h"
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::sparge;

static constexpr int64_t kWarpThreads = 32;
/// Words between the rows of a scratch beyond whole groups of 32 banks, so that
/// eight columns of four rows, what half a warp spreads, lie in different
/// banks.
static constexpr int64_t kStridePadding = 8;

/// The kernel waits for the launch before it (a no-op in a launch of its own),
/// and lets the next one be launched: that one waits here in turn, with its
/// CTAs in place.
bool NvvmEmitter::isForTeams(Operation *op) {
  return isa<tile::TeamBarrierOp, tile::ScratchOp, tile::SpreadDotsOp,
             tile::RowLoadOp, tile::RowStoreOp, tile::TotalOp, tile::PickOp,
             tile::RankOp, tile::SumUpToOp, tile::RowScatterOp,
             tile::FillRestOp, tile::StoreScalarOp, tile::NextPartOp,
             tile::SumRowsOp, tile::PeakRowsOp, tile::ScaleRowsOp,
             tile::ScaleCoresOp, tile::ScatterAtOp, tile::LoadRunOp,
             tile::StoreSplitOp, tile::RowGatherOp, tile::AddProductsOp,
             tile::SetTrueOp, tile::SetRunTrueOp, tile::ListTrueOp,
             tile::RowListTrueOp>(op);
}

bool NvvmEmitter::isForRoles(Operation *op) {
  return isa<tile::NextProgramOp, tile::WarpAnyOp, tile::ProgramPlaceOp,
             tile::ListBoxesOp, tile::NthLargestOp, tile::RingOp,
             tile::RingNextOp, tile::RingPiecesOp, tile::GatherRunsOp,
             tile::StoreStackedOp, tile::StoreStackedWaitOp, tile::DotAsyncOp,
             tile::DotWaitOp, tile::WarpDotOp, tile::SharedColumnsOp,
             tile::SharedPositionsOp, tile::StoreSharedOp, tile::LoadSharedOp,
             tile::ConvertOp, tile::ExpandOp, tile::ReduceOp,
             tile::ReducePartialOp, tile::FmaReluOp, tile::LowBitsOp,
             tile::ColumnsOp, tile::FirstColumnsOp, tile::LoadColumnsOp,
             tile::LoadRowsOp, tile::StoreSlabsOp>(op);
}

LogicalResult NvvmEmitter::emitTeam() {
  Location loc = kernel_.getLoc();
  p_.setLocation(loc);
  role_ = Role();
  role_.warps = 1;
  role_.isTeam = true;
  thread_ = NVVM::ThreadIdXOp::create(b_, loc, p_.i32());
  lane_ = p_.remainder(thread_, kWarpThreads);
  warp_ = p_.uniform(p_.divide(thread_, kWarpThreads));
  role_.elected = p_.equals(lane_, 0);
  auto sharedType = LLVM::LLVMPointerType::get(b_.getContext(), 3);
  Value address =
      LLVM::AddressOfOp::create(b_, loc, sharedType, "spargejit_shared");
  shared_ = LLVM::PtrToIntOp::create(b_, loc, p_.i32(), address);
  for (tile::SpreadDotsOp op : kernel_.getBody().getOps<tile::SpreadDotsOp>()) {
    tile::ScratchType scratch = op.getScratch().getType();
    StagedRows &staged = staged_[op];
    staged.rows = members() * *tile::getFixed(scratch.getRows());
    staged.columns = *tile::getFixed(op.getColumns());
    staged.address = p_.add(shared_, teamBytes_);
    teamBytes_ += llvm::alignTo(staged.bytes(), 128);
  }
  return emitBlock(kernel_.getBody().front());
}

void NvvmEmitter::describeTeam(LLVM::LLVMFuncOp function) {
  auto count = [](tile::SizesAttr size) {
    return static_cast<int32_t>(*tile::getFixed(size));
  };
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b_.getI32IntegerAttr(count(team_.getCtas())));
  // Scores may be denormal, and are ranked.
  function.removeDenormalFpMathF32Attr();
  if (members() > 1)
    function->setAttr(
        NVVM::NVVMDialect::getClusterDimAttrName(),
        b_.getDenseI32ArrayAttr({count(team_.getMembers()), 1, 1}));
  // Half of a multiprocessor is left to the next launch.
  if (isPersistent_)
    function->setAttr(kResidentCtasAttr, b_.getI64IntegerAttr(std::max(
                                             1, count(team_.getCtas()) / 2)));
  function->setAttr(kMembersAttr, b_.getI64IntegerAttr(members()));
  function->setAttr(kSharedBytesAttr, b_.getI64IntegerAttr(teamBytes_));
  function->setAttr(kDynamicSharedAttr, b_.getArrayAttr(dynamicShared_));
}

/// Number of this program.
Value NvvmEmitter::program() {
  Value cta = NVVM::BlockIdXOp::create(b_, p_.location(), p_.i32());
  return !team_ || members() == 1 ? cta : p_.divide(cta, members());
}

LogicalResult NvvmEmitter::emit(tile::TeamOp op) {
  Value cta = NVVM::BlockIdXOp::create(b_, p_.location(), p_.i32());
  scalars_.map(op.getMember(),
               members() == 1 ? p_.constant(0) : p_.remainder(cta, members()));
  scalars_.map(op.getWarp(), warp_);
  return success();
}

LogicalResult NvvmEmitter::emit(tile::TeamBarrierOp) {
  if (members() == 1) {
    NVVM::Barrier0Op::create(b_, p_.location());
    return success();
  }
  p_.ptx("barrier.cluster.arrive.release.aligned;", "~{memory}", {});
  p_.ptx("barrier.cluster.wait.acquire.aligned;", "~{memory}", {});
  return success();
}

LogicalResult NvvmEmitter::emit(tile::LaunchWaitOp) {
  p_.ptx("griddepcontrol.wait;", "~{memory}", {});
  startsEarly_ = true;
  return success();
}

LogicalResult NvvmEmitter::emit(tile::LaunchNextOp) {
  p_.ptx("griddepcontrol.launch_dependents;", "~{memory}", {});
  return success();
}

/// A warp with a part is refused once, so that there are as many requests as
/// parts; after the last, atom.inc wraps to 0. The others have none.
LogicalResult NvvmEmitter::emit(tile::NextPartOp op) {
  const int64_t most = *tile::getFixed(op.getDraws());
  const Global &counter = globals_[op.getCounter()];
  Value part = scalar(op.getPart()), step = scalar(op.getStep());
  if (most == 1) {
    scalars_.map(op.getResult(), p_.add(part, step));
    return success();
  }
  Value draws, given;
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(b_.getInsertionBlock());
    Value last = p_.add(scalar(op.getParts()), -1);
    draws = arith::AndIOp::create(b_, p_.location(), isPresent(counter),
                                  p_.less(last, p_.mul(step, most)));
    Value asks = arith::AndIOp::create(b_, p_.location(), role_.elected, draws);
    given =
        p_.ptx("{ mov.u32 $0, 0; @$3 atom.relaxed.gpu.global.inc.u32 $0, "
               "[$1], $2; }",
               "=&r,l,r,b,~{memory}", {counter.pointer, last, asks}, p_.i32())
            .front();
  }
  // The other lanes hold 0.
  Value before = p_.select(draws, p_.uniform(given), part);
  scalars_.map(op.getResult(), p_.add(before, step));
  return success();
}

static Value counterAt(PtxBuilder &p, Value counter, Value index) {
  return p.globalPointer(counter, p.i32(), p.signExtend(index));
}

LogicalResult NvvmEmitter::emit(tile::SignalOp op) {
  const Global &counter = globals_[op.getCounter()];
  p_.syncWarp();
  Value signals = arith::AndIOp::create(b_, p_.location(), role_.elected,
                                        isPresent(counter));
  p_.ptxWhere(signals, "red.release.gpu.global.add.u32 [$0], $1;", "l,r",
              {counterAt(p_, counter.pointer, scalar(op.getIndex())),
               scalar(op.getCount())});
  return success();
}

/// One thread of the team (of a role: of the warp) asks and then says that it
/// has, which the last one's request makes 0 and none waits for; the others
/// wait for that thread. It acquires at first and when it has waited: each
/// time, the L1 cache is emptied.
LogicalResult NvvmEmitter::emit(tile::AwaitOp op) {
  Location loc = p_.location();
  const Global &counter = globals_[op.getCounter()];
  startsEarly_ = true;
  auto branch =
      scf::IfOp::create(b_, loc, isPresent(counter), /*withElse=*/true);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(branch.thenBlock());
    Value place = counterAt(p_, counter.pointer, scalar(op.getIndex()));
    Value count = scalar(op.getCount());
    auto first = scf::IfOp::create(
        b_, loc, role_.isTeam ? p_.equals(thread_, 0) : role_.elected);
    b_.setInsertionPointToStart(first.thenBlock());
    Value programs = scalar(op.getPrograms());
    if (role_.isTeam)
      programs = p_.mul(programs, members());
    Value last = p_.add(p_.add(count, programs), -1);
    p_.ptx("{ .reg .pred p; .reg .u32 v;\n"
           "again: ld.acquire.gpu.global.u32 v, [$0];\n"
           "setp.ge.u32 p, v, $1;\n"
           "@p bra there;\n"
           "asleep: nanosleep.u32 64;\n"
           "ld.relaxed.gpu.global.u32 v, [$0];\n"
           "setp.ge.u32 p, v, $1;\n"
           "@p bra again;\n"
           "bra asleep;\n"
           "there: red.relaxed.gpu.global.inc.u32 [$0], $2; }",
           "l,r,r,~{memory}", {place, count, last});
    b_.setInsertionPointToStart(branch.elseBlock());
    p_.ptx("griddepcontrol.wait;", "~{memory}", {});
  }
  if (role_.isTeam)
    NVVM::Barrier0Op::create(b_, loc);
  else
    p_.syncWarp();
  return success();
}

LogicalResult NvvmEmitter::emit(tile::ProgramIdOp op) {
  Value tiles = programTiles(), heads = grid().sizes[1];
  Value number = program();
  Value row = p_.divide(number, tiles);
  Value batch = p_.divide(row, heads);
  scalars_.map(op.getTile(), p_.sub(number, p_.mul(row, tiles)));
  scalars_.map(op.getBatch(), batch);
  scalars_.map(op.getHead(), p_.sub(row, p_.mul(batch, heads)));
  return success();
}

/// Those of fixed columns come first, then the others.
LogicalResult NvvmEmitter::emit(tile::ScratchOp op) {
  tile::ScratchType type = op.getResult().getType();
  const int64_t rows = *tile::getFixed(type.getRows());
  const bool isFlags = type.getElementType().isInteger(1);
  APInt multiple, columns;
  bool isFixed = matchPattern(op.getColumns(), m_ConstantInt(&columns));
  if (!matchPattern(op.getMultiple(), m_ConstantInt(&multiple)) ||
      !multiple.isStrictlyPositive() || multiple.urem(32) != 0 ||
      !(isFlags ? rows % 8 == 0 && !isFixed
                : type.getElementType().getIntOrFloatBitWidth() == 32) ||
      op->getParentOp() != kernel_.getOperation())
    return op.emitOpError()
           << "expects 32-bit elements and columns in multiples of 32, or "
              "eights of rows of i1, at the start of the kernel, got another "
              "scratch";
  Scratch &scratch = scratches_[op.getResult()];
  scratch.rows = rows;
  int64_t step = multiple.getSExtValue();
  if (isFixed) {
    int64_t whole = llvm::alignTo(columns.getSExtValue(), step);
    if (dynamicEnd_)
      return op.emitOpError() << "expects scratch of fixed columns before the "
                                 "others, got it behind them";
    scratch.columns = p_.constant(whole);
    scratch.stride = p_.constant(whole + kStridePadding);
    scratch.address = p_.add(shared_, teamBytes_);
    teamBytes_ += scratch.rows * (whole + kStridePadding) * 4;
    return success();
  }
  auto dim = op.getColumns().getDefiningOp<tile::DimOp>();
  Value size = globals_[dim.getSource()].sizes[dim.getDimension()];
  scratch.columns = p_.mul(p_.divide(p_.add(size, step - 1), step), step);
  scratch.stride = isFlags ? p_.divide(scratch.columns, 32)
                           : p_.add(scratch.columns, kStridePadding);
  scratch.address = dynamicEnd_ ? dynamicEnd_ : p_.add(shared_, teamBytes_);
  dynamicEnd_ =
      p_.add(scratch.address, p_.mul(scratch.stride, scratch.rows * 4));
  teamBytes_ += isFlags ? 0 : scratch.rows * kStridePadding * 4;
  int64_t slot = 0;
  for (BlockArgument argument : kernel_.getBody().getArguments()) {
    if (argument == dim.getSource())
      break;
    auto global = dyn_cast<tile::GlobalType>(argument.getType());
    slot += global ? 1 + 2 * global.getRank() : 1;
  }
  dynamicShared_.push_back(b_.getDenseI64ArrayAttr(
      {isFlags ? scratch.rows / 8 : scratch.rows * 4, step,
       slot + 1 + static_cast<int64_t>(dim.getDimension())}));
  return success();
}
