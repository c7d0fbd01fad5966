// SPDX-License-Identifier: Apache-2.0
//
// Types and attributes of the tile dialect.
#ifndef SPARGEJIT_TILE_TYPES_TD
#define SPARGEJIT_TILE_TYPES_TD

include "compiler/Dialect/Tile/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/EnumAttr.td"

class Tile_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Tile_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}
class Tile_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Tile_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def Tile_SizesAttr : Tile_Attr<"Sizes", "sizes",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "Symbolic sizes of a tensor, as its encoding";
  let description = [{
    One entry a dimension: the name of a kernel parameter, or an integer. The
    tensor's own sizes are `?` until `tile-specialise` replaces them.

    ```mlir
    !scores = tensor<?x?xf32, #tile.sizes<tile_q, tile_kv>>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Attribute">:$sizes);
  let hasCustomAssemblyFormat = 1;
}

def Tile_LayoutKind : I32EnumAttr<"LayoutKind", "where a tile's elements live", [
    I32EnumAttrCase<"Panels", 0, "panels">,
    I32EnumAttrCase<"Rows", 1, "rows">]> {
  let cppNamespace = "::mlir::tile";
  let genSpecializedAttr = 0;
}

def Tile_LayoutAttr : Tile_Attr<"Layout", "layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "Where the elements of a specialised tile live";
  let description = [{
    On the host:
    - `panels`: element (r, c) of an R x C tile is at
      [r / 16][c][r % 16] of a buffer ceil(R/16) x C x 16, so that 16 rows are the
      lanes of a vector and reductions along a row never cross lanes;
    - `rows`: row-major, the layout of a dot's right operand, whose elements are
      broadcast one by one.
  }];
  let parameters = (ins EnumParameter<Tile_LayoutKind>:$kind);
  let assemblyFormat = "`<` $kind `>`";
}

def Tile_ElementType : Tile_Type<"Element", "element"> {
  let summary = "An element type bound by a kernel parameter";
  let description = [{
    `!tile.element<"elem">` becomes bf16, f16 or f32 when the kernel is
    specialised with that value of parameter `elem`.
  }];
  let parameters = (ins StringRefParameter<"parameter name">:$name);
  let assemblyFormat = "`<` $name `>`";
}

def Tile_GlobalType : Tile_Type<"Global", "global"> {
  let summary = "A tensor argument of a kernel, in global memory";
  let description = [{
    `rank` sizes and strides that are only known when the kernel runs; the last
    stride is 1 (on the host, what `tile.load` alone reads may have any). May be
    absent (`tile.is_present`).
  }];
  let parameters = (ins "int64_t":$rank, "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $rank `x` $elementType `>`";
  let genVerifyDecl = 1;
}

def Tile_ViewType : Tile_Type<"View", "view"> {
  let summary = "A window on the last one or two dimensions of a global tensor";
  let parameters = (ins "int64_t":$rank, "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $rank `x` $elementType `>`";
  let genVerifyDecl = 1;
}

def Tile_ScratchType : Tile_Type<"Scratch", "scratch"> {
  let summary = "A program's own memory: fixed rows, columns known at run time";
  let parameters = (ins "::mlir::Attribute":$rows, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===- hand-scheduled kernels ---------------------------------------------===//

def Tile_SharedType : Tile_Type<"Shared", "shared"> {
  let summary = "A tile, or a few words, in a CTA's shared memory";
  let description = [{
    Rank 2: rows x columns in panels of `swizzle` bytes: element (r, c) with
    byte column b = c * bytes(element) lies in panel b / swizzle, which holds all
    rows, `swizzle` bytes each; within eight rows the 16-byte pieces are permuted
    as the TMA's and the tensor core's swizzle of that width do. Panels of 16 bytes
    have nothing to permute: eight rows of one are a core matrix, 128 bytes
    together, and the whole is what the tensor core calls not swizzled. The last
    panel is padded with zero columns. Rank 1: plain words.

    C1: rank 1 without a swizzle, or rank 2 with one.
    C2: a fixed swizzle is 16, 32, 64 or 128 bytes.
    C3: fixed sizes are positive, and the rows of a matrix a multiple of 8.

    ```mlir
    !kv_slot = !tile.shared<tile_kv x head_dim x !elem, swizzle swizzle_bytes>
    !note = !tile.shared<4 x i32>
    ```
  }];
  let parameters = (ins "::mlir::tile::SizesAttr":$sizes, "::mlir::Type":$elementType,
                        "::mlir::tile::SizesAttr":$swizzle);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_RingType : Tile_Type<"Ring", "ring"> {
  let summary = "Slots in shared memory that go round between roles";
  let description = [{
    Each slot holds one of every listed piece of shared memory.

    C1: at least one piece, each a `!tile.shared`.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Type">:$pieces);
  let assemblyFormat = "`<` $pieces `>`";
  let genVerifyDecl = 1;
}

def Tile_CursorType : Tile_Type<"Cursor", "cursor"> {
  let summary = "A role's place in a ring: a slot, and how often it came round";
}

def Tile_TensorMapType : Tile_Type<"TensorMap", "tensor_map"> {
  let summary = "A tensor argument as the TMA copies it, box by box";
  let description = [{
    `rank` is the tensor's, `box` what one copy moves.

    C1: the rank is from 2 to 5, the box a `!tile.shared` of rank 2.
    C2: a box has at most 256 rows, and one in panels of 16 bytes, which is copied
        by core matrices, at most 256 of those.
  }];
  let parameters = (ins "int64_t":$rank, "::mlir::tile::SharedType":$box);
  let assemblyFormat = "`<` $rank `,` qualified($box) `>`";
  let genVerifyDecl = 1;
}

def Tile_PendingType : Tile_Type<"Pending", "pending"> {
  let summary = "A dot's result that the tensor core may still be writing";
  let description = [{
    C1: the tensor has rank 2 and f32 or f16 elements, or a parameter's.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
  let genVerifyDecl = 1;
}

def Tile_ReduceKind : I32EnumAttr<"ReduceKind", "how tile.reduce combines", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::mlir::tile";
  let genSpecializedAttr = 0;
}
def Tile_ReduceKindAttr : EnumAttr<Tile_Dialect, Tile_ReduceKind, "reduce_kind">;

#endif
