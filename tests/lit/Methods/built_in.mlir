// SPDX-License-Identifier: Apache-2.0
//
// Each method file that is built in becomes the launches it should.
// RUN: sparge-opt %{kernels_ir}/methods/dense.mlir --sparge-fuse-selection --sparge-plan-launches | FileCheck %s --check-prefix=DENSE
// RUN: sparge-opt %{kernels_ir}/methods/block_sparse.mlir --sparge-fuse-selection --sparge-plan-launches | FileCheck %s --check-prefix=SPARSE
// RUN: sparge-opt %{kernels_ir}/methods/topk.mlir --sparge-fuse-selection --sparge-plan-launches | FileCheck %s --check-prefixes=SELECT,TOPK
// RUN: sparge-opt %{kernels_ir}/methods/topp.mlir --sparge-fuse-selection --sparge-plan-launches | FileCheck %s --check-prefixes=SELECT,TOPP
// RUN: sparge-opt %{kernels_ir}/methods/spargeattention2.mlir --sparge-fuse-selection --sparge-plan-launches | FileCheck %s --check-prefixes=SELECT,HYBRID
// RUN: sparge-opt %{kernels_ir}/backward/dense.mlir --sparge-fuse-selection --sparge-plan-launches | FileCheck %s --check-prefix=DENSE-BACK
// RUN: sparge-opt %{kernels_ir}/backward/block_sparse.mlir --sparge-fuse-selection --sparge-plan-launches | FileCheck %s --check-prefix=SPARSE-BACK
// RUN: sparge-opt %{kernels_ir}/backward/block_sparse_kept.mlir --sparge-fuse-selection --sparge-plan-launches | FileCheck %s --check-prefix=KEPT-BACK
// RUN: sparge-opt %{tests}/numerics/data/topk_diagonal.mlir --sparge-fuse-selection --sparge-plan-launches | FileCheck %s --check-prefixes=SELECT,DIAGONAL

// DENSE: sparge.method @dense(
// DENSE-NEXT: sparge.launch "attention_fwd"
// DENSE-NOT: lists = %
// DENSE-NEXT: sparge.return %o, %lse :

// SPARSE: sparge.method @block_sparse(
// SPARSE-NEXT: %lists = sparge.caller_lists
// SPARSE-NEXT: sparge.launch "attention_fwd"
// SPARSE-SAME: lists = %lists
// SPARSE-NEXT: sparge.return %o, %lse, %lists :

// TOPK: sparge.method @topk(
// TOPP: sparge.method @topp(
// HYBRID: sparge.method @spargeattention2(
// DIAGONAL: sparge.method @topk_diagonal(
// SELECT: sparge.launch "pool" (q = %q : !sparge.tensor<query>, k = %k : !sparge.tensor<key>)
// SELECT-NEXT: %lists = sparge.launch "select_blocks" (pooled_q = %pooled_q : !sparge.pooled<query>, pooled_k = %pooled_k : !sparge.pooled<key>,
// TOPK-SAME: {{.}}k = %top_k : f64) -> (lists : !sparge.lists) parameters {keep_diagonal = 0 : i64, keep_first = 0 : i64}
// TOPP-SAME: {{.}}p = %top_p : f64) -> (lists : !sparge.lists) parameters {keep_diagonal = 0 : i64, keep_first = 0 : i64}
// HYBRID-SAME: {{.}}k = %top_k : f64, p = %top_p : f64) -> (lists : !sparge.lists) parameters {keep_diagonal = 0 : i64, keep_first = 0 : i64}
// DIAGONAL-SAME: {{.}}k = %top_k : f64) -> (lists : !sparge.lists) parameters {keep_diagonal = 1 : i64, keep_first = 0 : i64}
// SELECT-NEXT: sparge.launch "attention_fwd"
// SELECT-SAME: lists = %lists : !sparge.lists) -> (o : !sparge.tensor<output>, lse : !sparge.lse) parameters {has_lists = 1 : i64}
// SELECT-NEXT: sparge.return %o, %lse, %lists :

// DENSE-BACK: sparge.method @dense_backward(
// DENSE-BACK-NEXT: sparge.launch "attention_bwd_q"
// DENSE-BACK-SAME: d_lse = %d_lse
// DENSE-BACK-NEXT: sparge.launch "attention_bwd_kv"
// DENSE-BACK-NEXT: sparge.return %d_q, %d_k, %d_v :

// SPARSE-BACK: sparge.method @block_sparse_backward(
// SPARSE-BACK-NEXT: %lists = sparge.caller_lists
// SPARSE-BACK-NEXT: sparge.launch "invert_blocks"
// SPARSE-BACK-NEXT: sparge.launch "attention_bwd_q"
// SPARSE-BACK-SAME: lists = %lists
// SPARSE-BACK-NEXT: sparge.launch "attention_bwd_kv"
// SPARSE-BACK-SAME: key_lists = %key_lists
// SPARSE-BACK-NEXT: sparge.return %d_q, %d_k, %d_v :

// KEPT-BACK: sparge.method @block_sparse_backward_kept(
// KEPT-BACK-NEXT: %lists = sparge.caller_lists
// KEPT-BACK-NEXT: %key_lists, %places, %unkept = sparge.launch "invert_blocks"
// KEPT-BACK-NEXT: sparge.launch "attention_bwd_delta"
// KEPT-BACK-NEXT: sparge.launch "attention_bwd_kv"
// KEPT-BACK-SAME: places = %places
// KEPT-BACK-NEXT: sparge.launch "attention_bwd_q_kept"
// KEPT-BACK-SAME: kept = %kept
// KEPT-BACK-NEXT: %[[DQ:.*]] = sparge.launch "attention_bwd_q"
// KEPT-BACK-SAME: unkept = %unkept
// KEPT-BACK-NEXT: sparge.return %[[DQ]], %d_k, %d_v :
