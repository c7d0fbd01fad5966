// SPDX-License-Identifier: Apache-2.0
//
// NvvmEmitter: writes a hand-scheduled tile.kernel as an llvm.func for sm_90a.
//
// `index` becomes i32: no size of a tensor reaches 2^31 (the host checks),
// while strides and addresses are 64 bits. A tile becomes the registers that
// one thread holds of it:
//
//   Matrix   rows 64 w + 16 warp + lane / 4 + {0, 8} of warpgroup w, of every
//            eight columns 2 (lane mod 4) and the next: register 4 j + 2 h + b
//            is column 8 j + 2 (lane mod 4) + b of row half h, as wgmma leaves
//            its result. 16-bit elements lie in pairs: register 2 j + h; those
//            of 8 bits in fours, of two groups of eight columns: register 2 (j
//            / 2) + h.
//   Parts    R x 4: the lane's column, one register a row half.
//   Rows     one value a row: one register a row half; one of 16 bits fills
//            both halves of its register.
//   Columns  one value a column: register 2 j + b.
//   Lanes    one-warp roles: register r of lane l is element 32 r + l.
//
// In a kernel with a tile.team, which has no roles, each warp works alone:
//
//   Row      rank 1: runs of neighbouring elements, one, two or four to a lane
//            (RowPlace): register c g + i of lane l is element c (32 g + l) +
//            i.
#pragma once

