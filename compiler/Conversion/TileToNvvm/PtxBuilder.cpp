// SPDX-License-Identifier: Apache-2.0
//
// Small pieces of IR for a GPU kernel.
#include "compiler/Conversion/TileToNvvm/PtxBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::sparge;

/// PTX state spaces as LLVM address spaces.
static constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

Value PtxBuilder::constant(int64_t value) {
  return arith::ConstantIntOp::create(b_, loc_, value, 32);
}
Value PtxBuilder::constant64(int64_t value) {
  return arith::ConstantIntOp::create(b_, loc_, value, 64);
}
Value PtxBuilder::constantLike(Type type, TypedAttr value) {
  return arith::ConstantOp::create(b_, loc_, type, value);
}
Value PtxBuilder::add(Value a, Value b) {
  return arith::AddIOp::create(b_, loc_, a, b);
}
Value PtxBuilder::sub(Value a, Value b) {
  return arith::SubIOp::create(b_, loc_, a, b);
}
Value PtxBuilder::mul(Value a, Value b) {
  return arith::MulIOp::create(b_, loc_, a, b);
}
Value PtxBuilder::divide(Value a, Value b) {
  return arith::DivUIOp::create(b_, loc_, a, b);
}
Value PtxBuilder::remainder(Value a, Value b) {
  return arith::RemUIOp::create(b_, loc_, a, b);
}
Value PtxBuilder::bitXor(Value a, Value b) {
  return arith::XOrIOp::create(b_, loc_, a, b);
}
Value PtxBuilder::bitAnd(Value a, Value b) {
  return arith::AndIOp::create(b_, loc_, a, b);
}
Value PtxBuilder::signExtend(Value a) {
  return arith::ExtSIOp::create(b_, loc_, i64(), a);
}
Value PtxBuilder::equals(Value a, int64_t b) {
  return arith::CmpIOp::create(b_, loc_, arith::CmpIPredicate::eq, a,
                               constant(b));
}
Value PtxBuilder::less(Value a, Value b) {
  return arith::CmpIOp::create(b_, loc_, arith::CmpIPredicate::slt, a, b);
}
Value PtxBuilder::lessUnsigned(Value a, Value b) {
  return arith::CmpIOp::create(b_, loc_, arith::CmpIPredicate::ult, a, b);
}
Value PtxBuilder::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(b_, loc_, condition, a, b);
}

SmallVector<Value> PtxBuilder::inlinePtx(StringRef text, StringRef constraints,
                                         ValueRange operands, TypeRange results,
                                         bool hasSideEffects) {
  Type type;
  if (results.size() == 1)
    type = results.front();
  else if (results.size() > 1)
    type = LLVM::LLVMStructType::getLiteral(b_.getContext(),
                                            llvm::to_vector(results));
  auto dialect =
      LLVM::AsmDialectAttr::get(b_.getContext(), LLVM::AsmDialect::AD_ATT);
  auto assembly = LLVM::InlineAsmOp::create(
      b_, loc_, type, operands, text, constraints, hasSideEffects,
      /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None, dialect,
      /*operand_attrs=*/ArrayAttr());
  SmallVector<Value> values;
  if (results.size() == 1)
    values.push_back(assembly.getResult(0));
  else
    for (size_t i = 0; i < results.size(); ++i)
      values.push_back(LLVM::ExtractValueOp::create(
          b_, loc_, assembly.getResult(0), static_cast<int64_t>(i)));
  return values;
}

SmallVector<Value> PtxBuilder::ptx(StringRef text, StringRef constraints,
                                   ValueRange operands, TypeRange results) {
  return inlinePtx(text, constraints, operands, results, true);
}

SmallVector<Value> PtxBuilder::purePtx(StringRef text, StringRef constraints,
                                       ValueRange operands, TypeRange results) {
  return inlinePtx(text, constraints, operands, results, false);
}

