// SPDX-License-Identifier: Apache-2.0
//
// HostEmitter: writes one tile.kernel as an llvm.func of scf loops over
// 16-lane vectors.
//
// A tile is either a buffer in the worker's scratch or, when its only reader
// follows, an expression that the reader evaluates point by point; that is how
// chains of element-wise ops become one loop. A result takes the buffer of an
// operand that nobody else reads, so an accumulator carried round a loop stays
// in place.
#pragma once

#include "compiler/Dialect/Tile/TileDialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::sparge {

/// Rows of a tile that are lanes of one vector: two AVX2 registers of f32, one
/// of AVX-512.
inline constexpr int64_t kHostLanes = 16;
/// Elements a row copy moves at once; every head dimension is a multiple.
inline constexpr int64_t kHostCopyLanes = 8;
/// Alignment of every scratch buffer, bytes: one cache line.
inline constexpr int64_t kHostAlignment = 64;

class HostEmitter {
public:
  /// `dotColumns`: columns of a dot's result kept in registers at once.
  HostEmitter(tile::KernelOp kernel, OpBuilder &builder, int64_t dotColumns)
      : kernel_(kernel), b_(builder), loc_(kernel.getLoc()),
        dotColumns_(dotColumns) {}

  /// Emits the function next to the kernel; diagnostics say what the host
  /// cannot do.
  LogicalResult emit();

private:
  /// A kernel argument read from its slots.
  struct Global {
    int firstSlot = 0;
    Value pointer;
    SmallVector<Value> sizes, strides;
  };
  /// A window on its last dimensions. Rank 1: rows and rowStride only. The
  /// element type is storedType().
  struct View {
    Type elementType;
    int64_t rank = 0;
    Value pointer, rows, columns, rowStride, columnStride;
  };
  struct Scratch {
    Value pointer;
    int64_t rows = 0;
  };
  /// Where an expression is evaluated: 16 rows of one column of a matrix, 16
  /// entries of a vector, or one entry of a vector.
  struct Point {
    enum class Kind { Matrix, Lanes, Single } kind;
    Value panel, column;
  };
  using Evaluated = DenseMap<std::pair<Value, int>, Value>;
  using LoopBody =
      function_ref<SmallVector<Value>(Value index, ValueRange carried)>;

  // HostEmitter.cpp: the function, its arguments, and dispatch.
  void emitArguments();
  void describeLaunch(LLVM::LLVMFuncOp function);
  LogicalResult emitBlock(Block &block);
  LogicalResult emitOp(Operation *op);
  void emitProgramId(tile::ProgramIdOp op);
  void emitSlice(tile::SliceOp op);
  LogicalResult emitScalarOp(Operation *op);

  // HostTiles.cpp: buffers and expressions.
  static bool isTile(Value value) {
    return isa<RankedTensorType>(value.getType());
  }
  static bool isElementwise(Operation *op);
  static bool isCheap(Value value);
  static int64_t bufferElements(RankedTensorType type);
  static int64_t rowPitch(RankedTensorType type);
  Value allocate(RankedTensorType type);
  bool canReuse(Value value, Operation *user);
  Value findReusable(Value root, RankedTensorType type);
  FailureOr<Value> materialise(Value value);
  LogicalResult materialiseInto(Value value, Value buffer);
  LogicalResult emitElementwise(Operation *op);
  LogicalResult materialiseForRegions(Operation *op);
  FailureOr<Value> evaluate(Value value, const Point &point, Evaluated &done);
  FailureOr<Value> evaluateOp(Value value, const Point &point, Evaluated &done);
  Value loadPoint(Value buffer, RankedTensorType type, const Point &point);
  LogicalResult emitReduce(tile::ReduceOp op);
  LogicalResult emitScan(tile::ScanOp op);

  // HostGlobalMemory.cpp: tiles from and to global memory and scratch.
  LogicalResult emitLoad(tile::LoadOp op);
  LogicalResult emitGather(tile::GatherOp op);
  LogicalResult emitGatherPositions(tile::GatherPositionsOp op);
  LogicalResult emitStore(tile::StoreOp op);
  LogicalResult emitLoadScalar(tile::LoadScalarOp op);
  LogicalResult emitLoadValues(tile::LoadValuesOp op);
  LogicalResult emitScratch(tile::ScratchOp op);
  LogicalResult emitScratchLoad(tile::ScratchLoadOp op);
  LogicalResult emitScratchStore(tile::ScratchStoreOp op);
  void copyRow(const View &view, Value valid, Value row, Value column,
               int64_t columns, Type toType,
               function_ref<Value(Value column)> destination, bool contiguous);
  FailureOr<int64_t> constantBlock(Operation *op, Value block, int64_t rows);
  void
  forListedRows(const View &list, Value first, Value count, int64_t block,
                int64_t rows, Value limit,
                function_ref<void(Value tileRow, Value valid, Value row)> body);
  Value convert(Value value, Type element);

  // HostEightBits.cpp: f8E4M3FN, in memory alone.
  /// What elements of a view are to LLVM, which has no floats of eight bits.
  static Type storedType(Type element);
  Value fromEightBits(Value bytes);
  Value toEightBits(Value floats);

  // HostLists.cpp: block lists.
  LogicalResult emitAppendIndices(tile::AppendIndicesOp op);
  LogicalResult emitFillTail(tile::FillTailOp op);

  // HostDot.cpp
  LogicalResult emitDot(tile::DotOp op);
  FailureOr<Value> prepareAccumulator(tile::DotOp op, bool &startsAtZero);

  // HostControlFlow.cpp
  LogicalResult emitFor(scf::ForOp op);
  LogicalResult emitIf(scf::IfOp op);
  LogicalResult emitYieldedTiles(ArrayRef<Value> yielded,
                                 ArrayRef<Value> buffers);

  // Small pieces of IR.
  Value index(int64_t value);
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value mul(Value a, int64_t b) { return mul(a, index(b)); }
  Value less(Value a, Value b);
  Value minimum(Value a, Value b);
  Value zero(Type type);
  Value splat(Value scalar, int64_t lanes = kHostLanes);
  Value pointerAt(Value base, Type element, Value elementIndex);
  Value load(Type type, Value pointer, int64_t alignment);
  void store(Value value, Value pointer, int64_t alignment);
  SmallVector<Value> forLoop(Value low, Value high, int64_t step,
                             ValueRange init, LoopBody body);
  void forEach(int64_t count, function_ref<void(Value index)> body);
  /// Scalar of the old function in the new one.
  Value scalar(Value value) { return scalars_.lookup(value); }

  tile::KernelOp kernel_;
  OpBuilder &b_;
  Location loc_;
  int64_t dotColumns_;

  Value args_, program_, scratch_;
  IRMapping scalars_;
  DenseMap<Value, Global> globals_;
  DenseMap<Value, View> views_;
  DenseMap<Value, Scratch> scratches_;
  DenseMap<Value, Value> buffers_;
  /// Tiles whose buffer is somebody else's memory: never written in place.
  DenseSet<Value> borrowed_;
  int64_t staticScratchBytes_ = 0;
  SmallVector<Attribute> dynamicScratch_;
};

/// Bytes of one element in scratch.
int64_t elementBytes(Type element);

} // namespace mlir::sparge
