// SPDX-License-Identifier: Apache-2.0
//
// Tiles between registers and shared memory.
#include "compiler/Conversion/TileToNvvm/MatrixStore.h"
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::sparge;

/// Lane and warp of the thread within its warpgroup. With the attribute
/// `tile.late_addresses` the thread's number is read anew: else LLVM keeps the
/// addresses, a dozen registers, through a persistent loop around.
static std::pair<Value, Value> placeInGroup(PtxBuilder &p, Operation *op,
                                            Value lane, Value warp) {
  if (!op->hasAttr("tile.late_addresses"))
    return {lane, warp};
  Value thread = p.ptx("mov.u32 $0, %tid.x;", "=r", {}, p.i32()).front();
  return {p.remainder(thread, 32), p.remainder(p.divide(thread, 32), 4)};
}

LogicalResult NvvmEmitter::emit(tile::StoreSharedOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  if (type.getRank() == 2)
    return storeMatrix(op);
  if (type.getElementTypeBitWidth() != 32)
    return op.emitOpError() << "expects 32-bit words, got " << type;
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value))
    return failure();
  if (!role_.isOneWarp()) {
    // Of the four lanes that have a row's word the first one stores it.
    auto [lane, warp] = placeInGroup(p_, op, lane_, warp_);
    Value row = p_.add(p_.add(p_.mul(role_.warpgroup, 64), p_.mul(warp, 16)),
                       p_.divide(lane, 4));
    Value address = p_.add(slots_[op.getSlot()].address, p_.mul(row, 4));
    Value isFirst = p_.equals(p_.remainder(lane, 4), 0);
    for (auto [half, word] : llvm::enumerate(*value))
      p_.storeSharedWhere(isFirst, word,
                          p_.add(address, static_cast<int64_t>(half) * 8 * 4));
    return success();
  }
  Registers elements = numbers(type, Held::Lanes);
  for (auto [element, word] : llvm::zip(elements, *value))
    p_.storeSharedWhere(
        p_.less(element, p_.constant(type.getDimSize(0))), word,
        p_.add(slots_[op.getSlot()].address, p_.mul(element, 4)));
  return success();
}

LogicalResult NvvmEmitter::storeMatrix(tile::StoreSharedOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  if (!isPacked(type) || heldBy(type) != Held::Matrix)
    return op.emitOpError() << "expects 16-bit floats, got " << type;
  FailureOr<Registers> value = registersOf(op.getValue());
  if (failed(value))
    return failure();
  SharedMatrix matrix(op.getSlot().getType());
  if (matrix.isCores())
    return op.emitOpError()
           << "expects swizzled panels, got " << op.getSlot().getType();
  auto [lane, warp] = placeInGroup(p_, op, lane_, warp_);
  Value firstRow = p_.add(p_.mul(role_.warpgroup, 64), p_.mul(warp, 16));
  sparge::storeMatrix(p_, matrix, *value, slots_[op.getSlot()].address,
                      firstRow, lane);
  // The TMA or the tensor core may read it after the next hand-over.
  p_.ptx("fence.proxy.async.shared::cta;", "~{memory}", {});
  return success();
}

/// stmatrix of four 8 x 8 matrices: both row halves of two groups of eight
/// columns. Lane l gives the address of row l mod 16 in the first group (l <
/// 16) or the second.
void mlir::sparge::storeMatrix(PtxBuilder &p, const SharedMatrix &matrix,
                               ArrayRef<Value> value, Value address,
                               Value firstRow, Value lane) {
  constexpr int64_t kPieceBytes = 16; // eight elements, what swizzles permute
  int64_t pieces = matrix.swizzle / kPieceBytes;
  int64_t groups = matrix.columns / 8;

  // A swizzle of 2^n pieces xors the piece with n bits of the row, counted from
  // the top of the row's three low bits.
  Value row = p.add(firstRow, p.remainder(lane, 16));
  Value xorBits = p.divide(p.remainder(row, 8), 8 / pieces);
  Value lanePiece = p.bitXor(p.divide(lane, 16), xorBits);
  Value laneBytes = p.mul(lanePiece, kPieceBytes);
  Value base = p.add(address, p.mul(row, matrix.swizzle));
  for (int64_t group = 0; group < groups; group += 2) {
    int64_t panel = group / pieces, piece = group % pieces;
    bool isPair = group + 1 < groups;
    SmallVector<Value> operands{
        p.add(p.add(base, panel * matrix.panelBytes()),
              p.bitXor(laneBytes, piece * kPieceBytes))};
    llvm::append_range(operands, value.slice(2 * group, isPair ? 4 : 2));
    if (isPair)
      p.ptx("stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};",
            "r,r,r,r,r,~{memory}", operands);
    else
      p.ptx("stmatrix.sync.aligned.m8n8.x2.shared.b16 [$0], {$1, $2};",
            "r,r,r,~{memory}", operands);
  }
}

