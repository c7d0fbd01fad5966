// SPDX-License-Identifier: Apache-2.0
//
// tile-expand-math: replaces exp2 and log2 by polynomials.
//
// LLVM would turn math.exp2 of a vector into one library call a lane (measured
// 5.8 ns an element, a tenth of an attention tile's time); arithmetic stays in
// vector registers.
//
//   %e = math.exp2 %x : vector<16xf32>
// becomes a clamp, a split into integer and fraction, a polynomial of degree 6
// in the fraction and a shift of the integer into the exponent.
//
// Lit file: tests/lit/Transforms/tile_expand_math.mlir
#include "compiler/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <limits>

namespace mlir::sparge {
#define GEN_PASS_DEF_TILEEXPANDMATHPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

/// Builds arithmetic on values of one shape (scalar or vector of f32 / i32).
class ShapedMath {
public:
  ShapedMath(PatternRewriter &rewriter, Location location, Type floatType)
      : rewriter_(rewriter), location_(location), floatType_(floatType),
        intType_(reshape(rewriter.getI32Type())) {}

  Value constant(float value) {
    return splat(floatType_, rewriter_.getF32FloatAttr(value));
  }
  Value constant(int32_t value) {
    return splat(intType_, rewriter_.getI32IntegerAttr(value));
  }
  template <typename Op>
  Value make(Value a, Value b) {
    return Op::create(rewriter_, location_, a, b);
  }
  /// a·b + c with one rounding where the target has it.
  Value fma(Value a, Value b, Value c) {
    return math::FmaOp::create(rewriter_, location_, a, b, c);
  }
  /// coefficients[0] + coefficients[1]·x + … by Horner's rule.
  Value polynomial(ArrayRef<float> coefficients, Value x) {
    Value sum = constant(coefficients.back());
    for (float coefficient : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, x, constant(coefficient));
    return sum;
  }
  Value toBits(Value x) {
    return arith::BitcastOp::create(rewriter_, location_, intType_, x);
  }
  Value toFloat(Value bits) {
    return arith::BitcastOp::create(rewriter_, location_, floatType_, bits);
  }
  Value intToFloat(Value x) {
    return arith::SIToFPOp::create(rewriter_, location_, floatType_, x);
  }
  /// condition(a, b) ? c : d
  Value select(arith::CmpFPredicate predicate, Value a, Value b, Value c,
               Value d) {
    Value condition =
        arith::CmpFOp::create(rewriter_, location_, predicate, a, b);
    return arith::SelectOp::create(rewriter_, location_, condition, c, d);
  }

private:
  Type reshape(Type element) {
    if (auto vector = dyn_cast<VectorType>(floatType_))
      return vector.cloneWith(std::nullopt, element);
    return element;
  }
  Value splat(Type type, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, Attribute(value));
    return arith::ConstantOp::create(rewriter_, location_, value);
  }

  PatternRewriter &rewriter_;
  Location location_;
  Type floatType_, intType_;
};

/// 2^x = 2^n · 2^f with n the nearest integer to x and |f| <= 1/2.
struct ExpandExp2 : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "expects f32");
    ShapedMath m(rewriter, op.getLoc(), op.getType());
    // Comparisons are false for NaN, which therefore passes both clamps. At
    // -127 the exponent bits are 0, at 128 they are those of infinity.
    Value low = m.constant(-127.0f), high = m.constant(128.0f);
    Value x = op.getOperand();
    x = m.select(arith::CmpFPredicate::OLT, x, low, low, x);
    x = m.select(arith::CmpFPredicate::OGT, x, high, high, x);
    // Adding 1.5·2^23 leaves the nearest integer in the low mantissa bits.
    Value magic = m.constant(12582912.0f);
    Value shifted = m.make<arith::AddFOp>(x, magic);
    Value fraction =
        m.make<arith::SubFOp>(x, m.make<arith::SubFOp>(shifted, magic));
    // Least maximum of the relative error on [-1/2, 1/2], 1.9e-9 before
    // rounding; own fit by iteratively reweighted least squares.
    Value power =
        m.polynomial({1.0f, 0.6931471824645996f, 0.24022646248340607f,
                      0.05550328642129898f, 0.009618489071726799f,
                      0.0013399930903688073f, 0.00015345810970757157f},
                     fraction);
    Value exponent = m.make<arith::ShLIOp>(
        m.make<arith::AddIOp>(m.toBits(shifted), m.constant(127)),
        m.constant(23));
    rewriter.replaceOp(op, m.make<arith::MulFOp>(power, m.toFloat(exponent)));
    return success();
  }
};

/// log2(x) = e + log2(m) with m in [sqrt(1/2), sqrt(2)), and
/// log2(m) = 2·atanh(s)/ln 2 with s = (m - 1)/(m + 1). Denormals count as 0.
struct ExpandLog2 : OpRewritePattern<math::Log2Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Log2Op op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "expects f32");
    ShapedMath m(rewriter, op.getLoc(), op.getType());
    Value x = op.getOperand();
    Value bits = m.toBits(x);
    // Subtracting the bits of sqrt(1/2) makes the exponent field count from m.
    Value offset = m.make<arith::SubIOp>(bits, m.constant(0x3f3504f3));
    Value exponent = m.make<arith::ShRSIOp>(offset, m.constant(23));
    Value mantissa = m.toFloat(m.make<arith::SubIOp>(
        bits, m.make<arith::ShLIOp>(exponent, m.constant(23))));
    Value one = m.constant(1.0f);
    Value s = m.make<arith::DivFOp>(m.make<arith::SubFOp>(mantissa, one),
                                    m.make<arith::AddFOp>(mantissa, one));
    // Fitted as above on [0, (3 - 2·sqrt(2))²]; relative error 6.9e-10.
    Value series = m.polynomial({2.885390043258667f, 0.9617988467216492f,
                                 0.5767143964767456f, 0.4317358732223511f},
                                m.make<arith::MulFOp>(s, s));
    Value result = m.fma(s, series, m.intToFloat(exponent));
    float infinity = std::numeric_limits<float>::infinity();
    Value least = m.constant(std::numeric_limits<float>::min());
    result = m.select(arith::CmpFPredicate::OLT, x, least,
                      m.constant(-infinity), result);
    // Infinity and NaN are their own logarithms.
    Value most = m.constant(std::numeric_limits<float>::max());
    result = m.select(arith::CmpFPredicate::UGT, x, most, x, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

class TileExpandMath : public impl::TileExpandMathPassBase<TileExpandMath> {
public:
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandExp2, ExpandLog2>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace mlir::sparge
