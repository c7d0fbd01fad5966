// SPDX-License-Identifier: Apache-2.0
//
// Attention of q, k and v that are in eight bits already: rounded once by
// quantise(), or by the caller in the same way, and used for several calls.
// AttentionConfig::precision does all of it inside one call.
#pragma once

#include "spargejit/attention.h"

namespace spargejit {

/// q, k and v in eight bits. With u = 8 log2(e) softmaxScale:
///
///   q8[b, h, t]    = round(qFactors[b, h] q[b, h, t])
///   k8[b, g, t]    = round(kFactors[b, g] k[b, g, t])
///   v8[b, g, t, c] = round(v[b, g, t, c] / vScales[b, g, c])
///
/// to the nearest Float8E4M3, at most 448, where qFactors[b, h] kFactors[b, g]
/// = u for every head h of q that reads head g of k: scores q8 · k8 are then in
/// eighths of an octave, and all scales but those of v are in the tensors.
struct QuantisedTensors {
  /// Float8E4M3 [batch, qHeads, qLen, headDim], dense.
  Tensor q;
  /// Float8E4M3 [batch, kvHeads, kvLen, headDim], dense.
  Tensor k;
  /// Float8E4M3, v8 as the device reads it. On the CPU [batch, kvHeads, kvLen,
  /// headDim], dense. On a GPU an image, [batch, kvHeads, ceil(kvLen / 16) ·
  /// (headDim / 8 + 1), 128], dense: row 16-key group g · (headDim / 8 + 1) + i
  /// holds channels 8 i to 8 i + 7 of keys 16 g to 16 g + 15, a channel's
  /// sixteen bytes together, key 16 g + r in place p(r), where place 4 t + i
  /// stands for r = 2 t + i mod 2 + 8 (i / 2); the row behind a group's last
  /// channels is 1 for keys that exist. Keys from kvLen to the next multiple of
  /// 16 are 0.
  Tensor v;
  /// float32 [batch, kvHeads, headDim], dense: the largest |v| of a channel's
  /// sample / 32, or of all its rows / 448 (see quantise()).
  Tensor vScales;
  /// What q and k were multiplied with: float32 [batch, qHeads] and [batch,
  /// kvHeads]. For information; no call reads them.
  Tensor qFactors;
  Tensor kFactors;
  /// Type of the tensors that were rounded, and of o.
  DataType dtype = DataType::BFloat16;
  std::int64_t kvLen = 0;
};

/// Rounds q, k and v, as a call with such a config and another precision than
/// Inputs does: qFactors and kFactors are such that the largest |q8| of the
/// heads that share a head of k equals the largest |k8|, and vScales such that
/// a channel's largest |v8| is 32. The largest are those of a sample: of n rows
/// eight times 32, from row floor(i (n - 32) / 7) on for i < 8, or all where n
/// <= 256; none is taken for less than 2^-60 (of v 2^-110). Where any element
/// of a head of k, of its heads of q or of its v is 432 or more beside these
/// factors, and would become 448, theirs are the largest of all rows, and of v
/// become 448. NaN stays, and counts for no maximum. Of config softmaxScale,
/// stream and threads count.
///
/// Shapes and strides as in attention(); bfloat16 or float16. Errors: those of
/// attention(), and Unsupported for float32, and on a GPU for another headDim
/// than 64, 96 and 128.
SPARGEJIT_API Result<QuantisedTensors> quantise(const TensorView &q,
                                                const TensorView &k,
                                                const TensorView &v,
                                                const AttentionConfig &config);

/// The same into the memory of `into`, which quantise() returned for tensors of
/// these shapes, or of the sizes there; what it held is lost. Allocates nothing
/// after the first call on a stream.
SPARGEJIT_API Status quantiseInto(const QuantisedTensors &into,
                                  const TensorView &q, const TensorView &k,
                                  const TensorView &v,
                                  const AttentionConfig &config);

/// attention() of tensors that quantise() made, or of the same form:
/// config.precision says how scores and weights are computed, and is not
/// Inputs. Selection needs q and k before they are rounded, so the method is
/// one that selects nothing: "dense", or "block_sparse" with lists, of
/// selectBlocks() for instance. softmaxScale is in the tensors, and that of
/// config does not count.
///
/// Returns a new dense tensor of q's shape and of dtype tensors.dtype. Errors:
/// InvalidArgument (shape, stride, dtype, method or precision, naming it),
/// Unsupported, CompileFailed, ArtifactMissing, OutOfResources.
SPARGEJIT_API Result<Tensor>
attentionQuantised(const QuantisedTensors &tensors,
                   const AttentionConfig &config,
                   const AttentionOutputs &outputs = {});

/// The same into the caller's memory: `o` of q's shape, bfloat16 or float16,
/// any strides whose last is 1, apart from all that is read.
SPARGEJIT_API Status attentionQuantisedInto(
    const TensorView &o, const QuantisedTensors &tensors,
    const AttentionConfig &config, const AttentionOutputs &outputs = {});

} // namespace spargejit
