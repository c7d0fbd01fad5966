// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of TileComputeOps.td.
#include "compiler/Dialect/Tile/TileDialect.h"
#include "compiler/Dialect/Tile/TileSizes.h"

using namespace mlir;
using namespace mlir::tile;

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult SplatOp::verify() {
  Type element = tensorType(getResult()).getElementType();
  if (element != getValue().getType()) // C1
    return emitOpError() << "expects elements of type " << getValue().getType()
                         << ", got " << element;
  return success();
}

LogicalResult IotaOp::verify() {
  RankedTensorType type = tensorType(getResult());
  if (type.getRank() != 1 || !type.getElementType().isInteger(32)) // C1
    return emitOpError() << "expects a rank-1 tensor of i32, got " << type;
  return success();
}

LogicalResult ExpandOp::verify() {
  RankedTensorType source = tensorType(getSource());
  RankedTensorType result = tensorType(getResult());
  if (source.getRank() != 1 || result.getRank() != 2 ||
      source.getElementType() != result.getElementType()) // C1
    return emitOpError()
           << "expects a rank-1 source and a rank-2 result of the "
              "same element type, got "
           << source << " and " << result;
  int64_t axis = getAxis();
  if (axis != 0 && axis != 1) // C2
    return emitOpError() << "expects axis 0 or 1, got " << axis;
  if (getSizes(source)[0] != getSizes(result)[1 - axis]) // C2
    return emitOpError() << "expects the source's size in dimension "
                         << 1 - axis << " of the result, got "
                         << printSizes(getSizes(source)) << " and "
                         << printSizes(getSizes(result));
  return success();
}

LogicalResult DotOp::verify() {
  RankedTensorType a = tensorType(getA()), b = tensorType(getB());
  RankedTensorType accumulator = tensorType(getAccumulator());
  if (a.getRank() != 2 || b.getRank() != 2 || accumulator.getRank() != 2) // C1
    return emitOpError() << "expects three tiles of rank 2, got ranks "
                         << a.getRank() << ", " << b.getRank() << ", "
                         << accumulator.getRank();
  SmallVector<Attribute> aSizes = getSizes(a), bSizes = getSizes(b);
  SmallVector<Attribute> sizes = getSizes(accumulator);
  if (getTransposed())
    std::swap(bSizes[0], bSizes[1]);
  if (aSizes[1] != bSizes[0] || sizes[0] != aSizes[0] ||
      sizes[1] != bSizes[1]) // C2
    return emitOpError() << "expects M x K times K x N into M x N, got "
                         << printSizes(aSizes) << " times "
                         << printSizes(bSizes) << " into " << printSizes(sizes);
  if (!accumulator.getElementType().isF32()) // C3
    return emitOpError() << "expects an accumulator of f32, got "
                         << accumulator.getElementType();
  return success();
}

LogicalResult ReduceOp::verify() {
  RankedTensorType source = tensorType(getSource());
  RankedTensorType result = tensorType(getResult());
  if (source.getRank() != 2 || result.getRank() != 1 ||
      source.getElementType() != result.getElementType() ||
      getSizes(source)[0] != getSizes(result)[0]) // C1
    return emitOpError()
           << "expects R x C into R of the same element type, got " << source
           << " into " << result;
  return success();
}

LogicalResult ScanOp::verify() {
  RankedTensorType source = tensorType(getSource());
  RankedTensorType carry = tensorType(getCarry());
  if (source.getRank() != 2 || !isa<IntegerType>(source.getElementType()) ||
      getResult().getType() != source) // C1
    return emitOpError() << "expects source and result of one rank-2 integer "
                            "type, got "
                         << source << " and " << getResult().getType();
  if (carry.getRank() != 1 || getSizes(carry)[0] != getSizes(source)[0] ||
      carry.getElementType() != source.getElementType()) // C2
    return emitOpError() << "expects a carry with the source's rows and "
                            "elements, got "
                         << carry;
  return success();
}
