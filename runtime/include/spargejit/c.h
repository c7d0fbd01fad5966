// SPDX-License-Identifier: Apache-2.0
//
// The library for C and for every language that calls C. What a function
// computes, which shapes and types it takes and what it refuses is said at the
// C++ function that its comment names (attention.h, training.h,
// distillation.h, tuning.h, library.h); this file says how it is asked for.
//
// Stable: within one SPARGEJIT_ABI_VERSION functions, fields and values are
// added and never changed. Structs with a `structSize` hold sizeof(struct) as
// the caller was compiled: fields that came later count as not given, and bytes
// that the library does not know must be 0. Results are written to
// memory of the caller; no pointer that is passed is kept after the call.
// All functions may be called from several threads at once.
#pragma once

#include "spargejit/export.h"

#include <stddef.h>
#include <stdint.h>

#define SPARGEJIT_ABI_VERSION 1

// NOLINTBEGIN(modernize-use-using,performance-enum-size,readability-identifier-naming):
// this is C, and its functions have C's one name space.

#ifdef __cplusplus
extern "C" {
#endif

// What every fallible function returns: 0, or who has to act (status.h).
typedef int32_t SpargejitStatus;
enum {
  SpargejitOk = 0,
  SpargejitInvalidArgument = 1,
  SpargejitUnsupported = 2,
  SpargejitCompileFailed = 3,
  SpargejitArtifactMissing = 4,
  SpargejitOutOfResources = 5,
  SpargejitDriverError = 6,
  SpargejitIoError = 7,
  SpargejitInternal = 8
};

// Values of `dtype`. A bool is one byte.
enum {
  SpargejitFloat32 = 0,
  SpargejitBFloat16 = 1,
  SpargejitFloat16 = 2,
  SpargejitInt32 = 3,
  SpargejitBool = 4,
  SpargejitFloat8E4M3 = 5
};

// Values of `precision` (Precision).
enum {
  SpargejitPrecisionInputs = 0,
  SpargejitPrecisionFp8Exact = 1,
  SpargejitPrecisionFp8Balanced = 2,
  SpargejitPrecisionFp8Fast = 3
};

// Values of `deviceKind`.
enum { SpargejitCpu = 0, SpargejitCuda = 1 };

// TensorView: a window on the caller's memory. Sizes and strides count
// elements; those from `rank` on are not read.
typedef struct SpargejitTensor {
  void *data;
  int32_t dtype;
  int32_t rank; // at most 4
  int64_t sizes[4];
  int64_t strides[4];
  int32_t deviceKind;
  int32_t deviceOrdinal; // 0 for the CPU
} SpargejitTensor;

// BlockLists: int32 indices [batch, qHeads, qBlocks, capacity] and counts
// [batch, qHeads, qBlocks], both dense row-major.
typedef struct SpargejitLists {
  SpargejitTensor indices;
  SpargejitTensor counts;
  int64_t maskBlockQ;
  int64_t maskBlockKv;
  int64_t qLen;
  int64_t kvLen;
} SpargejitLists;

// AttentionConfig. Start from spargejit_init_config().
typedef struct SpargejitConfig {
  size_t structSize;
  void *stream;             // CUstream; ignored on the CPU
  const char *method;       // null: the default
  const char *customSource; // null: none
  double topK;
  double topP;
  double softmaxScale; // read where hasSoftmaxScale is not 0
  const SpargejitTensor *topKByHead;
  const SpargejitTensor *topPByHead;
  const SpargejitTensor *blockMask;
  const SpargejitLists *lists;
  int64_t denseKeys[2]; // begin, end
  int64_t denseRows[2];
  int64_t maskBlockQ;
  int64_t maskBlockKv;
  int32_t hasSoftmaxScale;
  int32_t causal;
  int32_t validateLists;
  int32_t threads;
  int32_t tune;      // 0: off, 1: on first use
  int32_t precision; // one of SpargejitPrecision...
  int64_t keptBytes; // of a backward pass's workspace
} SpargejitConfig;

// Results beside the output; null: not wanted. Lists need lse as well, have one
// slot for each key block, and are left alone where config has lists or the
// method reads every key.
typedef struct SpargejitOutputs {
  size_t structSize;
  const SpargejitTensor *lse;
  const SpargejitLists *lists;
} SpargejitOutputs;

// q, k and v in eight bits (QuantisedTensors): the sizes and types there, dense
// row-major. dtype: SpargejitBFloat16 or SpargejitFloat16.
typedef struct SpargejitQuantised {
  size_t structSize;
  const SpargejitTensor *q;
  const SpargejitTensor *k;
  const SpargejitTensor *v;
  const SpargejitTensor *vScales;
  const SpargejitTensor *qFactors; // not read by spargejit_attention_quantised
  const SpargejitTensor *kFactors; // likewise; both may be null there
  int64_t kvLen;
  int32_t dtype;
  int32_t reserved;
} SpargejitQuantised;

// What the backward pass reads of the forward pass (AttentionSaved).
typedef struct SpargejitSaved {
  size_t structSize;
  const SpargejitTensor *o;
  const SpargejitTensor *lse;
  const SpargejitLists *lists; // null for a method that reads every key
} SpargejitSaved;

// Memory for gradients (AttentionGradientViews).
typedef struct SpargejitGradients {
  size_t structSize;
  const SpargejitTensor *dq;
  const SpargejitTensor *dk;
  const SpargejitTensor *dv;
} SpargejitGradients;

// TuningInfo. The texts live until the thread's next spargejit_tuning_of().
typedef struct SpargejitTuning {
  size_t structSize;
  double distance;
  const char *quality; // matchQualityName()
  const char *config;
  const char *problem;
} SpargejitTuning;

// Counters.
typedef struct SpargejitCounters {
  size_t structSize;
  int64_t kernelsCompiled;
  int64_t kernelCacheHits;
  int64_t kernelsFromDisk;
  int64_t plansMade;
  int64_t bytesAllocated;
  double compileMilliseconds;
} SpargejitCounters;

// SPARGEJIT_ABI_VERSION of the library; callers refuse another one.
SPARGEJIT_API int32_t spargejit_abi_version(void);
// version(), "major.minor.patch".
SPARGEJIT_API const char *spargejit_version(void);
// 1 with the compiler in it, else 0.
SPARGEJIT_API int32_t spargejit_has_compiler(void);
// "InvalidArgument"; "Ok" for 0.
SPARGEJIT_API const char *spargejit_status_name(SpargejitStatus status);
// What the calling thread's last failure said; lives until its next one.
SPARGEJIT_API const char *spargejit_last_error(void);
// JSON: version, compiler, methods, devices, cache folder, settings. Opens the
// CUDA driver where there is one. Lives until the thread's next call of it.
SPARGEJIT_API const char *spargejit_describe(void);
// counters().
SPARGEJIT_API SpargejitStatus
spargejit_get_counters(SpargejitCounters *counters);
// setLogCallback(): levels 0 debug, 1 info, 2 warning; null switches it off.
SPARGEJIT_API void spargejit_set_log_callback(
    void (*callback)(void *user, int32_t level, const char *line), void *user);

// Writes the defaults of AttentionConfig; `size` is sizeof *config.
SPARGEJIT_API SpargejitStatus spargejit_init_config(SpargejitConfig *config,
                                                    size_t size);

// Sets *hasLists to 1 where calls with this method attend by lists, which
// outputs can hand out, and to 0 where they read every key.
SPARGEJIT_API SpargejitStatus spargejit_method_has_lists(const char *method,
                                                         int32_t *hasLists);

// attentionInto(), and with outputs->lists attentionForwardInto(). `outputs`
// may be null.
SPARGEJIT_API SpargejitStatus spargejit_attention(
    const SpargejitTensor *o, const SpargejitTensor *q,
    const SpargejitTensor *k, const SpargejitTensor *v,
    const SpargejitConfig *config, const SpargejitOutputs *outputs);

// quantiseInto().
SPARGEJIT_API SpargejitStatus spargejit_quantise(const SpargejitQuantised *into,
                                                 const SpargejitTensor *q,
                                                 const SpargejitTensor *k,
                                                 const SpargejitTensor *v,
                                                 const SpargejitConfig *config);
// attentionQuantisedInto(). Of `outputs`, which may be null, lse alone counts.
SPARGEJIT_API SpargejitStatus spargejit_attention_quantised(
    const SpargejitTensor *o, const SpargejitQuantised *tensors,
    const SpargejitConfig *config, const SpargejitOutputs *outputs);

// selectBlocksInto().
SPARGEJIT_API SpargejitStatus spargejit_select_blocks(
    const SpargejitLists *into, const SpargejitTensor *q,
    const SpargejitTensor *k, const SpargejitConfig *config);

// attentionBackwardInto(). `dLse` may be null.
SPARGEJIT_API SpargejitStatus spargejit_attention_backward(
    const SpargejitGradients *gradients, const SpargejitTensor *q,
    const SpargejitTensor *k, const SpargejitTensor *v,
    const SpargejitSaved *saved, const SpargejitTensor *dO,
    const SpargejitConfig *config, const SpargejitTensor *dLse);

// prepare(); the tensors' data may be null. Of `outputs`, which may be null,
// lse alone counts.
SPARGEJIT_API SpargejitStatus
spargejit_prepare(const SpargejitTensor *q, const SpargejitTensor *k,
                  const SpargejitTensor *v, const SpargejitConfig *config,
                  const SpargejitOutputs *outputs);
// prepareBackward().
SPARGEJIT_API SpargejitStatus spargejit_prepare_backward(
    const SpargejitTensor *q, const SpargejitTensor *k,
    const SpargejitTensor *v, const SpargejitConfig *config);

// workspaceBytes() and backwardWorkspaceBytes().
SPARGEJIT_API SpargejitStatus spargejit_workspace_bytes(
    const SpargejitTensor *q, const SpargejitTensor *k,
    const SpargejitTensor *v, const SpargejitConfig *config, int64_t *bytes);
SPARGEJIT_API SpargejitStatus spargejit_backward_workspace_bytes(
    const SpargejitTensor *q, const SpargejitTensor *k,
    const SpargejitTensor *v, const SpargejitConfig *config, int64_t *bytes);

// tuningOf().
SPARGEJIT_API SpargejitStatus spargejit_tuning_of(const SpargejitTensor *q,
                                                  const SpargejitTensor *k,
                                                  const SpargejitTensor *v,
                                                  const SpargejitConfig *config,
                                                  SpargejitTuning *tuning);

// distillationLoss(); of config stream and threads count. `gradient` may be
// null.
SPARGEJIT_API SpargejitStatus spargejit_distillation_loss(
    const SpargejitTensor *loss, const SpargejitTensor *gradient,
    const SpargejitTensor *student, const SpargejitTensor *teacher,
    double lossScale, const SpargejitConfig *config);

// synchronise().
SPARGEJIT_API SpargejitStatus spargejit_synchronise(int32_t deviceKind,
                                                    int32_t deviceOrdinal);

#ifdef __cplusplus
}
#endif
// NOLINTEND(modernize-use-using,performance-enum-size,readability-identifier-naming)
