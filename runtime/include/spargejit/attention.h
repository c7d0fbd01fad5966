// SPDX-License-Identifier: Apache-2.0
//
// Step 1 of 9 in the life of a call (runtime/README.md).
// Block-sparse attention: what may be asked for.
#pragma once

#include "spargejit/export.h"
#include "spargejit/status.h"
#include "spargejit/tensor.h"
#include "spargejit/tuning.h"

#include <cstdint>
#include <optional>
#include <string>

namespace spargejit {

/// Which key blocks each block of query rows attends to.
///
/// `indices` int32 [batch, qHeads, qBlocks, capacity] holds, in its first
/// counts[b, h, i] slots, the absolute numbers of the selected key blocks, each
/// at most once, in any order; slots beyond the count are never read. Where
/// validateLists is off, a count beyond the capacity means the capacity, and
/// entries that are no key block are passed over.
/// `counts` int32 [batch, qHeads, qBlocks]. qBlocks = ceil(qLen / maskBlockQ);
/// block j covers keys [j·maskBlockKv, (j+1)·maskBlockKv) ∩ [0, kvLen).
/// Lists that this library makes are ascending, with -1 in unused slots.
struct BlockLists {
  Tensor indices;
  Tensor counts;
  std::int64_t maskBlockQ = 0;
  std::int64_t maskBlockKv = 0;
  std::int64_t qLen = 0;
  std::int64_t kvLen = 0;

  /// selected / (batch·qHeads·qBlocks·kvBlocks), ragged blocks counted whole.
  SPARGEJIT_API double density() const;
};

/// Tokens [begin, end).
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// In what attention computes. `Inputs` is the type of q, k and v, with sums
/// and softmax in float32. The others round q, k and v to eight bits
/// (Float8E4M3) inside the call, and the softmax's weights too, for the tensor
/// cores of Hopper, which are twice as fast then; scores and weights are
///
///   Fp8Exact     float32, 2^x within 1.3 %
///   Fp8Balanced  float16, the same
///   Fp8Fast      float16, 2^x with a mantissa that is linear between powers of
///                two (Schraudolph, Neural Computation 11(4), 1999)
///
/// On real inputs rounding q, k and v costs 0.011 to 0.037 of relative L1 where
/// every key is attended to, less than 0.01 beside what leaving blocks out
/// costs, and between the three lies 0.0003 (docs/eight_bits.md): Fp8Fast is
/// the one to take. With float16 scores, a product softmaxScale · q·k beyond
/// 5675 is infinite.
enum class Precision : std::uint8_t { Inputs, Fp8Exact, Fp8Balanced, Fp8Fast };

/// "inputs", "fp8_exact", "fp8_balanced", "fp8_fast".
SPARGEJIT_API const char *precisionName(Precision precision);

/// Everything about a call that is not a tensor.
struct AttentionConfig {
  /// A method that is built in ("dense", "block_sparse", "topk", "topp",
  /// "spargeattention2") or the path of a method file (ends in ".mlir").
  std::string method = "spargeattention2";

  /// Share of key blocks kept by rank, in [0, 1]: k = clamp(trunc(topK·blocks),
  /// 1, blocks) for methods that use it (SpargeAttention2, arXiv 2602.13515).
  double topK = 0.03;
  /// Probability mass kept, in [0, 1]: the shortest descending prefix of the
  /// block probabilities whose sum is >= topP, crossing block included.
  double topP = 0.2;
  /// In place of topK and topP, for methods that use them: float32 on the
  /// device of q, [1], [qHeads] or [batch, qHeads], any strides. The kernels
  /// read them when they run, so that a captured graph is replayed with what is
  /// there then; they are not checked: a share counts as 0 below 0 and as 1
  /// above 1, and NaN as 0 in topKByHead, as 1 in topPByHead. k is formed with
  /// a product in float32: clamp(trunc(float32(topKByHead · blocks)), 1,
  /// blocks).
  std::optional<TensorView> topKByHead;
  std::optional<TensorView> topPByHead;

  /// For methods that select: keys that every row attends to, and rows that
  /// attend to every key, whatever is selected; the text beside a video's
  /// tokens, say. A block counts that holds any of them. What causality hides
  /// stays hidden.
  TokenRange denseKeys;
  TokenRange denseRows;

  /// Rows and columns of one block of the mask: q 64 or 128; kv 16, 32, 64 or
  /// 128. Part of the problem's meaning, the same on every device.
  std::int64_t maskBlockQ = 128;
  std::int64_t maskBlockKv = 64;

  /// Query row i sees keys j <= i + kvLen - qLen only (bottom-right aligned),
  /// exact to the token, together with any block mask. A v that is NaN or
  /// infinite reaches rows that do not see it, where one of its tile does:
  /// weights of 0 are multiplied.
  bool causal = false;

  /// With another one than Inputs, q, k and v are bfloat16 or float16, headDim
  /// is 64, 96 or 128 on a GPU, `tune` is Off, and there is no backward pass:
  /// Unsupported names which. Selection is the same with all of them.
  Precision precision = Precision::Inputs;

  /// Factor on q·kᵀ before the softmax; 1/sqrt(headDim) when not set. Any
  /// finite value, negative and zero included.
  std::optional<double> softmaxScale;

