// SPDX-License-Identifier: Apache-2.0
//
// Attention itself.
#ifndef SPARGE_ATTENTION_OPS_TD
#define SPARGE_ATTENTION_OPS_TD

include "compiler/Dialect/Sparge/SpargeTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Sparge_AttentionOp : Sparge_Op<"attention",
    [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "softmax attention over the selected key blocks";
  let description = [{
    With s[t, u] = softmaxScale · q[t, :] · k[u, :], and K(t) the keys u < kvLen
    in the listed blocks of row t's block (all keys without `lists`) that
    causality lets row t see (u <= t + kvLen - qLen):

    lse[t] = log(sum of exp(s[t, u]) over u in K(t));
    o[t, :] = sum of exp(s[t, u] - lse[t]) · v[u, :] over u in K(t).

    Sums are float32. The order of a list changes rounding only; an entry
    outside [0, kvBlocks) counts for nothing.

    Shapes: q, o [batch, qHeads, qLen, headDim]; k, v
    [batch, kvHeads, kvLen, headDim]; lse [batch, qHeads, qLen]; lists as in
    `sparge.select_blocks`.

    Empty rows: a row t whose K(t) is empty has o[t, :] = 0 and lse[t] = -inf.

    Constraints:
    - C1: q has the role query.
    - C2: k has the role key.
    - C3: v has the role value.
    - C4: the results are a `tensor<output>` and an `lse`.

    Example: tests/lit/Dialect/Sparge/attention.mlir.
  }];
  let arguments = (ins Sparge_TensorType:$q, Sparge_TensorType:$k,
                       Sparge_TensorType:$v, Optional<Sparge_ListsType>:$lists);
  let results = (outs Sparge_TensorType:$o, Sparge_LseType:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`lists` `(` $lists^ `)`)? attr-dict `:`
    qualified(type($q)) `,` qualified(type($k)) `,` qualified(type($v))
  }];
  let hasVerifier = 1;
}

#endif // SPARGE_ATTENTION_OPS_TD
