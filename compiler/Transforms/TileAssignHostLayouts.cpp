// SPDX-License-Identifier: Apache-2.0
//
// tile-assign-host-layouts: chooses where the elements of each matrix live.
//
// On the CPU a dot keeps rows of its left operand and of its result in vector
// lanes and broadcasts single elements of its right operand. So right operands
// are row-major and everything else is in panels of 16 rows.
//
//   %s = tile.dot %q, %k transposed, %zero : tensor<64x8xf32>, tensor<16x8xf32>
//   -> …
// becomes
//   … : tensor<64x8xf32, #tile.layout<panels>>, tensor<16x8xf32,
//   #tile.layout<rows>> -> …
//
// Lit file: tests/lit/Transforms/tile_assign_host_layouts.mlir
#include "compiler/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::sparge {
#define GEN_PASS_DEF_TILEASSIGNHOSTLAYOUTSPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

RankedTensorType matrixType(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 2 ? type : RankedTensorType();
}

void setLayout(Value value, tile::LayoutKind kind) {
  RankedTensorType type = matrixType(value);
  value.setType(
      RankedTensorType::get(type.getShape(), type.getElementType(),
                            tile::LayoutAttr::get(type.getContext(), kind)));
}

class TileAssignHostLayouts
    : public impl::TileAssignHostLayoutsPassBase<TileAssignHostLayouts> {
public:
  void runOnOperation() override {
    llvm::SetVector<Value> rows;
    getOperation().walk([&](tile::DotOp dot) { rows.insert(dot.getB()); });
    for (Value value : rows)
      if (failed(checkRightOperand(value)))
        return signalPassFailure();

    getOperation().walk([&](Operation *op) {
      for (Value result : op->getResults())
        assign(result, rows);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (Value argument : block.getArguments())
            assign(argument, rows);
    });
  }

private:
  static void assign(Value value, const llvm::SetVector<Value> &rows) {
    if (matrixType(value))
      setLayout(value, rows.contains(value) ? tile::LayoutKind::Rows
                                            : tile::LayoutKind::Panels);
  }

  /// A right operand comes straight from memory and is nothing else.
  static LogicalResult checkRightOperand(Value value) {
    Operation *producer = value.getDefiningOp();
    if (!isa_and_present<tile::LoadOp, tile::GatherOp>(producer))
      return emitError(value.getLoc())
             << "expects the right operand of a dot to come from tile.load or "
                "tile.gather, got "
             << (producer ? producer->getName().getStringRef()
                          : StringRef("a block argument"));
    for (OpOperand &use : value.getUses()) {
      auto dot = dyn_cast<tile::DotOp>(use.getOwner());
      if (!dot ||
          use.getOperandNumber() != dot.getBMutable().getOperandNumber())
        return use.getOwner()->emitOpError()
               << "expects no other use of a dot's right operand, got one; "
                  "load "
                  "it twice";
    }
    return success();
  }
};

} // namespace
} // namespace mlir::sparge