/// One value a column: two neighbouring words for every eight.
NvvmEmitter::Registers NvvmEmitter::loadColumns(Value address, Value lane,
                                                RankedTensorType type) {
  Value first = p_.add(address, p_.mul(p_.remainder(lane, 4), 8));
  Registers registers;
  for (int64_t column = 0; column < type.getDimSize(0); column += 8)
    for (Value word : p_.loadSharedWords(p_.add(first, column * 4), 2))
      registers.push_back(LLVM::BitcastOp::create(b_, p_.location(),
                                                  type.getElementType(), word));
  return registers;
}

LogicalResult NvvmEmitter::emit(tile::LoadSharedOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  int64_t size = type.getDimSize(0);
  Value address = slots_[op.getSlot()].address;
  if (type.getElementTypeBitWidth() != 32 ||
      (!role_.isOneWarp() && size % 8 != 0))
    return op.emitOpError() << "expects 32-bit words, for warpgroups in "
                               "multiples of 8, got "
                            << type;
  if (!role_.isOneWarp()) {
    auto [lane, warp] = placeInGroup(p_, op, lane_, warp_);
    tiles_[op.getResult()] = {Held::Columns, loadColumns(address, lane, type)};
    return success();
  }
  // Lanes beyond the end read the last word.
  Registers registers;
  for (Value element : numbers(type, Held::Lanes)) {
    Value inside = arith::MinUIOp::create(b_, p_.location(), element,
                                          p_.constant(size - 1));
    registers.push_back(p_.loadShared(type.getElementType(),
                                      p_.add(address, p_.mul(inside, 4))));
  }
  hold(op.getResult(), std::move(registers));
  return success();
}

LogicalResult NvvmEmitter::emit(tile::SharedColumnsOp op) {
  const Slot slot = slots_[op.getSlot()];
  SharedMatrix matrix(op.getSlot().getType());
  Value panel = p_.divide(scalar(op.getFirst()), matrix.panelColumns());
  slots_[op.getResult()] = {
      slot.ring, slot.stage,
      p_.add(slot.address, p_.mul(panel, matrix.panelBytes()))};
  return success();
}

/// Eight columns never belong to two boxes.
LogicalResult NvvmEmitter::emit(tile::SharedPositionsOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  if (role_.isOneWarp())
    return op.emitOpError() << "expects a role of warpgroups, got one warp";
  int64_t columns = type.getDimSize(0);
  int64_t words =
      op.getSlot().getType().getSizes().getSizes().size() == 1
          ? cast<IntegerAttr>(op.getSlot().getType().getSizes().getSizes()[0])
                .getInt()
          : 1;
  int64_t box = columns / words;
  auto [lane, warp] = placeInGroup(p_, op, lane_, warp_);
  Value inGroup = p_.mul(p_.remainder(lane, 4), 2);
  Registers registers;
  Value first;
  for (int64_t column = 0; column < columns; column += 8) {
    if (column % box == 0) {
      Value word = p_.loadShared(
          p_.i32(), p_.add(slots_[op.getSlot()].address, column / box * 4));
      first = p_.add(word, inGroup);
    }
    for (int64_t b = 0; b < 2; ++b)
      registers.push_back(p_.add(first, column % box + b));
  }
  tiles_[op.getResult()] = {Held::Columns, std::move(registers)};
  return success();
}
