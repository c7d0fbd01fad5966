// SPDX-License-Identifier: Apache-2.0
//
// From kernel text to the llvm dialect for the CPU.
#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Transforms/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

void mlir::sparge::addSpecialisePasses(
    OpPassManager &passes, const std::vector<std::string> &parameters) {
  TileSpecialisePassOptions options;
  options.parameters.assign(parameters.begin(), parameters.end());
  passes.addPass(createTileSpecialisePass(options));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

void mlir::sparge::addHostTilePasses(OpPassManager &passes) {
  passes.addPass(createTileAssignHostLayoutsPass());
}

void mlir::sparge::addHostLowerPasses(OpPassManager &passes,
                                      int64_t dotColumns) {
  ConvertTileToHostPassOptions options;
  options.dotColumns = dotColumns;
  passes.addPass(createConvertTileToHostPass(options));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createTileExpandMathPass());
  // CPUs without AVX512-BF16 have no instruction that rounds to bfloat16, and
  // GCC 12's libgcc has no function for it.
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  passes.addPass(arith::createArithExpandOpsPass(expand));
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}
