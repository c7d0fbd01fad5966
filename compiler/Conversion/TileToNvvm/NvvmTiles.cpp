// SPDX-License-Identifier: Apache-2.0
//
// Tiles as registers (NvvmEmitter.h): how many, of which type, and how values
// that need none of their own are made where they are read.
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::sparge;

/// Columns of a wgmma result that four lanes share out.
static constexpr int64_t kColumnGroup = 8;
static constexpr int64_t kPartColumns = 4;
static constexpr int64_t kWarpLanes = 32;

/// Two elements of a row lie in one register.
bool NvvmEmitter::isPacked(RankedTensorType type) {
  return isa<FloatType>(type.getElementType()) &&
         type.getElementTypeBitWidth() == 16;
}

/// Four elements of a row lie in one register.
bool NvvmEmitter::isBytes(RankedTensorType type) {
  return isa<Float8E4M3FNType>(type.getElementType());
}

NvvmEmitter::Held NvvmEmitter::heldBy(RankedTensorType type) const {
  if (role_.isTeam)
    return Held::Row;
  if (type.getRank() == 1)
    return role_.isOneWarp() ? Held::Lanes : Held::Rows;
  return type.getDimSize(1) == kPartColumns ? Held::Parts : Held::Matrix;
}

int64_t NvvmEmitter::registerCount(RankedTensorType type, Held held) {
  switch (held) {
  case Held::Matrix:
    return type.getDimSize(1) / kColumnGroup *
           (isBytes(type)    ? 1
            : isPacked(type) ? 2
                             : 4);
  case Held::Columns:
    return type.getDimSize(0) / kColumnGroup * 2;
  case Held::Parts:
  case Held::Rows:
    return 2;
  case Held::Lanes:
    return llvm::divideCeil(type.getDimSize(0), kWarpLanes);
  case Held::Row:
    return RowPlace(type.getDimSize(0)).registers();
  }
  llvm_unreachable("covered switch");
}

Type NvvmEmitter::registerType(RankedTensorType type) {
  return isPacked(type) || isBytes(type) ? p_.i32() : type.getElementType();
}

/// The number of this thread's row of half `half` within a role's tile.
Value NvvmEmitter::rowInTile(int64_t half) {
  Value row = p_.add(p_.mul(role_.warpgroup, 64), p_.mul(warp_, 16));
  return p_.add(p_.add(row, p_.divide(lane_, 4)), 8 * half);
}

/// Registers of 0, 1, 2, …
NvvmEmitter::Registers NvvmEmitter::numbers(RankedTensorType type, Held held) {
  Registers registers;
  if (held == Held::Lanes) {
    for (int64_t i = 0; i < registerCount(type, held); ++i)
      registers.push_back(p_.add(lane_, kWarpLanes * i));
    return registers;
  }
  if (held == Held::Rows)
    return {rowInTile(0), rowInTile(1)};
  if (held == Held::Row) {
    RowPlace place(type.getDimSize(0));
    for (int64_t i = 0; i < place.registers(); ++i)
      registers.push_back(rowIndex(place, i));
    return registers;
  }
  Value first = p_.mul(p_.remainder(lane_, 4), 2);
  for (int64_t i = 0; i < registerCount(type, held); ++i)
    registers.push_back(p_.add(first, i / 2 * kColumnGroup + i % 2));
  return registers;
}

FailureOr<NvvmEmitter::Registers> NvvmEmitter::registersOf(Value value,
                                                           Held held) {
  auto found = tiles_.find(value);
  if (found == tiles_.end())
    return compute(value, held);
  if (found->second.held != held)
    return emitError(value.getLoc())
           << "expects a vector that is used along rows or along columns, got "
              "one used both ways";
  return found->second.registers;
}

/// Values that depend on no register: made anew at each use.
FailureOr<NvvmEmitter::Registers> NvvmEmitter::compute(Value value, Held held) {
  auto type = cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  if (auto splat = dyn_cast_if_present<tile::SplatOp>(op)) {
    if (isPacked(type))
      return op->emitOpError() << "expects 32-bit elements, got " << type;
    return Registers(registerCount(type, held), scalar(splat.getValue()));
  }
  if (isa_and_present<tile::IotaOp>(op))
    return numbers(type, held);
  if (op && isElementwise(op))
    return emitPointwise(op, held);
  return emitError(value.getLoc())
         << "expects a tile that the role has computed, got none";
}

