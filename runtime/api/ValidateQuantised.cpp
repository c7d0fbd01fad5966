// SPDX-License-Identifier: Apache-2.0
//
// Checks of calls in eight bits.
#include "runtime/api/Validate.h"
#include "runtime/api/ViewChecks.h"
#include "runtime/plan/CallBinding.h"

namespace spargejit::api {

namespace {

using plan::AttentionProblem;

bool isHalfType(DataType dtype) {
  return dtype == DataType::BFloat16 || dtype == DataType::Float16;
}

void checkEightBits(Checks &checks, const char *name, const TensorView &view,
                    const char *shape, Device device) {
  checkView(checks, name, view, 4, shape, MemoryUse::Used);
  if (!checks.ok())
    return;
  checkDevice(checks, name, view, device);
  checks.that(view.dtype == DataType::Float8E4M3,
              "{}.dtype: expected float8_e4m3fn, got {}", name, view.dtype);
}

} // namespace

Status validatePrecision(const AttentionProblem &problem,
                         const AttentionConfig &config) {
  Checks checks;
  if (!problem.kind.isEightBit())
    return std::move(checks).status();
  const char *precision = precisionName(config.precision);
  checks.supported(isHalfType(problem.kind.dtype),
                   "q.dtype: expected bfloat16 or float16 with "
                   "config.precision {}, got {}",
                   precision, problem.kind.dtype);
  checks.supported(config.tune == TuneMode::Off,
                   "config.tune: expected Off, since no kernel of "
                   "config.precision {} is tuned, got OnFirstUse",
                   precision);
  return std::move(checks).status();
}

Result<AttentionProblem> validateQuantised(const QuantisedTensors &tensors,
                                           const AttentionConfig &config) {
  const TensorView &q = tensors.q.view(), &k = tensors.k.view(),
                   &v = tensors.v.view(), &scales = tensors.vScales.view();
  Checks checks;
  checks.that(config.precision != Precision::Inputs,
              "config.precision: expected one of eight bits, since q, k and v "
              "are, got inputs");
  checks.that(isHalfType(tensors.dtype),
              "tensors.dtype: expected bfloat16 or float16, got {}",
              tensors.dtype);
  checkEightBits(checks, "tensors.q", q, "[batch, qHeads, qLen, headDim]",
                 q.device);
  if (checks.ok())
    checkEightBits(checks, "tensors.k", k, "[batch, kvHeads, kvLen, headDim]",
                   q.device);
  if (checks.ok())
    checkEightBits(checks, "tensors.v", v,
                   "on the CPU [batch, kvHeads, kvLen, headDim], on a GPU "
                   "[batch, kvHeads, cores, 128]",
                   q.device);
  if (checks.ok())
    checkView(checks, "tensors.vScales", scales, 3, "[batch, kvHeads, headDim]",
              MemoryUse::Used);
  if (checks.ok()) {
    checkDevice(checks, "tensors.vScales", scales, q.device);
    checks.that(scales.dtype == DataType::Float32,
                "tensors.vScales.dtype: expected float32, got {}",
                scales.dtype);
    checks.that(k.sizes[2] == tensors.kvLen,
                "tensors.kvLen: expected {} as in tensors.k, got {}",
                k.sizes[2], tensors.kvLen);
  }
  if (!checks.ok())
    return std::move(checks).status();
  // The rest is that of a call with tensors of dtype.
  TensorView wideQ = q, wideK = k;
  wideQ.dtype = wideK.dtype = tensors.dtype;
  auto problem = validateInputs({&wideQ, &wideK}, config, MemoryUse::Ignored);
  if (!problem.ok())
    return problem;
  problem->kind.precision = config.precision;
  const auto expected = plan::quantisedValueSizes(*problem);
  for (std::size_t i = 0; i < expected.size(); ++i)
    checks.that(v.sizes[i] == expected[i],
                "tensors.v.sizes[{}]: expected {}, got {}", i, expected[i],
                v.sizes[i]);
  checkSize(checks, "tensors.vScales", scales, 0, "batch", problem->batch,
            "tensors.k");
  checkSize(checks, "tensors.vScales", scales, 1, "kvHeads", problem->kvHeads,
            "tensors.k");
  checkSize(checks, "tensors.vScales", scales, 2, "headDim",
            problem->kind.headDim, "tensors.k");
  checks.also(validatePrecision(*problem, config));
  if (!checks.ok())
    return std::move(checks).status();
  return problem;
}

} // namespace spargejit::api
