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

def Sparge_AttentionBackwardOp : Sparge_Op<"attention_backward",
    [Pure, AttrSizedOperandSegments,
     DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "gradients of softmax attention over the selected key blocks";
  let description = [{
    Of a loss whose gradients with respect to the results of `sparge.attention`
    are d_o and d_lse (0 without it), with s, K(t), o and lse as there and the
    lists held fixed (FlashAttention-2, arXiv 2307.08691, section 3.2; the term
    of d_lse is our own derivation, d lse[t] / d s[t, u] = p[t, u]):

    p[t, u] = exp(s[t, u] - lse[t]) for u in K(t), else 0;
    delta[t] = sum over d of d_o[t, d] · o[t, d], minus d_lse[t];
    d_s[t, u] = p[t, u] · (d_o[t, :] · v[u, :] - delta[t]);
    d_q[t, :] = softmaxScale · sum over u of d_s[t, u] · k[u, :];
    d_k[u, :] = softmaxScale · sum over t of d_s[t, u] · q[t, :];
    d_v[u, :] = sum over t of p[t, u] · d_o[t, :];

    the last two also over the query heads that share the key head. Sums are
    float32 and their order is fixed, so the result is the same in every run.
    key_lists are `sparge.invert_blocks` of the lists. With `keeps`, what a call's
    memory has room for of d_s is kept from one kernel for another, rounded to the
    call's element type, as it is for each product in any case.

    Shapes: those of the types.

    Empty rows: a row t whose K(t) is empty has d_q[t, :] = 0 and adds nothing
    to d_k and d_v; a key that no row attends to has d_k[u, :] = d_v[u, :] = 0.

    Constraints:
    - C1: q has the role query.
    - C2: k has the role key.
    - C3: v has the role value.
    - C4: o has the role output.
    - C5: d_o has the role d_output.
    - C6: there are lists exactly when there are key_lists.
    - C7: the results are a `tensor<d_query>`, a `tensor<d_key>` and a
      `tensor<d_value>`.
    - C8: with `keeps` there are key_lists, made by a `sparge.invert_blocks`.

    Example: tests/lit/Dialect/Sparge/attention_backward.mlir.
  }];
  let arguments = (ins Sparge_TensorType:$q, Sparge_TensorType:$k,
                       Sparge_TensorType:$v, Sparge_TensorType:$o,
                       Sparge_LseType:$lse, Sparge_TensorType:$d_o,
                       Optional<Sparge_DLseType>:$d_lse,
                       Optional<Sparge_ListsType>:$lists,
                       Optional<Sparge_KeyListsType>:$key_lists,
                       UnitAttr:$keeps);
  let results = (outs Sparge_TensorType:$d_q, Sparge_TensorType:$d_k,
                      Sparge_TensorType:$d_v);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $o `,` $lse `,` $d_o (`d_lse` `(` $d_lse^ `)`)?
    (`lists` `(` $lists^ `)`)? (`key_lists` `(` $key_lists^ `)`)?
    (`keeps` $keeps^)? attr-dict `:`
    qualified(type($q)) `,` qualified(type($k)) `,` qualified(type($v)) `,`
    qualified(type($o)) `,` qualified(type($d_o))
  }];
  let hasVerifier = 1;
}

#endif // SPARGE_ATTENTION_OPS_TD
