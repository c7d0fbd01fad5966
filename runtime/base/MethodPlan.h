// SPDX-License-Identifier: Apache-2.0
//
// A method file (kernels_ir/methods/*.mlir) reduced to launches and the values
// between them. Made by compiler/Driver/PlanMethod.h, bound to shapes and
// memory by runtime/plan. No MLIR, no sizes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace spargejit {

/// A value of a method: an argument, a result of a launch, or a scalar.
struct PlanValue {
  enum class Kind : std::uint8_t {
    Query,       ///< q  [batch, qHeads, qLen, headDim], caller's
    Key,         ///< k  [batch, kvHeads, kvLen, headDim], caller's
    Value,       ///< v  [batch, kvHeads, kvLen, headDim], caller's
    PooledQuery, ///< float32 [batch, qHeads, qBlocks, headDim], or what
                 ///< tile.store_split makes of it
    PooledKey,   ///< the same [batch, kvHeads, kvBlocks, headDim]
    Lists,       ///< BlockLists: two tensors, indices and counts
    CallerLists, ///< BlockLists that come with the call (mask or lists)
    Output,      ///< o  [batch, qHeads, qLen, headDim], caller's or new
    Lse,         ///< float32 [batch, qHeads, qLen]
    Scalar,      ///< float64 taken from AttentionConfig by name
    Constant,    ///< float64 written in the method file
    DOutput,     ///< gradient of o, caller's; any strides
    DLse,        ///< gradient of lse, float32, caller's; may be absent
    Delta,       ///< float32 [batch, qHeads, qLen], between launches
    KeyLists,    ///< lists of query blocks by key block: two tensors, int32
                 ///< [batch, qHeads, kvBlocks, qBlocks] and without the last
    DQuery,      ///< gradient of q, caller's or new
    DKey,        ///< gradient of k, caller's or new
    DValue,      ///< gradient of v, caller's or new
    Places,      ///< where score gradients are kept: two tensors, int32
                 ///< [batch, qHeads, kvBlocks, qBlocks] as KeyLists' first,
                 ///< and [batch, qHeads, qBlocks]
    Unkept,      ///< int32 [batch, 1, qHeads]: blocks of rows without a place
    Kept,        ///< score gradients kept between launches, of as many heads
                 ///< at a time as AttentionProblem::keptHeads says
    // Of attention in eight bits (runtime/plan/QuantisedPlan.h), which no
    // method names.
    QuantisedQuery, ///< q in eight bits
    QuantisedKey,   ///< k in eight bits
    QuantisedValue, ///< v in eight bits, on a GPU as an image
    RoundingPeaks,  ///< float32 [batch, kvHeads, kPeakRows, headDim], what
                    ///< the warps of a head tell each other
    Saturated,      ///< int32 [batch · kvHeads], not 0 where a head's factors
                    ///< may have been too large
    QueryFactors,   ///< float32 [batch, qHeads], what q is multiplied with
    KeyFactors,     ///< the same of k, with kvHeads
    ValueFactors,   ///< float32 [batch, kvHeads, headDim], the same of v
    ValueScales,    ///< 1 / ValueFactors
  };
  Kind kind = Kind::Query;
  /// Scalar: "top_k" (share of key blocks), "top_p" (probability mass).
  std::string name;
  /// Constant: its value.
  double constant = 0;
};

/// A kernel's argument, by the name it has in the kernel text, and the value it
/// gets (an index into MethodPlan::values). A value of kind Lists or
/// CallerLists is bound twice: to "indices" and to "counts"; KeyLists to
/// "key_indices" and to "key_counts", Places to "places" and to "row_places".
/// Arguments that follow from the problem alone ("softmax_scale", "q_len",
/// "kv_len") are not listed; tensor arguments that are neither are absent.
struct PlanArgument {
  std::string name;
  int value = 0;
};

/// A stage that the user wrote in CUDA C++ and a kernel is compiled with.
struct PlanSource {
  /// The function that it defines: "score" or "keep".
  std::string function;
  /// Its text, with #line directives that name the method file; empty when the
  /// call brings it (config.customSource).
  std::string text;
};

/// One kernel launch.
struct PlanLaunch {
  /// Name of the tile.kernel: "pool", "select_blocks", "attention_fwd"; or
  /// "custom_select", which NVRTC compiles.
  std::string kernel;
  std::vector<PlanArgument> arguments;
  /// Compile-time parameters that the method decides, for example
  /// {"keep_diagonal", 1}.
  std::map<std::string, std::int64_t> parameters;
  /// Stages in CUDA C++. A launch that has any runs on a GPU alone.
  std::vector<PlanSource> sources;

  bool isCustom() const { return !sources.empty(); }
};

struct MethodPlan {
  /// The method's symbol name.
  std::string name;
  std::vector<PlanValue> values;
  std::vector<PlanLaunch> launches;

  /// True when some stage's text comes with the call.
  bool takesCustomSource() const {
    for (const PlanLaunch &launch : launches)
      for (const PlanSource &source : launch.sources)
        if (source.text.empty())
          return true;
    return false;
  }
  /// True for a backward pass: it takes what a forward pass left and makes
  /// gradients.
  bool isBackward() const {
    for (const PlanValue &value : values)
      if (value.kind == PlanValue::Kind::DOutput)
        return true;
    return false;
  }
  /// True when some launch makes block lists.
  bool selects() const {
    for (const PlanValue &value : values)
      if (value.kind == PlanValue::Kind::Lists)
        return true;
    return false;
  }
};

} // namespace spargejit
