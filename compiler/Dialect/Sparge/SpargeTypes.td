// SPDX-License-Identifier: Apache-2.0
//
// Types of the sparge dialect. They carry a meaning, no sizes.
#ifndef SPARGE_TYPES_TD
#define SPARGE_TYPES_TD

include "compiler/Dialect/Sparge/SpargeDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"

def Sparge_Role : I32EnumAttr<"Role", "what a tensor is in attention", [
    I32EnumAttrCase<"Query", 0, "query">,
    I32EnumAttrCase<"Key", 1, "key">,
    I32EnumAttrCase<"Value", 2, "value">,
    I32EnumAttrCase<"Output", 3, "output">,
    I32EnumAttrCase<"DQuery", 4, "d_query">,
    I32EnumAttrCase<"DKey", 5, "d_key">,
    I32EnumAttrCase<"DValue", 6, "d_value">,
    I32EnumAttrCase<"DOutput", 7, "d_output">]> {
  let cppNamespace = "::mlir::sparge";
  let genSpecializedAttr = 0;
}

class Sparge_Type<string name, string typeMnemonic>
    : TypeDef<Sparge_Dialect, name,
              [DeclareTypeInterfaceMethods<OpAsmTypeInterface, ["getAsmName"]>]> {
  let mnemonic = typeMnemonic;
}

def Sparge_TensorType : Sparge_Type<"CallTensor", "tensor"> {
  let summary = "a tensor of the call, by its role";
  let description = [{
    | role | shape |
    |---|---|
    | `query`, `output` | [batch, qHeads, qLen, headDim] |
    | `key`, `value` | [batch, kvHeads, kvLen, headDim] |
    | `d_query`, `d_output` | [batch, qHeads, qLen, headDim] |
    | `d_key`, `d_value` | [batch, kvHeads, kvLen, headDim] |

    `d_x` is the gradient of the loss with respect to x. The element type is the call's: float32, bfloat16 or float16.
  }];
  let parameters = (ins EnumParameter<Sparge_Role>:$role);
  let assemblyFormat = "`<` $role `>`";
}

def Sparge_PooledType : Sparge_Type<"Pooled", "pooled"> {
  let summary = "one float32 vector for each block of rows";
  let description = [{
    `pooled<query>`: [batch, qHeads, qBlocks, headDim]; `pooled<key>`:
    [batch, kvHeads, kvBlocks, headDim].

    Constraints:
    - C1: the role is query or key.
  }];
  let parameters = (ins EnumParameter<Sparge_Role>:$role);
  let assemblyFormat = "`<` $role `>`";
  let genVerifyDecl = 1;
}

def Sparge_ScoresType : Sparge_Type<"Scores", "scores"> {
  let summary = "one float32 score for each pair of blocks";
  let description = "[batch, qHeads, qBlocks, kvBlocks].";
}

def Sparge_ListsType : Sparge_Type<"Lists", "lists"> {
  let summary = "the selected key blocks of each block of query rows";
  let description = [{
    Two int32 tensors: `indices` [batch, qHeads, qBlocks, capacity] and `counts`
    [batch, qHeads, qBlocks]. The first counts[b, h, i] entries of a row of
    `indices` are absolute numbers of key blocks. Lists made by this dialect's
    ops are ascending with -1 in the unused slots; lists that come with a call
    may be in any order.
  }];
}

def Sparge_KeyListsType : Sparge_Type<"KeyLists", "key_lists"> {
  let summary = "the blocks of query rows that selected each key block";
  let description = [{
    The transposed `lists`: for each key block, the numbers of the blocks of
    query rows whose list has it, ascending, with a count.
  }];
}

def Sparge_LseType : Sparge_Type<"Lse", "lse"> {
  let summary = "log-sum-exp of each query row";
  let description = [{
    float32 [batch, qHeads, qLen]: the natural logarithm of the sum of
    exp(scaled scores) over the keys that the row attends to; -inf for none.
  }];
}

def Sparge_DLseType : Sparge_Type<"DLse", "d_lse"> {
  let summary = "gradient of the loss with respect to lse";
  let description = [{
    float32 [batch, qHeads, qLen]; a call may leave it out, which means zeros.
  }];
}

def Sparge_DeltaType : Sparge_Type<"Delta", "delta"> {
  let summary = "what each row's score gradients are measured from";
  let description = [{
    float32 [batch, qHeads, qLen]: the sum over d of d_o · o, minus d_lse. Made
    by `sparge-plan-launches` from a `sparge.attention_backward`.
  }];
}

def Sparge_PlacesType : Sparge_Type<"Places", "places"> {
  let summary = "where score gradients are kept between launches";
  let description = [{
    Two int32 tensors: `places` [batch, qHeads, kvBlocks, qBlocks], one for each entry
    of `key_lists`, and `row_places` [batch, qHeads, qBlocks] (invert_blocks.mlir).
    Made by `sparge-plan-launches`, as are `unkept` and `kept`.
  }];
}

def Sparge_UnkeptType : Sparge_Type<"Unkept", "unkept"> {
  let summary = "how many blocks of rows of a head have no place";
  let description = "int32 [batch, 1, qHeads].";
}

def Sparge_KeptType : Sparge_Type<"Kept", "kept"> {
  let summary = "score gradients of the pairs that have a place";
  let description = [{
    Blocks of the mask, in the call's element type: [heads at a time, blocks a
    head, maskBlockQ · maskBlockKv]. The runtime says how many there are, and does
    the launches that use them once for each share of the heads.
  }];
}

// Ratios are float64 because k = trunc(top_k · kvBlocks) is: float32(0.9) · 10
// is below 9.
def Sparge_Scalar : TypeAlias<F64, "float64 ratio">;

#endif // SPARGE_TYPES_TD