void PtxBuilder::ptxWhere(Value condition, StringRef text,
                          StringRef constraints, ValueRange operands) {
  SmallVector<Value> all(operands);
  all.push_back(condition);
  std::string guard = "@$" + std::to_string(operands.size()) + " ";
  std::string allConstraints = constraints.str();
  if (!allConstraints.empty())
    allConstraints += ",";
  ptx(guard + text.str(), allConstraints + "b,~{memory}", all);
}

Value PtxBuilder::intrinsic(StringRef name, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b_, loc_, result, b_.getStringAttr(name),
                                       operands)
      ->getResult(0);
}

Value PtxBuilder::uniform(Value value) {
  return intrinsic("llvm.nvvm.redux.sync.or", i32(), {value, constant(-1)});
}
Value PtxBuilder::fromLane(Value value, Value lane) {
  return NVVM::ShflOp::create(b_, loc_, value.getType(), constant(-1), value,
                              lane, constant(31), NVVM::ShflKind::idx,
                              UnitAttr());
}
Value PtxBuilder::fromLaneXor(Value value, int64_t mask) {
  if (value.getType().getIntOrFloatBitWidth() == 64) {
    auto halves = VectorType::get({2}, i32());
    Value parts = LLVM::BitcastOp::create(b_, loc_, halves, value);
    Value result = LLVM::UndefOp::create(b_, loc_, halves);
    for (int64_t half : {0, 1}) {
      Value part =
          LLVM::ExtractElementOp::create(b_, loc_, parts, constant(half));
      result = LLVM::InsertElementOp::create(
          b_, loc_, result, fromLaneXor(part, mask), constant(half));
    }
    return LLVM::BitcastOp::create(b_, loc_, value.getType(), result);
  }
  return NVVM::ShflOp::create(b_, loc_, value.getType(), constant(-1), value,
                              constant(mask), constant(31),
                              NVVM::ShflKind::bfly, UnitAttr());
}
void PtxBuilder::syncWarp() {
  NVVM::SyncWarpOp::create(b_, loc_, constant(-1));
}

static Value sharedPointer(OpBuilder &b, Location loc, Value address) {
  auto type = LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace);
  return LLVM::IntToPtrOp::create(b, loc, type, address);
}

Value PtxBuilder::loadShared(Type type, Value address) {
  return LLVM::LoadOp::create(b_, loc_, type, sharedPointer(b_, loc_, address),
                              /*alignment=*/4);
}
SmallVector<Value> PtxBuilder::loadSharedWords(Value address, int64_t count) {
  if (count == 1)
    return {loadShared(i32(), address)};
  auto type = VectorType::get({count}, i32());
  Value loaded =
      LLVM::LoadOp::create(b_, loc_, type, sharedPointer(b_, loc_, address),
                           static_cast<unsigned>(4 * count));
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(
        LLVM::ExtractElementOp::create(b_, loc_, loaded, constant(i)));
  return words;
}
void PtxBuilder::storeSharedWhere(Value condition, Value value, Value address) {
  ptxWhere(condition, "st.shared.b32 [$0], $1;",
           value.getType().isF32() ? "r,f" : "r,r", {address, value});
}
Value PtxBuilder::loadGlobal(Type type, Value pointer) {
  return LLVM::LoadOp::create(b_, loc_, type, pointer);
}
void PtxBuilder::storeGlobalWhere(Value condition, Value value, Value pointer) {
  ptxWhere(condition, "st.global.b32 [$0], $1;",
           value.getType().isF32() ? "l,f" : "l,r", {pointer, value});
}
Value PtxBuilder::globalPointer(Value base, Type element, Value elements) {
  auto type = LLVM::LLVMPointerType::get(b_.getContext(), kGlobalSpace);
  if (element.isIntOrFloat() && element.getIntOrFloatBitWidth() == 8)
    element = b_.getI8Type(); // LLVM knows no floats of eight bits
  return LLVM::GEPOp::create(b_, loc_, type, element, base,
                             ArrayRef<LLVM::GEPArg>{elements});
}
