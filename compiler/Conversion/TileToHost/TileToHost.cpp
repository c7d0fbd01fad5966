// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-host: lowers specialised kernels to loops over vectors.
//
// A kernel becomes a function that runs one program of the grid:
//
//   tile.kernel @pool(%q: !tile.global<4 x f32>, …) parameters […] grid %q by
//   mask_block_q {…}
// becomes
//   llvm.func @pool(%args: !llvm.ptr, %program: i64, %scratch: !llvm.ptr
//   {llvm.noalias})
//       attributes {spargejit.static_scratch = …, spargejit.dynamic_scratch =
//       […]} {…}
//
// Lit file: tests/lit/Conversion/tile_to_host.mlir
#include "compiler/Conversion/TileToHost/HostEmitter.h"
#include "compiler/Transforms/Passes.h"

namespace mlir::sparge {
#define GEN_PASS_DEF_CONVERTTILETOHOSTPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

class ConvertTileToHost
    : public impl::ConvertTileToHostPassBase<ConvertTileToHost> {
public:
  using Base::Base;

  void runOnOperation() override {
    if (dotColumns < 1) {
      getOperation().emitError()
          << "expects dot-columns of 1 or more, got " << dotColumns.getValue();
      return signalPassFailure();
    }
    SmallVector<tile::KernelOp> kernels(
        getOperation().getOps<tile::KernelOp>());
    OpBuilder builder(&getContext());
    for (tile::KernelOp kernel : kernels) {
      if (!kernel->hasAttr("grid_tile")) {
        kernel.emitOpError() << "expects a specialised kernel, got symbolic "
                                "sizes; run tile-specialise first";
        return signalPassFailure();
      }
      if (failed(HostEmitter(kernel, builder, dotColumns).emit()))
        return signalPassFailure();
      kernel.erase();
    }
  }
};

} // namespace
} // namespace mlir::sparge
