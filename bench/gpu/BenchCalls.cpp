// SPDX-License-Identifier: Apache-2.0
//
// Calls of attention behind C functions, for run_gpu_bench.py: it lets the
// library and others work on the same tensors in one process, in turns.
#include "spargejit/spargejit.h"

#include <cstdint>
#include <memory>
#include <string>

namespace {

using namespace spargejit;

thread_local std::string lastError;

int failed(const Status &status) {
  lastError = status.ok() ? std::string()
                          : std::string(errorCodeName(status.code())) + ": " +
                                status.message();
  return status.ok() ? 0 : 1;
}

/// Somebody else's memory.
std::shared_ptr<void> borrow(void *memory) {
  return {memory, [](void *) {}};
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

extern "C" {
/// What a call is about. Tensors are [batch, heads, length, headDim] on device
/// `ordinal`, with strides in elements; lse and lists may be null.
struct SpargejitBenchProblem {
  std::int32_t ordinal;
  std::int32_t isBfloat16; ///< or float16
  std::int64_t batch, qHeads, kvHeads, qLen, kvLen, headDim;
  void *q, *k, *v, *o, *lse;
  std::int64_t qStrides[4], kStrides[4], vStrides[4], oStrides[4];
  std::int64_t maskBlockQ, maskBlockKv;
  std::int32_t causal;
  void *indices, *counts; ///< null: dense, or what is selected
  std::int64_t capacity;
  std::int32_t selects; ///< by SpargeAttention2's rule, with topK and topP
  double topK, topP;
  void *stream;
  /// Of a backward pass, with the strides of o, q, k and v; else null.
  void *dO, *dQ, *dK, *dV;
};
}

namespace {

struct BenchCall {
  explicit BenchCall(const SpargejitBenchProblem &p) {
    const Device device{DeviceKind::Cuda, p.ordinal};
    const DataType type = p.isBfloat16 ? DataType::BFloat16 : DataType::Float16;
    auto view = [&](void *data, std::int64_t heads, std::int64_t length,
                    const std::int64_t *strides) {
      return TensorView::strided(
          data, type, {p.batch, heads, length, p.headDim},
          {strides[0], strides[1], strides[2], strides[3]}, device);
    };
    q = view(p.q, p.qHeads, p.qLen, p.qStrides);
    k = view(p.k, p.kvHeads, p.kvLen, p.kStrides);
    v = view(p.v, p.kvHeads, p.kvLen, p.vStrides);
    o = view(p.o, p.qHeads, p.qLen, p.oStrides);
    if (p.dO) {
      dO = view(p.dO, p.qHeads, p.qLen, p.oStrides);
      gradients = {view(p.dQ, p.qHeads, p.qLen, p.qStrides),
                   view(p.dK, p.kvHeads, p.kvLen, p.kStrides),
                   view(p.dV, p.kvHeads, p.kvLen, p.vStrides)};
    }
    config.method = "dense";
    config.maskBlockQ = p.maskBlockQ;
    config.maskBlockKv = p.maskBlockKv;
    config.causal = p.causal != 0;
    config.stream = p.stream;
    if (p.lse) {
      lse = TensorView::contiguous(p.lse, DataType::Float32,
                                   {p.batch, p.qHeads, p.qLen}, device);
      outputs.lse = &lse;
    }
    if (p.selects) {
      config.method = "spargeattention2";
      config.topK = p.topK;
      config.topP = p.topP;
    }
    if (!p.indices)
      return;
    const std::int64_t qBlocks = (p.qLen + p.maskBlockQ - 1) / p.maskBlockQ;
    lists = {Tensor::adopt(borrow(p.indices), DataType::Int32,
                           {p.batch, p.qHeads, qBlocks, p.capacity}, device),
             Tensor::adopt(borrow(p.counts), DataType::Int32,
                           {p.batch, p.qHeads, qBlocks}, device),
             p.maskBlockQ,
             p.maskBlockKv,
             p.qLen,
             p.kvLen};
    config.method = "block_sparse";
    config.lists = &lists;
  }
  BenchCall(const BenchCall &) = delete;
  BenchCall &operator=(const BenchCall &) = delete;

  TensorView q, k, v, o, lse, dO;
  AttentionGradientViews gradients;
  BlockLists lists;
  AttentionConfig config;
  AttentionOutputs outputs;
};

} // namespace

EXPORTED BenchCall *spargejit_bench_make(const SpargejitBenchProblem *problem) {
  return new BenchCall(*problem);
}
EXPORTED void spargejit_bench_free(BenchCall *call) { delete call; }

/// 0, or 1 with a message in spargejit_bench_error().
EXPORTED int spargejit_bench_prepare(BenchCall *call) {
  return failed(
      prepare(call->q, call->k, call->v, call->config, call->outputs));
}
EXPORTED int spargejit_bench_run(BenchCall *call) {
  return failed(attentionInto(call->o, call->q, call->k, call->v, call->config,
                              call->outputs));
}
EXPORTED int spargejit_bench_prepare_backward(BenchCall *call) {
  return failed(prepareBackward(call->q, call->k, call->v, call->config));
}
/// The backward pass of what the last run left; needs lse.
EXPORTED int spargejit_bench_run_backward(BenchCall *call) {
  return failed(attentionBackwardInto(
      call->gradients, call->q, call->k, call->v,
      {call->o, call->lse, call->config.lists}, call->dO, call->config));
}
/// Selects, and gives the lists' addresses on the device and the slots of a
/// row; they live as long as the call.
EXPORTED int spargejit_bench_select(BenchCall *call, void **indices,
                                    void **counts, std::int64_t *capacity) {
  auto lists = selectBlocks(call->q, call->k, call->config);
  if (!lists.ok())
    return failed(lists.status());
  call->lists = *lists;
  *indices = call->lists.indices.view().data;
  *counts = call->lists.counts.view().data;
  *capacity = call->lists.indices.view().sizes[3];
  return failed(Status());
}
/// Of the calling thread's last call.
EXPORTED const char *spargejit_bench_error() { return lastError.c_str(); }
EXPORTED const char *spargejit_bench_version() { return version(); }
/// Spent on compiling to PTX so far.
EXPORTED double spargejit_bench_compile_milliseconds() {
  return counters().compileMilliseconds;
}
