// SPDX-License-Identifier: Apache-2.0
//
// f8E4M3FN on the host: bytes in memory, f32 in tiles. LLVM has no floats of
// eight bits, so both ways are arithmetic on the bits of f32, whose exponent
// has 120 more and whose mantissa 20 bits more.
#include "compiler/Conversion/TileToHost/HostEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;
using namespace mlir::sparge;

namespace {

constexpr int kShift = 20;
constexpr int32_t kExponentDifference = 120 << 23;
/// The first code that is not subnormal, and the distance of those below.
constexpr int32_t kFirstNormal = 8;
constexpr float kSubnormalStep = 0x1p-9F, kSmallestNormal = 0x1p-6F;
constexpr int32_t kSignBit = 0x80, kNan = 0x7F;
constexpr float kLargest = 448;

/// Constants and casts of one shape, scalar or vector.
class Shaped {
public:
  Shaped(OpBuilder &builder, Location location, Type like)
      : b_(builder), location_(location), vector_(dyn_cast<VectorType>(like)) {}

  Type type(Type element) const {
    return vector_ ? Type(vector_.cloneWith(std::nullopt, element)) : element;
  }
  Type i32() { return type(b_.getI32Type()); }
  Type f32() { return type(b_.getF32Type()); }
  Value constant(int32_t value) {
    return splat(i32(), b_.getI32IntegerAttr(value));
  }
  Value constant(float value) {
    return splat(f32(), b_.getF32FloatAttr(value));
  }
  template <typename Op, typename... Operands>
  Value make(Operands &&...operands) {
    return Op::create(b_, location_, std::forward<Operands>(operands)...);
  }
  Value bits(Value value) { return make<arith::BitcastOp>(i32(), value); }
  Value floats(Value value) { return make<arith::BitcastOp>(f32(), value); }
  Value andBits(Value value, int32_t mask) {
    return make<arith::AndIOp>(value, constant(mask));
  }

private:
  Value splat(Type to, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(to))
      value = DenseElementsAttr::get(vector, Attribute(value));
    return make<arith::ConstantOp>(value);
  }

  OpBuilder &b_;
  Location location_;
  VectorType vector_;
};

} // namespace

Type HostEmitter::storedType(Type element) {
  return isa<Float8E4M3FNType>(element)
             ? Type(IntegerType::get(element.getContext(), 8))
             : element;
}

/// Exact.
Value HostEmitter::fromEightBits(Value bytes) {
  Shaped m(b_, loc_, bytes.getType());
  Value wide = m.make<arith::ExtUIOp>(m.i32(), bytes);
  Value code = m.andBits(wide, kNan);
  Value shifted = m.make<arith::ShLIOp>(code, m.constant(int32_t{kShift}));
  Value normal =
      m.floats(m.make<arith::AddIOp>(shifted, m.constant(kExponentDifference)));
  Value subnormal = m.make<arith::MulFOp>(
      m.make<arith::SIToFPOp>(m.f32(), code), m.constant(kSubnormalStep));
  Value isSubnormal = m.make<arith::CmpIOp>(arith::CmpIPredicate::slt, code,
                                            m.constant(kFirstNormal));
  Value isNan =
      m.make<arith::CmpIOp>(arith::CmpIPredicate::eq, code, m.constant(kNan));
  Value magnitude = m.make<arith::SelectOp>(isSubnormal, subnormal, normal);
  magnitude = m.make<arith::SelectOp>(
      isNan, m.constant(std::numeric_limits<float>::quiet_NaN()), magnitude);
  Value sign =
      m.make<arith::ShLIOp>(m.andBits(wide, kSignBit), m.constant(int32_t{24}));
  return m.floats(m.make<arith::OrIOp>(m.bits(magnitude), sign));
}

/// To nearest, of two as near the even one; what is too large to the largest,
/// infinity as well; NaN to NaN.
Value HostEmitter::toEightBits(Value floats) {
  Shaped m(b_, loc_, floats.getType());
  Value all = m.bits(floats);
  Value magnitude = m.floats(m.andBits(all, 0x7FFFFFFF));
  Value isTooLarge = m.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, magnitude,
                                           m.constant(kLargest));
  Value bounded =
      m.make<arith::SelectOp>(isTooLarge, m.constant(kLargest), magnitude);
  // 2^20 times a power of two has the distance of codes there as its last bit.
  Value power = m.floats(m.andBits(m.bits(bounded), 0x7F800000));
  Value isNormal = m.make<arith::CmpFOp>(arith::CmpFPredicate::OGE, bounded,
                                         m.constant(kSmallestNormal));
  Value base =
      m.make<arith::SelectOp>(isNormal, power, m.constant(kSmallestNormal));
  Value magic = m.make<arith::MulFOp>(base, m.constant(0x1p20F));
  Value rounded =
      m.make<arith::SubFOp>(m.make<arith::AddFOp>(bounded, magic), magic);
  Value isRoundedNormal = m.make<arith::CmpFOp>(
      arith::CmpFPredicate::OGE, rounded, m.constant(kSmallestNormal));
  Value normal = m.make<arith::ShRUIOp>(
      m.make<arith::SubIOp>(m.bits(rounded), m.constant(kExponentDifference)),
      m.constant(int32_t{kShift}));
  // A whole number of steps, added to 2^23, is in the last bits.
  Value steps = m.make<arith::MulFOp>(rounded, m.constant(1 / kSubnormalStep));
  Value subnormal = m.andBits(
      m.bits(m.make<arith::AddFOp>(steps, m.constant(0x1p23F))), kNan);
  Value isNan =
      m.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, floats, floats);
  Value code = m.make<arith::SelectOp>(isRoundedNormal, normal, subnormal);
  code = m.make<arith::SelectOp>(isNan, m.constant(kNan), code);
  Value sign =
      m.andBits(m.make<arith::ShRUIOp>(all, m.constant(int32_t{24})), kSignBit);
  return m.make<arith::TruncIOp>(m.type(b_.getI8Type()),
                                 m.make<arith::OrIOp>(code, sign));
}
