// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of TileAsyncDots.td.
#include "compiler/Dialect/Tile/TileAsync.h"
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

using namespace mlir;
using namespace mlir::tile;

namespace {

/// Sizes and elements of a tensor or of a shared tile.
struct Matrix {
  SmallVector<Attribute> sizes;
  Type element;
};

Matrix describe(Type type) {
  if (auto shared = dyn_cast<SharedType>(type))
    return {llvm::to_vector(shared.getSizes().getSizes()),
            shared.getElementType()};
  auto tensor = cast<RankedTensorType>(type);
  return {getSizes(tensor), tensor.getElementType()};
}

bool isMultiple(Attribute size, int64_t of, int64_t most) {
  std::optional<int64_t> fixed = getFixed(size);
  return !fixed || (*fixed % of == 0 && *fixed <= most);
}

/// The tensor behind a value that may be pending.
RankedTensorType settled(Type type) {
  if (auto pending = dyn_cast<PendingType>(type))
    return pending.getTensor();
  return cast<RankedTensorType>(type);
}

} // namespace

/// Sizes of the left operand whose stack has these.
static SmallVector<Attribute> unstack(ArrayRef<Attribute> stack, Attribute rows,
                                      Attribute inner) {
  std::optional<int64_t> all = getFixed(stack[1]), m = getFixed(rows),
                         k = getFixed(inner);
  bool matches = getFixed(stack[0]) == 16 &&
                 (!all || !m || !k || (*k % 16 == 0 && *all == *k / 16 * *m));
  return matches ? SmallVector<Attribute>{rows, inner} : llvm::to_vector(stack);
}

LogicalResult DotAsyncOp::verify() {
  Matrix a = describe(getA().getType()), b = describe(getB().getType());
  if (a.sizes.size() != 2 || b.sizes.size() != 2) // C1
    return emitOpError() << "expects a and b of rank 2, got ranks "
                         << a.sizes.size() << " and " << b.sizes.size();
  RankedTensorType result = getType().getTensor();
  SmallVector<Attribute> sizes = getSizes(result);
  if (getTransposed())
    std::swap(b.sizes[0], b.sizes[1]);
  if (getStacked()) {
    auto stack = dyn_cast<SharedType>(getA().getType());
    bool isCores = stack && getFixed(stack.getSwizzle()) == 16;
    bool isShort =
        isa<ElementType>(a.element) || a.element.getIntOrFloatBitWidth() == 16;
    if (!isCores || !isShort || getTransposed()) // C8
      return emitOpError() << "expects a stack of 16-bit elements in panels of "
                              "16 bytes and b not transposed, got "
                           << getA().getType();
    a.sizes = unstack(a.sizes, sizes[0], b.sizes[0]);
  }
  if (a.sizes[1] != b.sizes[0] || sizes[0] != a.sizes[0] ||
      sizes[1] != b.sizes[1]) // C2
    return emitOpError() << "expects M x K times K x N into M x N, got "
                         << printSizes(a.sizes) << " times "
                         << printSizes(b.sizes) << " into "
                         << printSizes(sizes);
  if (a.element != b.element) // C3
    return emitOpError() << "expects a and b of one element type, got "
                         << a.element << " and " << b.element;
  if (getAccumulator() && settled(getAccumulator().getType()) != result) // C4
    return emitOpError() << "expects an accumulator of " << result << ", got "
                         << settled(getAccumulator().getType());
  bool inRegisters = isa<RankedTensorType>(getA().getType());
  if (getWithin() && !inRegisters) // C9
    return emitOpError() << "expects a in registers where it is within some "
                            "columns, got "
                         << getA().getType();
  bool isByte =
      a.element.isIntOrFloat() && a.element.getIntOrFloatBitWidth() == 8;
  if (isByte && (!isa<Float8E4M3FNType>(a.element) || !getTransposed() ||
                 !isMultiple(a.sizes[1], 32, INT64_MAX))) // C6
    return emitOpError()
           << "expects 8-bit elements to be f8E4M3FN, b transposed "
              "and K a multiple of 32, got "
           << printSizes(a.sizes) << " of " << a.element
           << (getTransposed() ? "" : " and b not transposed");
  if (result.getElementType().isF16() && !isByte && !a.element.isF16() &&
      !isa<ElementType>(a.element)) // C7
    return emitOpError() << "expects sums in f32 for elements of " << a.element
                         << ", got " << result.getElementType();
  if (!isMultiple(sizes[1], 8, 256) || !isMultiple(sizes[0], 64, INT64_MAX) ||
      (inRegisters && !isMultiple(a.sizes[1], 16, INT64_MAX))) // C5
    return emitOpError()
           << "expects N to be a multiple of 8 up to 256, M of 64, "
              "and K of 16 with a in registers, got "
           << printSizes(a.sizes) << " times " << printSizes(b.sizes);
  return success();
}

