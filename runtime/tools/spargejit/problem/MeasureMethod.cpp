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

/// On a GPU, calls are timed together until they take this long, so that one
/// wait for the device does not count.
constexpr double kMillisecondsBetweenWaits = 5;
constexpr int kMaxCallsBetweenWaits = 200;

/// Milliseconds a call of `calls` in a row, the device's work included.
Result<double> millisecondsPerCall(Device device, int calls,
                                   const std::function<Status()> &call) {
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i)
    if (Status status = call(); !status)
      return status;
  if (Status status = synchronise(device); !status)
    return status;
  auto took = std::chrono::steady_clock::now() - start;
  return std::chrono::duration<double, std::milli>(took).count() / calls;
}

/// Times `call` `repeat` times; `label` and `units` are for the progress line.
Result<double> medianMilliseconds(Device device, int repeat,
                                  const std::string &label, double units,
                                  report::Progress &progress,
                                  const std::function<Status()> &call) {
  int calls = 1;
  if (device.kind == DeviceKind::Cuda) {
    Result<double> estimate = millisecondsPerCall(device, 1, call);
    if (!estimate)
      return estimate;
    calls = static_cast<int>(std::clamp(kMillisecondsBetweenWaits / *estimate,
                                        1.0, double{kMaxCallsBetweenWaits}));
  }
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    progress.step(fmt::format("{} {} of {}", label, i + 1, repeat), units);
    Result<double> time = millisecondsPerCall(device, calls, call);
    if (!time)
      return time;
    times.push_back(*time);
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

/// The dense output for comparison is one of a run of its own.
bool needsFloat32Run(const AttentionInputs &inputs) {
  return inputs.qView.device.kind == DeviceKind::Cpu &&
         inputs.qView.dtype != DataType::Float32;
}

/// `result` is of a first run, in the memory of the inputs' device.
Status timeMethod(const AttentionInputs &inputs, const AttentionConfig &config,
                  int repeat, double density, const MethodResult &result,
                  report::Progress &progress, Measurement &measurement) {
  const Device device = inputs.qView.device;
  // selectBlocks refuses methods that select nothing; the method itself has
  // just run, so a refusal can mean nothing else.
  AttentionConfig attend = config;
  Result<BlockLists> lists = selectBlocks(inputs.qView, inputs.kView, config);
  if (lists) {
    Result<double> time =
        medianMilliseconds(device, repeat, "selection", 0, progress, [&] {
          return selectBlocks(inputs.qView, inputs.kView, config).status();
        });
    if (!time)
      return time.status();
    measurement.msSelect = *time;
    attend = configOverLists(config, result.lists);
  } else if (lists.status().code() != ErrorCode::InvalidArgument) {
    return lists.status();
  }

  Result<TensorView> o = viewAsBhnd(result.o, inputs.layout);
  if (!o)
    return o.status();
  Result<double> time =
      medianMilliseconds(device, repeat, "attention", density, progress, [&] {
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
  const AttentionConfig denseConfig = configOfDense(config);
  progress.step("dense attention, first run", 1);
  Result<MethodResult> dense = runMethod(inputs, denseConfig);
  if (!dense)
    return dense.status();
  Result<TensorView> o = viewAsBhnd(dense->o, inputs.layout);
  if (!o)
    return o.status();
  const Device device = inputs.qView.device;
  Result<double> time =
      medianMilliseconds(device, repeat, "dense attention", 1, progress, [&] {
        return attentionInto(*o, inputs.qView, inputs.kView, inputs.vView,
                             denseConfig);
      });
  if (!time)
    return time.status();
  measurement.msDense = *time;

  if (needsFloat32Run(inputs)) {
    progress.step("dense attention in float32", 1);
    Result<AttentionInputs> wide = widened(inputs);
    if (!wide)
      return wide.status();
    dense = runMethod(*wide, denseConfig);
    if (!dense)
      return dense.status();
  }
  dense = resultOnHost(*dense);
  if (!dense)
    return dense.status();
  Result<Tensor> denseO = convertTensor(dense->o, DataType::Float32);
  if (!denseO)
    return denseO.status();
  Result<Tensor> sparse =
      convertTensor(measurement.result.o, DataType::Float32);
  if (!sparse)
    return sparse.status();
  measurement.quality =
      compareWithDense(*denseO, dense->lse, *sparse, measurement.result.lse);
  return Status();
}

/// An output of NaN on the inputs' device.
Result<Tensor> poisonedOutput(DataType dtype,
                              const std::vector<std::int64_t> &sizes,
                              Device device) {
  Result<Tensor> output = Tensor::allocate(dtype, sizes);
  if (!output)
    return output;
  poison(*output);
  return device.kind == DeviceKind::Cpu ? output : output->copyTo(device);
}

} // namespace

AttentionConfig configOverLists(const AttentionConfig &config,
                                const BlockLists &lists) {
  AttentionConfig attend = config;
  attend.method = "block_sparse";
  attend.customSource.clear();
  attend.blockMask.reset();
  attend.lists = &lists;
  return attend;
}

AttentionConfig configOfDense(const AttentionConfig &config) {
  AttentionConfig dense = config;
  dense.method = "dense";
  dense.customSource.clear();
  dense.blockMask.reset();
  dense.lists = nullptr;
  dense.precision = Precision::Inputs;
  return dense;
}

Result<MethodResult> resultOnHost(const MethodResult &result) {
  MethodResult host = result;
  for (Tensor *tensor :
       {&host.o, &host.lse, &host.lists.indices, &host.lists.counts}) {
    if (tensor->empty() || tensor->view().device.kind == DeviceKind::Cpu)
      continue;
    Result<Tensor> copy = tensor->copyTo(Device{});
    if (!copy)
      return copy.status();
    *tensor = *std::move(copy);
  }
  return host;
}

Result<MethodResult> runMethod(const AttentionInputs &inputs,
                               const AttentionConfig &config) {
  const TensorView &shape = inputs.q.view();
  Result<Tensor> o = poisonedOutput(shape.dtype, shapeOf(shape), shape.device);
  if (!o)
    return o.status();
  Result<Tensor> lse = poisonedOutput(
      DataType::Float32,
      {inputs.qView.sizes.begin(), inputs.qView.sizes.begin() + 3},
      shape.device);
  if (!lse)
    return lse.status();
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
  Result<MethodResult> onHost = resultOnHost(*result);
  if (!onHost)
    return onHost.status();
  measurement.result = *std::move(onHost);

  // One unit is the work of one dense run.
  double density = measurement.result.lists.density();
  double denseRuns = compare ? repeat + 1 : 0;
  if (compare && needsFloat32Run(inputs))
    denseRuns += 1;
  progress.expect(density * repeat + denseRuns);
  if (Status status = timeMethod(inputs, config, repeat, density, *result,
                                 progress, measurement);
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
