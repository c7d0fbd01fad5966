// SPDX-License-Identifier: Apache-2.0
//
// The checks, one property a line.
#include "runtime/api/Validate.h"

#include "runtime/api/ViewChecks.h"

#include <cmath>
#include <tuple>

namespace spargejit::api {

namespace {

using plan::AttentionProblem;

constexpr std::int64_t kMaxHeadDim = 256;

void checkQuery(Checks &checks, const TensorView &q, MemoryUse use) {
  checkView(checks, "q", q, 4, "[batch, qHeads, qLen, headDim]", use);
  if (!checks.ok())
    return;
  checks.that(q.dtype == DataType::Float32 || q.dtype == DataType::BFloat16 ||
                  q.dtype == DataType::Float16,
              "q.dtype: expected float32, bfloat16 or float16, got {}",
              q.dtype);
  checks.that(q.sizes[1] >= 1, "q.sizes[1]: expected at least 1 head, got {}",
              q.sizes[1]);
  checks.that(q.sizes[3] >= 8 && q.sizes[3] <= kMaxHeadDim &&
                  q.sizes[3] % 8 == 0,
              "q.sizes[3]: expected a headDim that is a multiple of 8 from 8 "
              "to {}, got {}",
              kMaxHeadDim, q.sizes[3]);
  checkLastStride(checks, "q", q);
}

void checkKeyLike(Checks &checks, const char *name, const TensorView &view,
                  const TensorView &q, MemoryUse use) {
  checkView(checks, name, view, 4, "[batch, kvHeads, kvLen, headDim]", use);
  if (!checks.ok())
    return;
  checkDevice(checks, name, view, q.device);
  checks.that(view.dtype == q.dtype, "{}.dtype: expected {} as in q, got {}",
              name, q.dtype, view.dtype);
  checkSize(checks, name, view, 0, "batch", q.sizes[0], "q");
  checks.that(view.sizes[1] >= 1 && q.sizes[1] % view.sizes[1] == 0,
              "{}.sizes[1]: expected a number of heads that divides the {} of "
              "q, got {}",
              name, q.sizes[1], view.sizes[1]);
  checkSize(checks, name, view, 3, "headDim", q.sizes[3], "q");
  checkLastStride(checks, name, view);
}

void checkSettings(Checks &checks, const AttentionConfig &config) {
  // Written so that NaN fails.
  checks.that(config.topK >= 0 && config.topK <= 1,
              "config.topK: expected a share from 0 to 1, got {}", config.topK);
  checks.that(config.topP >= 0 && config.topP <= 1,
              "config.topP: expected a mass from 0 to 1, got {}", config.topP);
  checks.that(config.maskBlockQ == 64 || config.maskBlockQ == 128,
              "config.maskBlockQ: expected 64 or 128, got {}",
              config.maskBlockQ);
  checks.that(config.maskBlockKv == 16 || config.maskBlockKv == 32 ||
                  config.maskBlockKv == 64 || config.maskBlockKv == 128,
              "config.maskBlockKv: expected 16, 32, 64 or 128, got {}",
              config.maskBlockKv);
  checks.that(config.precision <= Precision::Fp8Fast,
              "config.precision: expected a Precision, got the number {}",
              static_cast<int>(config.precision));
  double scale = config.softmaxScale.value_or(1);
  checks.that(std::isfinite(static_cast<float>(scale)),
              "config.softmaxScale: expected a finite float32, got {}", scale);
  checkThreads(checks, config.threads);
  checks.that(config.keptBytes >= 0,
              "config.keptBytes: expected at least 0, got {}",
              config.keptBytes);
  checks.that(config.tune == TuneMode::Off ||
                  config.tune == TuneMode::OnFirstUse,
              "config.tune: expected a TuneMode, got the number {}",
              static_cast<int>(config.tune));
}

/// Values by head: float32 [1], [qHeads] or [batch, qHeads].
void checkByHead(Checks &checks, const char *name,
                 const std::optional<TensorView> &values, const TensorView &q,
                 MemoryUse use) {
  if (!values)
    return;
  const bool isFlat = values->rank != 2;
  checkView(checks, name, *values, isFlat ? 1 : 2,
            "[1] or [qHeads]; or 2, [batch, qHeads]", use);
  if (!checks.ok())
    return;
  checkDevice(checks, name, *values, q.device);
  checks.that(values->dtype == DataType::Float32,
              "{}.dtype: expected float32, got {}", name, values->dtype);
  if (!isFlat)
    checkSize(checks, name, *values, 0, "batch", q.sizes[0], "q");
  if (!isFlat || values->sizes[0] != 1)
    checkSize(checks, name, *values, isFlat ? 0 : 1, "qHeads", q.sizes[1], "q");
}

void checkRange(Checks &checks, const char *name, const TokenRange &range,
                std::int64_t length, const char *what) {
  checks.that(range.begin >= 0 && range.begin <= range.end &&
                  range.end <= length,
              "config.{}: expected 0 <= begin <= end <= {} ({}), got {} to {}",
              name, length, what, range.begin, range.end);
}

/// The blocks that hold tokens of a range: first, and one beyond the last.
std::pair<std::int64_t, std::int64_t> blocksOf(const TokenRange &range,
                                               std::int64_t block) {
  if (range.begin == range.end)
    return {0, 0};
  return {range.begin / block, plan::blockCount(range.end, block)};
}

AttentionProblem makeProblem(const TensorView &q, const TensorView &k,
                             const AttentionConfig &config) {
  AttentionProblem problem;
  problem.kind = {q.dtype, q.sizes[3], config.maskBlockQ, config.maskBlockKv,
                  config.causal};
  problem.device = q.device;
  problem.batch = q.sizes[0];
  problem.qHeads = q.sizes[1];
  problem.kvHeads = k.sizes[1];
  problem.qLen = q.sizes[2];
  problem.kvLen = k.sizes[2];
  problem.kind.rows = plan::selectionRows(
      problem.batch * problem.qHeads * problem.qBlocks(), problem.qBlocks(),
      problem.kvBlocks(), problem.kind.headDim);
  problem.softmaxScale = static_cast<float>(config.softmaxScale.value_or(
      1 / std::sqrt(static_cast<double>(q.sizes[3]))));
  problem.topK = config.topK;
  problem.topP = config.topP;
  auto &dense = problem.dense;
  std::tie(dense[0], dense[1]) = blocksOf(config.denseKeys, config.maskBlockKv);
  std::tie(dense[2], dense[3]) = blocksOf(config.denseRows, config.maskBlockQ);
  problem.kind.hasDense = dense[1] > 0 || dense[3] > 0;
  return problem;
}

/// An output must not share memory with anything that the call reads.
void checkApartFromInputs(Checks &checks, const char *name,
                          const SpannedView &view, const CallTensors &tensors,
                          const AttentionConfig &config) {
  const bool areRounded = tensors.eightQ != nullptr;
  checkApart(checks, name, view, areRounded ? "tensors.q" : "q", tensors.q);
  checkApart(checks, name, view, areRounded ? "tensors.k" : "k", tensors.k);
  checkApart(checks, name, view, areRounded ? "tensors.v" : "v", tensors.v);
  checkApart(checks, name, view, "tensors.vScales", tensors.vScales);
  for (auto [other, values] :
       {std::pair("config.topKByHead", &config.topKByHead),
        std::pair("config.topPByHead", &config.topPByHead)})
    if (*values)
      checkApart(checks, name, view, other, &**values);
  if (config.blockMask)
    checkApart(checks, name, view, "config.blockMask", &*config.blockMask);
  if (config.lists) {
    checkApart(checks, name, view, "config.lists.indices",
               &config.lists->indices.view());
    checkApart(checks, name, view, "config.lists.counts",
               &config.lists->counts.view());
  }
}

} // namespace

Result<AttentionProblem> validateInputs(const CallTensors &tensors,
                                        const AttentionConfig &config,
                                        MemoryUse use) {
  const TensorView &q = *tensors.q;
  const TensorView &k = *tensors.k;
  Checks checks;
  checkQuery(checks, q, use);
  if (checks.ok())
    checkKeyLike(checks, "k", k, q, use);
  if (checks.ok() && tensors.v) {
    checkKeyLike(checks, "v", *tensors.v, q, use);
    checkSize(checks, "v", *tensors.v, 1, "kvHeads", k.sizes[1], "k");
    checkSize(checks, "v", *tensors.v, 2, "kvLen", k.sizes[2], "k");
  }
  checkSettings(checks, config);
  if (checks.ok()) {
    checkRange(checks, "denseKeys", config.denseKeys, k.sizes[2], "kvLen");
    checkRange(checks, "denseRows", config.denseRows, q.sizes[2], "qLen");
  }
  if (checks.ok())
    checkByHead(checks, "config.topKByHead", config.topKByHead, q, use);
  if (checks.ok())
    checkByHead(checks, "config.topPByHead", config.topPByHead, q, use);
  if (!checks.ok())
    return std::move(checks).status();
  AttentionProblem problem = makeProblem(q, k, config);
  // Selection alone has one precision.
  if (tensors.v)
    problem.kind.precision = config.precision;
  if (Status status = validatePrecision(problem, config); !status)
    return status;
  return problem;
}

Status validateOutputs(const CallTensors &tensors,
                       const AttentionProblem &problem,
                       const AttentionConfig &config, MemoryUse use) {
  Checks checks;
  if (const TensorView *o = tensors.o) {
    checkView(checks, "o", *o, 4, "[batch, qHeads, qLen, headDim]", use);
    if (checks.ok()) {
      checkDevice(checks, "o", *o, problem.device);
      checks.that(o->dtype == problem.kind.dtype,
                  "o.dtype: expected {} as in q, got {}", problem.kind.dtype,
                  o->dtype);
      checkSize(checks, "o", *o, 0, "batch", problem.batch, "q");
      checkSize(checks, "o", *o, 1, "qHeads", problem.qHeads, "q");
      checkSize(checks, "o", *o, 2, "qLen", problem.qLen, "q");
      checkSize(checks, "o", *o, 3, "headDim", problem.kind.headDim, "q");
      checkLastStride(checks, "o", *o);
      checkDistinct(checks, "o", *o);
    }
    if (checks.ok() && use == MemoryUse::Used)
      checkApartFromInputs(checks, "o", *o, tensors, config);
  }
  if (const TensorView *lse = tensors.lse; lse && checks.ok()) {
    const char *name = "outputs.lse";
    checkView(checks, name, *lse, 3, "[batch, qHeads, qLen]", use);
    if (checks.ok()) {
      checkDevice(checks, name, *lse, problem.device);
      checks.that(lse->dtype == DataType::Float32,
                  "outputs.lse.dtype: expected float32, got {}", lse->dtype);
      checkSize(checks, name, *lse, 0, "batch", problem.batch, "q");
      checkSize(checks, name, *lse, 1, "qHeads", problem.qHeads, "q");
      checkSize(checks, name, *lse, 2, "qLen", problem.qLen, "q");
      checkRowValues(checks, name, *lse);
      checkDistinct(checks, name, *lse);
    }
    if (checks.ok() && use == MemoryUse::Used) {
      const SpannedView spanned(*lse);
      checkApart(checks, name, spanned, "o", tensors.o);
      checkApartFromInputs(checks, name, spanned, tensors, config);
    }
  }
  return std::move(checks).status();
}

} // namespace spargejit::api