  /// For method "block_sparse": the caller's own mask, bool
  /// [batch, qHeads, qBlocks, kvBlocks], true = attend. Batch and heads may be
  /// broadcast by a stride of 0.
  std::optional<TensorView> blockMask;
  /// For method "block_sparse": the caller's own lists, or lists that an
  /// earlier call handed back. Not owned; must outlive the call.
  const BlockLists *lists = nullptr;
  /// Check that every list entry is in range and unique before using it;
  /// InvalidArgument names the first that is not. Reads the lists once.
  bool validateLists = false;

  /// CUDA C++ for the stages of a method that say `code<config>`: defines
  /// `float score(const spargejit::BlockPair &)`,
  /// `bool keep(const spargejit::ScoredPair &)` or both
  /// (docs/your_own_selection_rule.md). NVRTC compiles each text once.
  std::string customSource;

  /// Backward passes on a GPU over listed blocks: bytes of workspace in which
  /// the gradients of scores may be kept from one kernel for another, in place
  /// of computing them twice; 0 keeps none. By the sum of its kernels a pass
  /// gains 6 % at head dimension 128 where all heads fit and loses 2 to 3 % at
  /// 64 (bench/results/2026-11-30-h200-attention-bwd.md); whole calls were not
  /// timed. Heads take turns where not all fit. The result is the same in every
  /// run with the same value.
  std::int64_t keptBytes = 0;

  /// CPU threads to use; 0 = all that the process may run on.
  int threads = 0;
  /// CUDA stream (CUstream) to launch on; ignored on the CPU, where calls
  /// return when the work is done.
  void *stream = nullptr;

  /// OnFirstUse: the first call or prepare() for a problem that no record
  /// answers for exactly compiles and measures some ten configurations of its
  /// attention kernel on memory of its own, as large as the call's; that takes
  /// seconds and waits for the device. The record is kept in the cache folder,
  /// so that no later process measures again. In a capture nothing is measured,
  /// and a failed search is a warning: such calls have what records advise.
  TuneMode tune = TuneMode::Off;
};

/// Results beside the output. Null members are not computed.
struct AttentionOutputs {
  /// float32 [batch, qHeads, qLen], any strides (on a GPU the last must be 1):
  /// natural logarithm of the sum of exp(scaled scores) over the keys that the
  /// row attends to; -inf for a row that attends to none.
  const TensorView *lse = nullptr;
  /// Filled with the block lists used (for method "dense": all blocks).
  BlockLists *lists = nullptr;
};

/// o = softmax(softmaxScale · q kᵀ restricted to the selected blocks) v.
///
/// q [batch, qHeads, qLen, headDim]; k, v [batch, kvHeads, kvLen, headDim];
/// one dtype of float32, bfloat16, float16; any strides whose last is 1;
/// headDim a multiple of 8 up to 256; qHeads a multiple of kvHeads (query head
/// h reads key head h / (qHeads / kvHeads)). Sums are float32. A row that
/// attends to no key gives o = 0.
///
/// Returns a new dense tensor of q's shape and dtype. Thread-safe. The first
/// call with a new combination of head dimension, dtype and mask block compiles
/// (some 0.2 s); later calls do not, whatever the lengths.
/// Errors: InvalidArgument (shape, stride, dtype or range, naming it),
/// Unsupported (not implemented by the device's back end), CompileFailed,
/// ArtifactMissing, OutOfResources.
SPARGEJIT_API Result<Tensor> attention(const TensorView &q, const TensorView &k,
                                       const TensorView &v,
                                       const AttentionConfig &config,
                                       const AttentionOutputs &outputs = {});

/// The same into the caller's memory: `o` has q's shape and dtype, any strides
/// whose last is 1, and overlaps no input.
SPARGEJIT_API Status attentionInto(const TensorView &o, const TensorView &q,
                                   const TensorView &k, const TensorView &v,
                                   const AttentionConfig &config,
                                   const AttentionOutputs &outputs = {});

/// The selection of `config.method` alone: pools q and k, scores blocks of rows
/// against blocks of keys and selects. The lists can be given back through
/// `AttentionConfig::lists` as often as wanted. InvalidArgument for a method
/// that selects nothing ("dense", "block_sparse").
SPARGEJIT_API Result<BlockLists> selectBlocks(const TensorView &q,
                                              const TensorView &k,
                                              const AttentionConfig &config);

/// The same into the memory of `into`: lists as selectBlocks() returns them for
/// tensors of these shapes and such a config, with one slot for each key block;
/// apart from q and k. What it held is lost.
SPARGEJIT_API Status selectBlocksInto(const BlockLists &into,
                                      const TensorView &q, const TensorView &k,
                                      const AttentionConfig &config);

/// Compiles and loads what a call with these arguments would need, and runs
/// nothing. After it, such a call compiles nothing and loads nothing, so that a
/// CUDA graph can capture it (attentionInto) on any stream; on config.stream it
/// allocates nothing either. The tensors' memory is not looked at and may be
/// null.
SPARGEJIT_API Status prepare(const TensorView &q, const TensorView &k,
                             const TensorView &v, const AttentionConfig &config,
                             const AttentionOutputs &outputs = {});

/// Which configuration such a call's attention kernel has, and how well the
/// tuning record behind it fits. The tensors' memory is not looked at; nothing
/// is compiled.
SPARGEJIT_API Result<TuningInfo> tuningOf(const TensorView &q,
                                          const TensorView &k,
                                          const TensorView &v,
                                          const AttentionConfig &config);

} // namespace spargejit
