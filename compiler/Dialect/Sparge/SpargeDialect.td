// SPDX-License-Identifier: Apache-2.0
//
// The sparge dialect: what a sparse-attention method does, over whole tensors.
#ifndef SPARGE_DIALECT_TD
#define SPARGE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Sparge_Dialect : Dialect {
  let name = "sparge";
  let cppNamespace = "::mlir::sparge";
  let summary = "sparse-attention methods over whole tensors";
  let description = [{
    A method file holds one `sparge.method`: a straight line of ops from q, k
    and v to the output. Values have no sizes; a value is what it *means* (the
    pooled query, the block lists, …), and the call that uses the method brings
    lengths, head counts, element type, mask blocks and causality.

    Names of sizes in this reference:

    | name | is |
    |---|---|
    | `batch`, `qHeads`, `kvHeads` | qHeads is a multiple of kvHeads; query head h reads key head h / (qHeads / kvHeads) |
    | `qLen`, `kvLen`, `headDim` | rows of q, rows of k and v, columns of all three |
    | `maskBlockQ`, `maskBlockKv` | rows and keys of one block of the mask |
    | `qBlocks`, `kvBlocks` | ceil(qLen / maskBlockQ), ceil(kvLen / maskBlockKv); the last block may be partial |

    Every op is free of side effects and gives the same result in every run.
    Its constraints are numbered C1, C2, …; the verifier names the label beside
    each check, and tests/lit/Dialect/Sparge has a failing case for each.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

class Sparge_Op<string mnemonic, list<Trait> traits = []>
    : Op<Sparge_Dialect, mnemonic, traits>;

#endif // SPARGE_DIALECT_TD
