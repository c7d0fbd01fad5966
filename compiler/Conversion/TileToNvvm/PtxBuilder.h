// SPDX-License-Identifier: Apache-2.0
//
// Small pieces of IR for a GPU kernel: 32-bit arithmetic, inline PTX, shuffles,
// shared memory by 32-bit address.
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::sparge {

class PtxBuilder {
public:
  explicit PtxBuilder(OpBuilder &builder, Location location)
      : b_(builder), loc_(location) {}

  void setLocation(Location location) { loc_ = location; }
  Location location() const { return loc_; }
  OpBuilder &builder() { return b_; }

  Type i1() { return b_.getI1Type(); }
  Type i32() { return b_.getI32Type(); }
  Type i64() { return b_.getI64Type(); }
  Type f32() { return b_.getF32Type(); }

  Value constant(int64_t value);
  Value constant64(int64_t value);
  Value constantLike(Type type, TypedAttr value);
  Value add(Value a, Value b);
  Value add(Value a, int64_t b) { return b == 0 ? a : add(a, constant(b)); }
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value mul(Value a, int64_t b) { return mul(a, constant(b)); }
  Value divide(Value a, Value b);
  Value divide(Value a, int64_t b) { return divide(a, constant(b)); }
  Value remainder(Value a, Value b);
  Value remainder(Value a, int64_t b) { return remainder(a, constant(b)); }
  Value bitXor(Value a, Value b);
  Value bitXor(Value a, int64_t b) { return bitXor(a, constant(b)); }
  Value bitAnd(Value a, Value b);
  Value signExtend(Value a);
  Value equals(Value a, int64_t b);
  Value less(Value a, Value b);
  Value lessUnsigned(Value a, Value b);
  Value select(Value condition, Value a, Value b);

  /// Inline PTX with side effects on memory; `$0` … are results, then operands.
  SmallVector<Value> ptx(StringRef text, StringRef constraints,
                         ValueRange operands, TypeRange results = {});
  /// Inline PTX whose results depend on its operands alone.
  SmallVector<Value> purePtx(StringRef text, StringRef constraints,
                             ValueRange operands, TypeRange results);
  /// One instruction of PTX, without results, in the threads where `condition`
  /// holds. Predicated rather than branched around: the assembler takes a loop
  /// for divergent when a branch in it ends at the loop's head.
  void ptxWhere(Value condition, StringRef text, StringRef constraints,
                ValueRange operands);
  /// A pure LLVM intrinsic with one result.
  Value intrinsic(StringRef name, Type result, ValueRange operands);

  /// `value` (i32), which is the same in all lanes, in a form that the
  /// assembler knows to be so and keeps in a uniform register.
  Value uniform(Value value);
  /// The value of lane `lane`, the same in all lanes.
  Value fromLane(Value value, Value lane);
  /// The value, of 32 or 64 bits, of the lane whose number differs in `mask`.
  Value fromLaneXor(Value value, int64_t mask);
  /// Orders the warp's memory accesses before with those after.
  void syncWarp();

  Value loadShared(Type type, Value address);
  /// One, two or four words at a multiple of as many words.
  SmallVector<Value> loadSharedWords(Value address, int64_t count);
  /// Of 32 bits.
  void storeSharedWhere(Value condition, Value value, Value address);
  Value loadGlobal(Type type, Value pointer);
  /// Of 32 bits.
  void storeGlobalWhere(Value condition, Value value, Value pointer);
  /// `base` (global, i64 address) + `elements` (i64).
  Value globalPointer(Value base, Type element, Value elements);

private:
  SmallVector<Value> inlinePtx(StringRef text, StringRef constraints,
                               ValueRange operands, TypeRange results,
                               bool hasSideEffects);

  OpBuilder &b_;
  Location loc_;
};

} // namespace mlir::sparge
