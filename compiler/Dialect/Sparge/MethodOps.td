// SPDX-License-Identifier: Apache-2.0
//
// A method, what it takes from its call, and what it returns.
#ifndef SPARGE_METHOD_OPS_TD
#define SPARGE_METHOD_OPS_TD

include "compiler/Dialect/Sparge/SpargeTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Sparge_MethodOp : Sparge_Op<"method",
    [IsolatedFromAbove, SingleBlock, Symbol,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a sparse-attention method, or the backward pass of one";
  let description = [{
    (o, …) = method(q, k, v), or
    (d_q, d_k, d_v) = method(q, k, v, o, lse, d_o, d_lse), where o and lse are
    what the forward pass left, and d_x is the gradient of a loss with respect
    to x. The body computes, in order, everything from the
    call's tensors to the returned values; what is not returned, and not needed
    for what is, is not computed.

    Shapes: those of the types.

    Empty rows: a query row that attends to no key has o = 0 and lse = -inf
    (see `sparge.attention`), and all of its gradients are 0.

    Constraints:
    - C1: there are three arguments, or seven.
    - C2: their types are `tensor<query>`, `tensor<key>`, `tensor<value>`, in
      this order, and then `tensor<output>`, `lse`, `tensor<d_output>`, `d_lse`.
    - C3: the last op is `sparge.return`.

    Example: tests/lit/Dialect/Sparge/method.mlir.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether this is a backward pass: it takes and gives gradients.
    bool isBackward() { return getBody().getNumArguments() == 7; }
  }];
}

def Sparge_ParameterOp : Sparge_Op<"parameter",
    [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "a number from the call's configuration";
  let description = [{
    value = config.name, a float64:

    | name | is | range |
    |---|---|---|
    | `top_k` | share of key blocks kept by rank | [0, 1] |
    | `top_p` | probability mass kept | [0, 1] |

    A number that is part of the method itself is an `arith.constant` of type
    f64 instead.

    Constraints:
    - C1: the name is `top_k` or `top_p`.

    Example: tests/lit/Dialect/Sparge/parameter.mlir.
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Sparge_Scalar:$value);
  let assemblyFormat = "$name attr-dict";
  let hasVerifier = 1;
}

def Sparge_CallerListsOp : Sparge_Op<"caller_lists", [Pure]> {
  let summary = "block lists that come with the call";
  let description = [{
    lists = config.lists, or config.blockMask in the form of lists. A call that
    brings neither is refused.

    Shapes: indices [batch, qHeads, qBlocks, capacity], counts
    [batch, qHeads, qBlocks].

    Empty rows: a count may be 0.

    Example: tests/lit/Dialect/Sparge/caller_lists.mlir.
  }];
  let results = (outs Sparge_ListsType:$lists);
  let assemblyFormat = "attr-dict";
}

def Sparge_ReturnOp : Sparge_Op<"return",
    [Pure, Terminator, HasParent<"MethodOp">]> {
  let summary = "the values that a method returns";
  let description = [{
    Ends a method. The output always, and after it, if the method has them to
    give, lse and the block lists. A backward pass returns the gradients of q, k
    and v.

    Shapes: o [batch, qHeads, qLen, headDim], lse [batch, qHeads, qLen], lists
    as in `sparge.caller_lists`; gradients have the shapes of their tensors.

    Constraints:
    - C1: the first value is a `tensor<output>`.
    - C2: the values after it are at most one `lse` and then at most one
      `lists`.
    - C3: in place of C1 and C2, a backward pass returns `tensor<d_query>`,
      `tensor<d_key>` and `tensor<d_value>`.

    Example: tests/lit/Dialect/Sparge/return.mlir.
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let hasVerifier = 1;
}

#endif // SPARGE_METHOD_OPS_TD
