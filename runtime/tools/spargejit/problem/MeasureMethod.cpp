// SPDX-License-Identifier: Apache-2.0
//
// MeasureMethod.h. The parts are timed as users would call them: selectBlocks,
// then attention over the lists that it gave.
#include "runtime/tools/spargejit/problem/MeasureMethod.h"

#include "runtime/tools/spargejit/problem/ElementTypes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace spargejit::problem {

namespace {

/// Times `repeat` calls; `label` and `units` are for the progress line.
Result<double> medianMilliseconds(int repeat, const std::string &label,
                                  double units, report::Progress &progress,
                                  const std::function<Status()> &call) {
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    progress.step(fmt::format("{} {} of {}", label, i + 1, repeat), units);
    auto start = std::chrono::steady_clock::now();
    if (Status status = call(); !status)
      return status;
    auto took = std::chrono::steady_clock::now() - start;
    times.push_back(std::chrono::duration<double, std::milli>(took).count());
  }
  std::sort(times.begin(), times.end());
  std::size_t half = times.size() / 2;
  return times.size() % 2 == 1 ? times[half]
                               : (times[half - 1] + times[half]) / 2;
}

Result<AttentionInputs> widened(const AttentionInputs &inputs) {
  AttentionInputs wide = inputs;
  for (auto [tensor, view] : {std::pair{&wide.q, &wide.qView},
                              {&wide.k, &wide.kView},
                              {&wide.v, &wide.vView}}) {
    Result<Tensor> converted = convertTensor(*tensor, DataType::Float32);
    if (!converted)
      return converted.status();
    *tensor = *std::move(converted);
    Result<TensorView> seen = viewAsBhnd(*tensor, wide.layout);
    if (!seen)
      return seen.status();
    *view = *seen;
  }
  return wide;
}

Status timeMethod(const AttentionInputs &inputs, const AttentionConfig &config,
                  int repeat, double density, report::Progress &progress,
                  Measurement &measurement) {
  // selectBlocks refuses methods that select nothing; the method itself has
  // just run, so a refusal can mean nothing else.
  AttentionConfig attend = config;
  Result<BlockLists> lists = selectBlocks(inputs.qView, inputs.kView, config);
  if (lists) {
    Result<double> time =
        medianMilliseconds(repeat, "selection", 0, progress, [&] {
          return selectBlocks(inputs.qView, inputs.kView, config).status();
        });
    if (!time)
      return time.status();
    measurement.msSelect = *time;
    attend.method = "block_sparse";
    attend.blockMask.reset();
    attend.lists = &measurement.result.lists;
  } else if (lists.status().code() != ErrorCode::InvalidArgument) {
    return lists.status();
  }

  Result<TensorView> o = viewAsBhnd(measurement.result.o, inputs.layout);
  if (!o)
    return o.status();
  Result<double> time =
      medianMilliseconds(repeat, "attention", density, progress, [&] {
        return attentionInto(*o, inputs.qView, inputs.kView, inputs.vView,
                             attend);
      });
  if (!time)
    return time.status();
  measurement.msAttention = *time;
  return Status();
}

Status compareDense(const AttentionInputs &inputs,
                    const AttentionConfig &config, int repeat,
                    report::Progress &progress, Measurement &measurement) {
  AttentionConfig denseConfig = config;
  denseConfig.method = "dense";
  denseConfig.blockMask.reset();
  denseConfig.lists = nullptr;

  progress.step("dense attention, first run", 1);
  Result<MethodResult> dense = runMethod(inputs, denseConfig);
  if (!dense)
    return dense.status();
  Result<TensorView> o = viewAsBhnd(dense->o, inputs.layout);
  if (!o)
    return o.status();
  Result<double> time =
      medianMilliseconds(repeat, "dense attention", 1, progress, [&] {
        return attentionInto(*o, inputs.qView, inputs.kView, inputs.vView,
                             denseConfig);
      });
  if (!time)
    return time.status();
  measurement.msDense = *time;

  if (inputs.q.view().dtype != DataType::Float32) {
    progress.step("dense attention in float32", 1);
    Result<AttentionInputs> wide = widened(inputs);
    if (!wide)
      return wide.status();
    dense = runMethod(*wide, denseConfig);
    if (!dense)
      return dense.status();
  }
  Result<Tensor> sparse =
      convertTensor(measurement.result.o, DataType::Float32);
  if (!sparse)
    return sparse.status();
  measurement.quality =
      compareWithDense(dense->o, dense->lse, *sparse, measurement.result.lse);
  return Status();
}

} // namespace

Result<MethodResult> runMethod(const AttentionInputs &inputs,
                               const AttentionConfig &config) {
  const TensorView &shape = inputs.q.view();
  Result<Tensor> o = Tensor::allocate(shape.dtype, shapeOf(shape));
  if (!o)
    return o.status();
  Result<Tensor> lse =
      Tensor::allocate(DataType::Float32, {inputs.qView.sizes.begin(),
                                           inputs.qView.sizes.begin() + 3});
  if (!lse)
    return lse.status();
  poison(*o);
  poison(*lse);
  Result<TensorView> oView = viewAsBhnd(*o, inputs.layout);
  if (!oView)
    return oView.status();

  MethodResult result;
  result.o = *o;
  result.lse = *lse;
  AttentionOutputs outputs;
  outputs.lse = &result.lse.view();
  outputs.lists = &result.lists;
  if (Status status = attentionInto(*oView, inputs.qView, inputs.kView,
                                    inputs.vView, config, outputs);
      !status)
    return status;
  return result;
}

Result<Measurement> measureMethod(const AttentionInputs &inputs,
                                  const AttentionConfig &config, int repeat,
                                  bool compare, report::Progress &progress) {
  Measurement measurement;
  progress.step("first run", 0);
  Result<MethodResult> result = runMethod(inputs, config);
  if (!result)
    return result.status();
  measurement.result = *std::move(result);

  // One unit is the work of one dense run.
  double density = measurement.result.lists.density();
  double denseRuns = compare ? repeat + 1 : 0;
  if (compare && inputs.q.view().dtype != DataType::Float32)
    denseRuns += 1;
  progress.expect(density * repeat + denseRuns);
  if (Status status =
          timeMethod(inputs, config, repeat, density, progress, measurement);
      !status)
    return status;
  if (compare)
    if (Status status =
            compareDense(inputs, config, repeat, progress, measurement);
        !status)
      return status;
  progress.finish();
  return measurement;
}

} // namespace spargejit::problem
