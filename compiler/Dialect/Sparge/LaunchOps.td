// SPDX-License-Identifier: Apache-2.0
//
// What sparge-plan-launches turns a method into.
#ifndef SPARGE_LAUNCH_OPS_TD
#define SPARGE_LAUNCH_OPS_TD

include "compiler/Dialect/Sparge/SpargeTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Sparge_LaunchOp : Sparge_Op<"launch", [Pure]> {
  let summary = "one launch of a kernel, its arguments bound by name";
  let description = [{
    results = kernel(arguments). `kernel` is the name of a tile.kernel. Arguments
    are what the kernel reads, results what it writes, each under the name that
    the kernel text gives it. A value of type `lists` is bound to two arguments,
    "indices" and "counts", and is called `lists` here; likewise `key_lists`, to
    "key_indices" and "key_counts". Arguments of the kernel
    that are not named follow from the problem (softmax_scale, q_len, kv_len) or
    are absent.

    `parameters` are the integer parameters that the method decides. Sizes and
    element types are not among them. `sources` are the stages in CUDA C++ that the
    kernel is compiled with, each under the name of the function it defines.

    Shapes and empty rows: those of the op that the launch stands for.

    Constraints:
    - C1: there is one argument name for each operand.
    - C2: there is one result name for each result.
    - C3: no name occurs twice.
    - C4: a value is called `lists` exactly when it has the type `lists`, and
      `key_lists` and `places` exactly when it has those types.
    - C5: parameters are 64-bit integers.
    - C6: sources are codes.

    Example: tests/lit/Dialect/Sparge/launch.mlir.
  }];
  let arguments = (ins StrAttr:$kernel, Variadic<AnyType>:$operands,
                       StrArrayAttr:$argument_names, StrArrayAttr:$result_names,
                       DictionaryAttr:$parameters,
                       OptionalAttr<DictionaryAttr>:$sources);
  let results = (outs Variadic<AnyType>:$outputs);
  let assemblyFormat = [{
    $kernel custom<NamedOperands>($operands, type($operands), $argument_names)
    `->` custom<NamedResults>(type($outputs), $result_names)
    `parameters` $parameters (`sources` $sources^)? attr-dict
  }];
  let hasVerifier = 1;
}

#endif // SPARGE_LAUNCH_OPS_TD