#include "compiler/Conversion/TileToNvvm/PtxBuilder.h"
#include "compiler/Conversion/TileToNvvm/SharedPlan.h"
#include "compiler/Conversion/TileToNvvm/Teams/RowPlace.h"
#include "compiler/Conversion/TileToNvvm/Teams/StagedRows.h"
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::sparge {

class NvvmEmitter {
public:
  /// `everyLaneArrives`: at hand-overs every lane of a warp arrives, not one
  /// for all of them.
  NvvmEmitter(tile::KernelOp kernel, OpBuilder &builder, bool everyLaneArrives)
      : kernel_(kernel), b_(builder), p_(builder, kernel.getLoc()),
        plan_(kernel), everyLaneArrives_(everyLaneArrives) {}

  /// Emits the function next to the kernel, or says what cannot be lowered.
  LogicalResult emit();

private:
  using Registers = SmallVector<Value>;
  enum class Held { Matrix, Parts, Rows, Columns, Lanes, Row };
  struct Tile {
    Held held;
    Registers registers;
  };
  struct Global {
    Value pointer;
    SmallVector<Value> sizes;   // i32
    SmallVector<Value> strides; // i64
  };
  struct View {
    Type elementType;
    Value pointer, rows;
    Value rowStride, columns; // of a rank-2 view, i64 and i32
    /// Loads under way of what is read once, past the L1 cache; or 0.
    int64_t streamLoads = 0;
  };
  /// A scratch in a team's shared memory: element (r, c) is word r * stride +
  /// c, or, of i1, bit c % 32 of word r * stride + c / 32.
  struct Scratch {
    Value address, columns, stride;
    int64_t rows = 0;
  };
  struct Cursor {
    Value stage, phase;
  };
  /// A piece of a ring's slot.
  struct Slot {
    Value ring, stage, address;
  };
  /// The role whose body is being emitted.
  struct Role {
    int64_t warps = 0;
    bool isOneWarp() const { return warps == 1; }
    /// One lane of each warp, always the same (i1).
    Value elected;
    /// Number of this thread's warpgroup within the role.
    Value warpgroup;
    /// Not a role, but one of a team's warps.
    bool isTeam = false;
  };

  // NvvmEmitter.cpp: the function, its arguments, and dispatch.
  void emitArguments(Block *entry);
  void describeLaunch(LLVM::LLVMFuncOp function);
  LogicalResult emitBlock(Block &block);
  LogicalResult emitOp(Operation *op);
  LogicalResult emitScalarOp(Operation *op);

  // NvvmRoles.cpp: who does what.
  LogicalResult emitRoles();
  LogicalResult emitRole(tile::RoleOp op, Value warpgroup);
  LogicalResult emitWarpgroups(ArrayRef<SmallVector<tile::RoleOp>> groups,
                               int64_t firstWarpgroup, Value warpgroup);
  LogicalResult emitOneWarpRoles(ArrayRef<tile::RoleOp> roles);
  void emitRegisterLimit(int64_t registers);
  int64_t startRegisters();
  LogicalResult verifyRegisters();
  int64_t threads();
  int64_t ctasPerMultiprocessor();
  void takeTurn();
  void passTurn(Value warpgroup);
  LogicalResult emit(tile::TakeTurnOp op);
  LogicalResult emit(tile::PassTurnOp op);

  // Teams/NvvmTeams.cpp: kernels whose warps all do the same.
  static bool isForTeams(Operation *op);
  static bool isForRoles(Operation *op);
  LogicalResult emitTeam();
  void describeTeam(LLVM::LLVMFuncOp function);
  int64_t members() { return *tile::getFixed(team_.getMembers()); }
  Value program();
  LogicalResult emit(tile::TeamOp op);
  LogicalResult emit(tile::TeamBarrierOp op);
  LogicalResult emit(tile::LaunchWaitOp op);
  LogicalResult emit(tile::LaunchNextOp op);
  LogicalResult emit(tile::NextPartOp op);
  LogicalResult emit(tile::SignalOp op);
  LogicalResult emit(tile::AwaitOp op);
  LogicalResult emit(tile::ProgramIdOp op);
  LogicalResult emit(tile::ScratchOp op);

  // Teams/NvvmTeamDots.cpp: products as exact as float32.
  SmallVector<Value> loadPieces(const View &view, Value eight, int64_t columns,
                                int64_t first, int64_t end);
  Value factorPointer(const View &view, Value row, int64_t columns);
  Value eightOf(const View &view, Value eight);
  std::pair<Value, Value> splitPair(Value first, Value second, Value scale);
  void stageRows(tile::SpreadDotsOp op, const StagedRows &staged);
  void multiplySteps(const StagedRows &staged, int64_t first,
                     ArrayRef<Value> pieces, SmallVectorImpl<Value> &sums);
  SmallVector<SpreadRow> spreadRows(const Scratch &scratch,
                                    const StagedRows &staged);
  void storeScores(const SpreadRow &row, Value column, Value first,
                   Value second);
  SmallVector<Value> loadKeys(const View &view, Value first, int64_t columns,
                              int64_t step);
  SmallVector<Value> spreadKeys(tile::SpreadDotsOp op, const StagedRows &staged,
                                ArrayRef<SpreadRow> rows, Value first,
                                Value next, ArrayRef<Value> pieces);
  LogicalResult emit(tile::StoreSplitOp op);
  LogicalResult emit(tile::SpreadDotsOp op);

  // Teams/NvvmRows.cpp: rank-1 tensors of a team's warps.
  Value rowIndex(const RowPlace &place, int64_t index);
  Value inRow(const RowPlace &place, int64_t index);
  LogicalResult emit(tile::RowLoadOp op);
  LogicalResult emit(tile::RowStoreOp op);
  LogicalResult emit(tile::TotalOp op);
  LogicalResult emit(tile::PickOp op);
  Value sumUpTo(Value word);
  LogicalResult emit(tile::RankOp op);
  LogicalResult emit(tile::SumUpToOp op);
  LogicalResult emitScatter(Value values, Value positions, Value where,
                            Value limit,
                            function_ref<void(Value, Value, Value)> store);
  LogicalResult emit(tile::ScatterOp op);
  LogicalResult emit(tile::ScatterAtOp op);
  LogicalResult emit(tile::RowScatterOp op);
  LogicalResult emit(tile::FillRestOp op);
  LogicalResult emit(tile::StoreScalarOp op);
  LogicalResult emit(tile::LoadRunOp op);
  LogicalResult emit(tile::RowGatherOp op);
  LogicalResult emit(tile::AddProductsOp op);
  LogicalResult storeRow(tile::StoreOp op);

  // Teams/NvvmFlags.cpp: rows of flags in scratch.
  Value flagRow(const Scratch &scratch, Value row);
  LogicalResult storeFlags(tile::RowStoreOp op);
  Value listFlags(Value row, Value end, Value limit,
                  function_ref<void(ValueRange, Value)> store);
  LogicalResult emit(tile::SetTrueOp op);
  LogicalResult emit(tile::SetRunTrueOp op);
  LogicalResult emit(tile::ListTrueOp op);
  LogicalResult emit(tile::RowListTrueOp op);

  // Teams/NvvmRowSums.cpp
  SmallVector<Value> widen(Type element, Value words, Value isThere);
  SmallVector<Value> loadEight(const View &view, Value row, Value column,
                               Value isThere, bool isAligned);
  using Combine = function_ref<Value(Value, Value)>;
  using Fold = function_ref<void(SmallVectorImpl<Value> &, ArrayRef<Value>)>;
  SmallVector<Value> addRound(const View &view, Value first, Value end,
                              int64_t pieces, bool isAligned, bool isPartial,
                              ValueRange sums, Fold fold);
  SmallVector<Value> combineLanes(const View &view, Value first, Value end,
                                  int64_t pieces, bool isAligned, size_t count,
                                  Fold fold);
  SmallVector<Value> combineRows(const View &view, Value first, Value end,
                                 int64_t size, size_t count, Fold fold);
  Registers gatherRow(ArrayRef<Value> parts, int64_t size, Combine add);
  Value sumOf(Value a, Value b), peakOf(Value a, Value b);
  LogicalResult emit(tile::SumRowsOp op);
  LogicalResult emit(tile::PeakRowsOp op);
  Value isAligned(const View &view);
  Value addProduct(const View &a, const View &b, Value row, Value column,
                   Value columns, bool isAligned, Value sum);
  Value dotLanes(const View &a, const View &b, Value row, int64_t columns,
                 bool isAligned);
  LogicalResult emit(tile::PrefetchRowsOp op);
  LogicalResult emit(tile::RowDotsOp op);
  Value movesWhole(const View &view, Value first, int64_t perLane);
  Registers loadTogether(Type element, Value pointer, int64_t perLane);
  Registers loadRow(const View &view, Value first, const RowPlace &place,
                    Value otherwise, bool together);
  LogicalResult loadFloats(tile::LoadValuesOp op);
  void storeTogether(Value stores, ArrayRef<Value> values, Type element,
                     Value pointer);
  void storeOne(Value stores, Value value, Type element, Value pointer);
  LogicalResult storeFloats(tile::StoreOp op);

  // Narrow/NvvmScaling.cpp: rows in eight bits.
  Value anyLimit(Value seen);
  SmallVector<Value> scaleLanes(tile::ScaleRowsOp op, bool isAligned);
  LogicalResult emit(tile::ScaleRowsOp op);
  SmallVector<Value> loadRun(const View &view, Value row, Value column,
                             int64_t count, Value isThere, bool isAligned);
  SmallVector<Value> scaleColumns(tile::ScaleCoresOp op,
                                  ArrayRef<Value> factors, bool isAligned);
  LogicalResult emit(tile::ScaleCoresOp op);

  // NvvmControlFlow.cpp: everything carried is a list of scalars.
  FailureOr<SmallVector<Type>> flatTypes(ValueRange values);
  LogicalResult flatten(ValueRange values, SmallVectorImpl<Value> &flat);
  void bind(ValueRange values, ValueRange flat);
  LogicalResult emitRegion(Block &from, Block *to,
                           function_ref<LogicalResult()> terminate);
  LogicalResult emit(scf::ForOp op);
  LogicalResult emit(scf::IfOp op);
  LogicalResult emit(scf::WhileOp op);
  LogicalResult emitCursorSelect(arith::SelectOp op);

  // NvvmTiles.cpp: registers.
  static bool isTile(Value value) {
    return isa<RankedTensorType>(value.getType());
  }
  static bool isPacked(RankedTensorType type);
  static bool isBytes(RankedTensorType type);
  Held heldBy(RankedTensorType type) const;
  static int64_t registerCount(RankedTensorType type, Held held);
  Type registerType(RankedTensorType type);
  FailureOr<Registers> registersOf(Value value, Held held);
  FailureOr<Registers> registersOf(Value value) {
    return registersOf(value, heldBy(cast<RankedTensorType>(value.getType())));
  }
  FailureOr<Registers> compute(Value value, Held held);
  Registers numbers(RankedTensorType type, Held held);
  Value rowInTile(int64_t half);
  void hold(Value value, Registers registers) {
    tiles_[value] = {heldBy(cast<RankedTensorType>(value.getType())),
                     std::move(registers)};
  }
  LogicalResult emit(tile::ExpandOp op);
  LogicalResult emit(tile::ConvertOp op);
  Registers narrow(ArrayRef<Value> source, Type element);
  Registers widenPairs(ArrayRef<Value> source, Type element);

  // NvvmElementwise.cpp: arith and math on tiles.
  static bool isElementwise(Operation *op);
  bool isKnown(Value value) const;
  LogicalResult emitElementwise(Operation *op);
  FailureOr<Registers> emitPointwise(Operation *op, Held held);
  Value emitOne(Operation *op, const IRMapping &operands, Type type);

  // Narrow/NvvmNarrow.cpp: pairs of float16 and fours of 8-bit floats.
  FailureOr<Registers> emitPairs(Operation *op, Held held);
  FailureOr<Registers> selectPairs(arith::SelectOp op, Held held);
  Value maxPairs(Value a, Value b);
  Registers maxOfRows(ArrayRef<Value> pairs);
  Registers convertRows(ArrayRef<Value> source, Type from, Type to);
  Registers toBytes(ArrayRef<Value> source, Type from);
  LogicalResult emit(tile::FmaReluOp op);
  LogicalResult emit(tile::LowBitsOp op);
  LogicalResult emit(tile::ColumnsOp op);
  LogicalResult emit(tile::FirstColumnsOp op);

  // NvvmReductions.cpp
  Value combineAll(tile::ReduceKind kind, SmallVector<Value> values);
  Value vote(Value here);
  Value combine(tile::ReduceKind kind, Value a, Value b);
  LogicalResult emit(tile::ReduceOp op);
  LogicalResult emit(tile::ReducePartialOp op);
  LogicalResult emit(tile::AnyOp op);
  LogicalResult emit(tile::WarpAnyOp op);

  // NvvmRings.cpp: hand-overs.
  void emitBarrierInit();
  Value barrier(Value ring, Value stage, int64_t station);
  void wait(Value barrier, Value phase);
  void arrive(Value barrier);
  void bindPieces(Value ring, const Cursor &cursor, ResultRange pieces);
  LogicalResult emit(tile::RingStartOp op);
  LogicalResult emit(tile::RingNextOp op);
  LogicalResult emit(tile::RingAcquireOp op);
  LogicalResult emit(tile::RingCommitOp op);
  LogicalResult emit(tile::RingWaitOp op);
  LogicalResult emit(tile::RingPiecesOp op);
  LogicalResult emit(tile::RingReleaseOp op);
  LogicalResult emit(tile::StoreNoteOp op);
  LogicalResult emit(tile::LoadNoteOp op);

  // NvvmCopies.cpp: TMA.
  void copyBox(Value map, const SharedMatrix &box, ValueRange indices,
               Value destination, int64_t panelStride, Value barrier);
  LogicalResult emit(tile::LoadAsyncOp op);
  LogicalResult emit(tile::GatherAsyncOp op);
  LogicalResult emit(tile::GatherPanelsOp op);
  LogicalResult emit(tile::StoreAsyncOp op);
  LogicalResult emit(tile::StoreWaitOp op);
  LogicalResult emit(tile::StoreStackedOp op);
  LogicalResult emit(tile::StoreSlabsOp op);
  LogicalResult emit(tile::StoreStackedWaitOp op);
  LogicalResult emit(tile::GatherRunsOp op);

  // NvvmSharedTiles.cpp: registers from and to shared memory.
  LogicalResult emit(tile::StoreSharedOp op);
  LogicalResult storeMatrix(tile::StoreSharedOp op);
  LogicalResult emit(tile::LoadSharedOp op);
  Registers loadColumns(Value address, Value lane, RankedTensorType type);
  LogicalResult emit(tile::SharedColumnsOp op);
  LogicalResult emit(tile::SharedPositionsOp op);

  // NvvmGlobalMemory.cpp: the grid, tensors and lists.
  const Global &grid();
  Value programTiles();
  Value isPresent(const Global &global);
  LogicalResult emit(tile::ProgramsOp op);
  LogicalResult emit(tile::NextProgramOp op);
  LogicalResult emit(tile::ProgramPlaceOp op);
  LogicalResult emit(tile::DimOp op);
  LogicalResult emit(tile::IsPresentOp op);
  LogicalResult emit(tile::SliceOp op);
  LogicalResult emit(tile::LoadScalarOp op);
  LogicalResult emit(tile::ListBoxesOp op);
  LogicalResult emit(tile::NthLargestOp op);
  LogicalResult emit(tile::LoadValuesOp op);
  LogicalResult emit(tile::LoadColumnsOp op);
  LogicalResult emit(tile::LoadRowsOp op);
  LogicalResult emit(tile::StoreOp op);
  LogicalResult storeTile(tile::StoreOp op);

  // NvvmDots.cpp: wgmma.
  LogicalResult emit(tile::DotAsyncOp op);
  LogicalResult emit(tile::DotWaitOp op);
  LogicalResult emitBefore(Value value);
  LogicalResult emitBeforeMany(ArrayRef<Value> registers);

  // NvvmWarpDots.cpp: dots of one warp.
  struct LanePlace;
  LanePlace lanePlace(Value slot, Value firstRow);
  LogicalResult emit(tile::WarpDotOp op);

  Value scalar(Value value) { return scalars_.lookup(value); }

  tile::KernelOp kernel_;
  OpBuilder &b_;
  PtxBuilder p_;
  SharedPlan plan_;
  bool everyLaneArrives_;

  Role role_;
  Value shared_;               // address of the CTA's shared memory, i32
  Value thread_, lane_, warp_; // warp_: within its warpgroup
  IRMapping scalars_;
  DenseMap<Value, Global> globals_;
  DenseMap<Value, View> views_;
  DenseMap<Value, Tile> tiles_;
  DenseMap<Value, Cursor> cursors_;
  DenseMap<Value, Slot> slots_;
  /// Pointers to tensor maps; the function's arguments after the first.
  DenseMap<Value, Value> maps_;
  SmallVector<tile::TensorMapOp> mapOps_;
  bool isPersistent_ = false;
  bool startsEarly_ = false;

  tile::TeamOp team_;
  Value member_;
  DenseMap<Value, Scratch> scratches_;
  DenseMap<Operation *, StagedRows> staged_;
  /// Shared memory of a team: what is fixed, and the end of what is not.
  int64_t teamBytes_ = 0;
  Value dynamicEnd_;
  SmallVector<Attribute> dynamicShared_;
};

} // namespace mlir::sparge
