// SPDX-License-Identifier: Apache-2.0
//
// The tile dialect: what one CTA (or one task of the CPU) does.
#ifndef SPARGEJIT_TILE_DIALECT_TD
#define SPARGEJIT_TILE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::mlir::tile";
  let summary = "Kernels over tiles: loads, dots, reductions, rings and roles";
  let description = [{
    A kernel is written once with symbolic sizes and specialised for a problem.
    Values are builtin ranked tensors, so `arith` and `math` work on them as they
    are; this dialect adds only what those lack. A tensor's encoding is
    `#tile.sizes` while its sizes are symbolic, and `#tile.layout` once a target
    has decided where its elements live.

    Two families of kernels share the dialect. Portable ones loop over tiles and
    know no roles; they lower to the CPU. Hand-scheduled ones (one folder per
    architecture) say which warps load and which compute, with rings, barriers
    and asynchronous dots.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

#endif
