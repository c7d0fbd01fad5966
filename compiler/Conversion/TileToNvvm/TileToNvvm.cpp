// SPDX-License-Identifier: Apache-2.0
//
// convert-tile-to-nvvm: lowers specialised hand-scheduled kernels to sm_90a.
//
// A kernel becomes a function whose roles are branches on the warp's number,
// whose tiles are the registers of one thread, whose rings are mbarriers and
// whose copies and dots are the TMA's and the tensor core's instructions:
//
//   tile.kernel @k(%x: !tile.global<4 x bf16>, …) parameters […] grid %x by n
//   {…}
// becomes
//   llvm.mlir.global external @spargejit_shared() {addr_space = 3} :
//   !llvm.array<0 x i8> llvm.func @k(%args: !llvm.ptr {llvm.byval =
//   !llvm.array<… x i64>},
//                %map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>}, …)
//       attributes {nvvm.kernel, spargejit.threads = 384, …} {…}
//
// Lit file: tests/lit/Conversion/tile_to_nvvm.mlir
#include "compiler/Conversion/TileToNvvm/NvvmEmitter.h"
#include "compiler/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::sparge {
#define GEN_PASS_DEF_CONVERTTILETONVVMPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

class ConvertTileToNvvm
    : public impl::ConvertTileToNvvmPassBase<ConvertTileToNvvm> {
public:
  using Base::Base;

  void runOnOperation() override {
    SmallVector<tile::KernelOp> kernels(
        getOperation().getOps<tile::KernelOp>());
    OpBuilder builder(&getContext());
    for (tile::KernelOp kernel : kernels) {
      if (!kernel->hasAttr("grid_tile")) {
        kernel.emitOpError() << "expects a specialised kernel, got symbolic "
                                "sizes; run tile-specialise first";
        return signalPassFailure();
      }
      if (failed(NvvmEmitter(kernel, builder, everyLaneArrives).emit()))
        return signalPassFailure();
      kernel.erase();
    }
    if (!kernels.empty())
      declareSharedMemory(builder);
  }

private:
  /// All shared memory is dynamic; 1024 bytes is what swizzles count from.
  void declareSharedMemory(OpBuilder &builder) {
    builder.setInsertionPointToStart(getOperation().getBody());
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
    LLVM::GlobalOp::create(builder, getOperation().getLoc(), type,
                           /*isConstant=*/false, LLVM::Linkage::External,
                           "spargejit_shared", Attribute(), /*alignment=*/1024,
                           /*addrSpace=*/3);
  }
};

} // namespace
} // namespace mlir::sparge