LogicalResult DotWaitOp::verify() {
  int64_t pending = getPending();
  if (pending < 0 || pending > 7) // C1
    return emitOpError() << "expects 0 to 7 pending dots, got " << pending;
  TypeRange operands = getValues().getTypes();
  if (getNumResults() != operands.size()) // C2
    return emitOpError() << "expects a result for each operand, got "
                         << getNumResults() << " for " << operands.size();
  for (auto [operand, result] : llvm::zip(operands, getResultTypes()))
    if (settled(operand) != result) // C2
      return emitOpError() << "expects the operand's tensor "
                           << settled(operand) << ", got " << result;
  if (llvm::none_of(operands, llvm::IsaPred<PendingType>)) // C3
    return emitOpError() << "expects a pending operand, got none";
  for (Type after : getAfter().getTypes())
    if (Type element = cast<RankedTensorType>(after).getElementType();
        !element.isF32() && !element.isF16() && !element.isInteger(32) &&
        !isa<ElementType>(element)) // C4
      return emitOpError()
             << "expects to wait after tensors of f32, f16 or i32, got "
             << after;
  return success();
}

LogicalResult ConvertOp::verify() {
  if (getSizes(getSource().getType()) != getSizes(getType())) // C1
    return emitOpError() << "expects the source's sizes "
                         << printSizes(getSizes(getSource().getType()))
                         << ", got " << printSizes(getSizes(getType()));
  return success();
}

LogicalResult ReducePartialOp::verify() {
  RankedTensorType source = getSource().getType(), result = getType();
  bool fits = source.getRank() == 2 && result.getRank() == 2 &&
              source.getElementType() == result.getElementType() &&
              getSizes(source)[0] == getSizes(result)[0] &&
              getFixed(getSizes(result)[1]) == 4;
  if (!fits) // C1
    return emitOpError()
           << "expects R x C into R x 4 of the same element type, "
              "got "
           << source << " into " << result;
  return success();
}

LogicalResult WarpAnyOp::verify() {
  RankedTensorType source = getSource().getType();
  if (!source.getElementType().isInteger(1)) // C1
    return emitOpError() << "expects a tensor of i1, got " << source;
  return verifyInWarpgroupRole(*this); // C2
}

LogicalResult WarpDotOp::verify() {
  Matrix a = describe(getA().getType()), b = describe(getB().getType());
  SmallVector<Attribute> sizes = getSizes(getType());
  if (a.sizes.size() != 2 || b.sizes.size() != 2 || sizes.size() != 2 ||
      a.sizes[1] != b.sizes[1] || sizes[0] != a.sizes[0] ||
      sizes[1] != b.sizes[0]) // C1
    return emitOpError() << "expects M x K and N x K into M x N, got "
                         << printSizes(a.sizes) << " and "
                         << printSizes(b.sizes) << " into "
                         << printSizes(sizes);
  if (a.element != b.element || !getType().getElementType().isF32()) // C2
    return emitOpError() << "expects a and b of one element type into f32, got "
                         << a.element << " and " << b.element << " into "
                         << getType().getElementType();
  return verifyInWarpgroupRole(*this); // C3
}

LogicalResult AnyOp::verify() {
  RankedTensorType source = getSource().getType();
  if (source.getRank() != 1 || !source.getElementType().isInteger(1)) // C1
    return emitOpError() << "expects a rank-1 tensor of i1, got " << source;
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (kernel && !kernel.getBody().getOps<TeamOp>().empty())
    return success();
  return verifyInOneWarpRole(*this); // C2
}
