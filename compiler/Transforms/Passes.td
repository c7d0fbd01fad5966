// SPDX-License-Identifier: Apache-2.0
//
// All passes of the compiler that are not conversions between dialects.
#ifndef SPARGEJIT_TRANSFORMS_PASSES_TD
#define SPARGEJIT_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// sparge: from a method to launches, in this order
//===----------------------------------------------------------------------===//

def SpargeFuseSelectionPass
    : Pass<"sparge-fuse-selection", "::mlir::sparge::MethodOp"> {
  let summary = "Join block scores with the selection that uses them";
  let description = [{
    A `sparge.block_scores` whose only user is a `sparge.select_blocks` becomes
    one `sparge.score_and_select`, and one `sparge.custom_score_and_select` where
    one of them is the user's, so that the scores never lie in memory:
    kernels score a row of key blocks and select from it in one place. Scores
    without users are removed. Scores with any other user are an error, since no
    kernel writes them. Numbers do not change.
  }];
  let statistics = [
    Statistic<"numFused", "num-fused", "pairs of ops that became one">];
}

def SpargePlanLaunchesPass
    : Pass<"sparge-plan-launches", "::mlir::sparge::MethodOp"> {
  let summary = "Turn a method's ops into kernel launches";
  let description = [{
    Each op that computes becomes a `sparge.launch`, with the kernel that
    implements it, its arguments under the names that the kernel's text gives
    them, and the integer parameters that the method decides:

    | op | kernel | parameters |
    |---|---|---|
    | `sparge.pool` | pool | |
    | `sparge.score_and_select` | select_blocks | keep_diagonal, keep_first |
    | `sparge.custom_score_and_select` | custom_select | keep_diagonal, keep_first; sources score, keep |
    | `sparge.attention` | attention_fwd | has_lists |

    What no returned value needs is removed; an lse that nobody uses is not a
    result of its launch. Errors: an op without a kernel (also where its result
    is not used); an op of another dialect than sparge that is not a constant;
    a ratio that is neither a `sparge.parameter` nor a constant in [0, 1]; more
    than one attention; returned lists that are not those the attention uses.
    Numbers do not change.
  }];
  let statistics = [
    Statistic<"numLaunches", "num-launches", "launches in the method">];
}

//===----------------------------------------------------------------------===//
// tile: kernels
//===----------------------------------------------------------------------===//

def TileSpecialisePass : Pass<"tile-specialise", "::mlir::ModuleOp"> {
  let summary = "Bind the symbolic sizes, flags and element types of kernels";
  let description = [{
    Kernel text is written once; a problem decides head dimension, mask block,
    data type and tile sizes. After this pass everything about sizes is fixed.
  }];
  let options = [
    ListOption<"parameters", "parameters", "std::string",
               "Values as name=value: an integer, or float32, bfloat16, "
               "float16 (default: none)">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileAssignHostLayoutsPass
    : Pass<"tile-assign-host-layouts", "::mlir::ModuleOp"> {
  let summary = "Choose where the elements of each matrix live on the CPU";
  let description = [{
    Right operands of dots are row-major, everything else is in panels of 16
    rows. Numbers do not change.
  }];
}

def TileExpandMathPass : Pass<"tile-expand-math", "::mlir::ModuleOp"> {
  let summary = "Replace exp2 and log2 by polynomials (changes rounding)";
  let description = [{
    LLVM would turn math.exp2 of a vector into one library call a lane.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

//===- conversions --------------------------------------------------------===//

def ConvertTileToHostPass : Pass<"convert-tile-to-host", "::mlir::ModuleOp"> {
  let summary = "Lower kernels to loops over vectors for the CPU";
  let description = [{
    Each tile.kernel becomes an llvm.func (args, program, scratch) with scf
    loops over 16-lane vectors; tiles live in scratch. Attributes on the function
    say how much scratch a worker needs (`spargejit.static_scratch`,
    `spargejit.dynamic_scratch`).

    Example: tests/lit/Conversion/tile_to_host.mlir
  }];
  let options = [
    Option<"dotColumns", "dot-columns", "int64_t", /*default=*/"4",
           "columns of a dot kept in registers at once (accumulators of 16 lanes)">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def ConvertTileToNvvmPass : Pass<"convert-tile-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "Lower hand-scheduled kernels to sm_90a";
  let description = [{
    Each tile.kernel becomes an llvm.func with inline PTX for wgmma, the TMA and
    mbarriers; a tile becomes the registers that one thread holds of it. A kernel
    with a tile.team becomes what each of its warps runs, with mma and shuffles.
    What the
    launch needs is on the function (compiler/Conversion/TileToNvvm/
    LaunchAttributes.h). exp2, log2 and division become the approximate
    instructions.

    Example: tests/lit/Conversion/tile_to_nvvm.mlir
  }];
  let options = [Option<"everyLaneArrives", "every-lane-arrives", "bool", "false",
    "At hand-overs every lane of a warp arrives, for compute-sanitizer's racecheck, "
    "which does not take one lane's arrival for its warp's">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"];
}

#endif // SPARGEJIT_TRANSFORMS_PASSES_TD