LogicalResult NvvmEmitter::emit(tile::ExpandOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  bool isColumns = op.getAxis() == 0;
  FailureOr<Registers> source =
      registersOf(op.getSource(), isColumns ? Held::Columns : Held::Rows);
  if (failed(source))
    return failure();
  Held held = heldBy(type);
  if (isColumns && held != Held::Matrix)
    return op.emitOpError() << "expects eight columns or more, got " << type;
  if (isBytes(type) || (isPacked(type) && isColumns))
    return op.emitOpError() << "expects 32-bit elements, got " << type;
  Registers registers;
  for (int64_t i = 0; i < registerCount(type, held); ++i) {
    bool isPair = isPacked(type) || held == Held::Parts;
    int64_t half = (isPair ? i : i / 2) % 2;
    registers.push_back((*source)[isColumns ? i / 4 * 2 + i % 2 : half]);
  }
  hold(op.getResult(), std::move(registers));
  return success();
}

/// f32 to packed pairs; the lower half is the lower column.
NvvmEmitter::Registers NvvmEmitter::narrow(ArrayRef<Value> source,
                                           Type element) {
  StringRef name =
      element.isBF16() ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn";
  auto pair = VectorType::get({2}, element);
  Registers registers;
  for (size_t i = 0; i < source.size(); i += 2) {
    Value packed = p_.intrinsic(name, pair, {source[i + 1], source[i]});
    registers.push_back(
        LLVM::BitcastOp::create(b_, p_.location(), p_.i32(), packed));
  }
  return registers;
}

/// Packed pairs to f32.
NvvmEmitter::Registers NvvmEmitter::widenPairs(ArrayRef<Value> source,
                                               Type element) {
  Registers registers;
  for (Value packed : source)
    for (int64_t half : {0, 1}) {
      if (element.isBF16()) { // the upper half of a float32
        Value bits = half ? p_.bitAnd(packed, p_.constant(-65536))
                          : arith::ShLIOp::create(b_, p_.location(), packed,
                                                  p_.constant(16));
        registers.push_back(
            LLVM::BitcastOp::create(b_, p_.location(), p_.f32(), bits));
        continue;
      }
      Value pair = LLVM::BitcastOp::create(
          b_, p_.location(), VectorType::get({2}, element), packed);
      Value one = LLVM::ExtractElementOp::create(b_, p_.location(), pair,
                                                 p_.constant(half));
      registers.push_back(
          LLVM::FPExtOp::create(b_, p_.location(), p_.f32(), one));
    }
  return registers;
}

LogicalResult NvvmEmitter::emit(tile::ConvertOp op) {
  auto sourceType = cast<RankedTensorType>(op.getSource().getType());
  auto type = cast<RankedTensorType>(op.getType());
  Type from = sourceType.getElementType(), to = type.getElementType();
  Held held = heldBy(type);
  bool narrows = from.isF32() && isPacked(type);
  bool widens = isPacked(sourceType) && to.isF32();
  bool toFew = isBytes(type) && (from.isF32() || from.isF16());
  bool isRows = held == Held::Rows && (from.isF16() || to.isF16());
  bool stays = from == to && (from.isF32() || from.isF16());
  if (!(stays || (held == Held::Matrix && (narrows || widens || toFew)) ||
        (isRows && (narrows || widens))))
    return op.emitOpError() << "expects f32 to a 16-bit float or back, or to "
                               "f8E4M3FN, got "
                            << sourceType << " to " << type;
  FailureOr<Registers> source = registersOf(op.getSource());
  if (failed(source))
    return failure();
  hold(op.getResult(), stays     ? *source
                       : isRows  ? convertRows(*source, from, to)
                       : toFew   ? toBytes(*source, from)
                       : narrows ? narrow(*source, to)
                                 : widenPairs(*source, from));
  return success();
}
