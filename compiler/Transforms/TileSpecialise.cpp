// SPDX-License-Identifier: Apache-2.0
//
// tile-specialise: binds the symbolic sizes, flags and element types of
// kernels.
//
// Kernel text is written once; a problem decides head dimension, mask block,
// data type and tile sizes. After this pass everything about sizes is fixed.
//
//   %n = tile.parameter "tile_q" : index
//   %s = tile.splat %x : f32 -> tensor<?x?xf32, #tile.sizes<tile_q, 16>>
// becomes, with tile_q=64,
//   %n = arith.constant 64 : index
//   %s = tile.splat %x : f32 -> tensor<64x16xf32>
//
// Lit file: tests/lit/Transforms/tile_specialise.mlir
#include "compiler/Transforms/Passes.h"

#include "llvm/ADT/StringMap.h"
#include "mlir/IR/AttrTypeSubElements.h"

namespace mlir::sparge {
#define GEN_PASS_DEF_TILESPECIALISEPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

/// A parameter's value: a size or flag, or an element type.
struct Binding {
  std::optional<int64_t> size;
  Type element;
};

/// "float32" and its like, or null.
Type elementTypeFromName(MLIRContext *context, StringRef name) {
  if (name == "float32")
    return Float32Type::get(context);
  if (name == "bfloat16")
    return BFloat16Type::get(context);
  if (name == "float16")
    return Float16Type::get(context);
  return {};
}

class TileSpecialise : public impl::TileSpecialisePassBase<TileSpecialise> {
public:
  using Base::Base;

  void runOnOperation() override {
    if (failed(readBindings()))
      return signalPassFailure();
    WalkResult walk = getOperation().walk([&](tile::KernelOp kernel) {
      return failed(specialise(kernel)) ? WalkResult::interrupt()
                                        : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult readBindings() {
    bindings_.clear();
    for (const std::string &pair : parameters) {
      auto [name, text] = StringRef(pair).split('=');
      Binding binding;
      int64_t size = 0;
      if (!text.getAsInteger(10, size))
        binding.size = size;
      else
        binding.element = elementTypeFromName(&getContext(), text);
      if (!binding.size && !binding.element)
        return getOperation().emitError()
               << "expects parameter '" << name
               << "' to be an integer or float32, bfloat16, float16, got '"
               << text << "'";
      bindings_[name] = binding;
    }
    return success();
  }

  /// Each declared parameter has a value of the kind its uses need.
  LogicalResult checkBindings(tile::KernelOp kernel) {
    for (StringRef name : kernel.getParameters().getAsValueRange<StringAttr>())
      if (!bindings_.contains(name))
        return kernel.emitOpError()
               << "expects a value for parameter '" << name << "', got none";
    return success();
  }

  std::optional<int64_t> sizeOf(Attribute size) {
    if (auto fixed = dyn_cast<IntegerAttr>(size))
      return fixed.getInt();
    return bindings_.lookup(cast<StringAttr>(size).getValue()).size;
  }

  Type specialiseTensor(RankedTensorType type, tile::SizesAttr symbolic) {
    SmallVector<int64_t> shape;
    for (Attribute size : symbolic.getSizes()) {
      std::optional<int64_t> fixed = sizeOf(size);
      if (!fixed || *fixed <= 0)
        return {};
      shape.push_back(*fixed);
    }
    return RankedTensorType::get(shape, type.getElementType());
  }

  LogicalResult specialise(tile::KernelOp kernel) {
    if (failed(checkBindings(kernel)))
      return failure();
    AttrTypeReplacer replacer;
    bool bad = false;
    // Elements first: the sizes' replacement must find them already replaced.
    replacer.addReplacement([&](tile::ElementType type) -> std::optional<Type> {
      Type element = bindings_.lookup(type.getName()).element;
      bad |= !element;
      return element ? element : Type(type);
    });
    replacer.addReplacement([&](tile::ScratchType type) -> std::optional<Type> {
      std::optional<int64_t> rows = sizeOf(type.getRows());
      bad |= !rows;
      return tile::ScratchType::get(
          type.getContext(),
          Builder(type.getContext()).getI64IntegerAttr(rows.value_or(1)),
          type.getElementType());
    });
    // Sizes that are not a tensor's: of shared memory, roles and rings.
    replacer.addReplacement([&](tile::SizesAttr attr)
                                -> std::optional<Attribute> {
      SmallVector<Attribute> sizes;
      for (Attribute size : attr.getSizes()) {
        std::optional<int64_t> fixed = sizeOf(size);
        // What the text itself says, its verifiers have seen.
        bad |= !fixed || (*fixed <= 0 && !isa<IntegerAttr>(size));
        sizes.push_back(
            Builder(attr.getContext()).getI64IntegerAttr(fixed.value_or(1)));
      }
      return tile::SizesAttr::get(attr.getContext(), sizes);
    });
    replacer.addReplacement([&](RankedTensorType type)
                                -> std::optional<std::pair<Type, WalkResult>> {
      auto symbolic = dyn_cast_if_present<tile::SizesAttr>(type.getEncoding());
      if (!symbolic)
        return std::nullopt;
      Type element = replacer.replace(type.getElementType());
      Type result =
          element
              ? specialiseTensor(RankedTensorType::get({}, element), symbolic)
              : Type();
      bad |= !result;
      return std::make_pair(result ? result : Type(type), WalkResult::skip());
    });
    replacer.recursivelyReplaceElementsIn(kernel, /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    if (bad)
      return kernel.emitOpError()
             << "expects positive integers for sizes and data types for "
                "elements, got a parameter of the other kind";
    return replaceParameters(kernel);
  }

  LogicalResult replaceParameters(tile::KernelOp kernel) {
    SmallVector<tile::ParameterOp> parameterOps;
    kernel.walk([&](tile::ParameterOp op) { parameterOps.push_back(op); });
    for (tile::ParameterOp op : parameterOps) {
      std::optional<int64_t> value = bindings_.lookup(op.getName()).size;
      if (!value)
        return op.emitOpError() << "expects an integer for parameter '"
                                << op.getName() << "', got a data type";
      OpBuilder builder(op);
      TypedAttr constant = op.getType().isIndex()
                               ? TypedAttr(builder.getIndexAttr(*value))
                               : TypedAttr(builder.getBoolAttr(*value != 0));
      Value replacement =
          arith::ConstantOp::create(builder, op.getLoc(), constant);
      op.replaceAllUsesWith(replacement);
      op.erase();
    }
    // What used to be symbolic is fixed; the grid's tile is needed by name.
    std::optional<int64_t> gridTile =
        bindings_.lookup(kernel.getGridParameter()).size;
    if (!gridTile || *gridTile <= 0)
      return kernel.emitOpError()
             << "expects a positive integer for the grid's parameter, got a "
                "data type or a number below 1";
    kernel->setAttr("grid_tile",
                    Builder(&getContext()).getI64IntegerAttr(*gridTile));
    return success();
  }

  llvm::StringMap<Binding> bindings_;
};

} // namespace
} // namespace mlir::sparge
