// SPDX-License-Identifier: Apache-2.0
//
// Candidates on a real device.
#include "runtime/tools/spargejit/TuneDevice.h"

#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/api/device/CudaDevice.h"
#include "runtime/backend/cuda/Driver.h"
#include "runtime/base/DataTypeConversion.h"
#include "runtime/base/Hash.h"
#include "runtime/jit/AssembleWithPtxas.h"
#include "runtime/tools/spargejit/CheckReference.h"
#include "runtime/tools/spargejit/SystemProbe.h"
#include "runtime/tools/spargejit/TuningFacts.h"
#include "runtime/tools/spargejit/problem/ElementTypes.h"
#include "runtime/tools/spargejit/problem/SyntheticInputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

namespace spargejit::tool {

namespace {

using autotune::ProblemShape;

constexpr const char *kKernel = "attention_fwd";
/// More than the last-level cache of any device meant here (H200: 50 MB of L2),
/// so that buffers that take turns are read from memory.
constexpr double kCacheBytes = 128e6;
constexpr std::size_t kMostBuffers = 8;
/// Calls are timed together for at least this long, so that reading the clock
/// and waiting for the device do not count.
constexpr double kLeastMilliseconds = 1;
/// Rows of poison before and after o, in every head.
constexpr std::int64_t kGuardRows = 3;
constexpr unsigned char kPoison = 0xa5;
/// Relative L2 error that no right kernel comes near: the bounds of
/// tests/reference/Comparison for 16-bit types, doubled.
constexpr double kWorstRelativeL2 = 1e-2;

/// Lists of `density` of all key blocks, drawn at random, ascending; the same
/// number in every row, at least one. On the CPU.
Result<BlockLists> randomLists(const ProblemShape &shape, std::uint64_t seed) {
  const std::int64_t qBlocks = plan::blockCount(shape.qLen, shape.maskBlockQ);
  const std::int64_t kvBlocks =
      plan::blockCount(shape.kvLen, shape.maskBlockKv);
  const auto count = std::clamp<std::int64_t>(
      std::llround(shape.density * static_cast<double>(kvBlocks)), 1, kvBlocks);
  auto indices = Tensor::allocate(DataType::Int32,
                                  {shape.batch, shape.qHeads, qBlocks, count});
  auto counts =
      Tensor::allocate(DataType::Int32, {shape.batch, shape.qHeads, qBlocks});
  if (!indices.ok() || !counts.ok())
    return indices.ok() ? counts.status() : indices.status();
  std::mt19937_64 random(seed);
  std::int32_t *slot = indices->data<std::int32_t>();
  for (std::int64_t row = 0; row < counts->view().elementCount(); ++row) {
    counts->data<std::int32_t>()[row] = static_cast<std::int32_t>(count);
    // Each block with the probability that leaves `wanted` of the rest.
    std::int64_t wanted = count;
    for (std::int64_t block = 0; wanted > 0; ++block)
      if (static_cast<std::int64_t>(
              random() % static_cast<std::uint64_t>(kvBlocks - block)) <
          wanted) {
        *slot++ = static_cast<std::int32_t>(block);
        --wanted;
      }
  }
  BlockLists lists;
  lists.indices = *std::move(indices);
  lists.counts = *std::move(counts);
  lists.maskBlockQ = shape.maskBlockQ;
  lists.maskBlockKv = shape.maskBlockKv;
  lists.qLen = shape.qLen;
  lists.kvLen = shape.kvLen;
  return lists;
}

Result<BlockLists> listsOn(const BlockLists &lists, Device device) {
  if (device.kind == DeviceKind::Cpu)
    return lists;
  BlockLists there = lists;
  for (Tensor *tensor : {&there.indices, &there.counts}) {
    auto copy = tensor->copyTo(device);
    if (!copy.ok())
      return copy.status();
    *tensor = *std::move(copy);
  }
  return there;
}

/// Rows 3 to length + 3 of each head of a tensor with as many to spare.
TensorView insideOf(const Tensor &guarded) {
  TensorView view = guarded.view();
  view.sizes[2] -= 2 * kGuardRows;
  view.data = static_cast<char *>(view.data) +
              kGuardRows * view.strides[2] *
                  static_cast<std::int64_t>(dataTypeSize(view.dtype));
  return view;
}

/// True when all of the spare rows are as they were poisoned.
bool guardsAreIntact(const Tensor &guarded) {
  const TensorView &view = guarded.view();
  const auto rowBytes =
      static_cast<std::int64_t>(dataTypeSize(view.dtype)) * view.strides[2];
  const auto *bytes = static_cast<const unsigned char *>(view.data);
  for (std::int64_t head = 0; head < view.sizes[0] * view.sizes[1]; ++head)
    for (std::int64_t row = 0; row < view.sizes[2]; ++row) {
      if (row >= kGuardRows && row < view.sizes[2] - kGuardRows)
        continue;
      const auto *begin = bytes + (head * view.sizes[2] + row) * rowBytes;
      if (std::any_of(begin, begin + rowBytes,
                      [](unsigned char byte) { return byte != kPoison; }))
        return false;
    }
  return true;
}

/// Small shapes with every edge: one row, a whole number of blocks, ragged
/// ends on both sides, grouped heads.
std::vector<ProblemShape> smallShapes(const ProblemShape &problem) {
  std::vector<ProblemShape> shapes;
  for (auto [qLen, kvLen] :
       {std::pair<std::int64_t, std::int64_t>(1, 67), {256, 512}, {301, 997}}) {
    ProblemShape shape = problem;
    shape.batch = 1;
    shape.qHeads = 2;
    shape.kvHeads = qLen == 301 ? 1 : 2;
    shape.qLen = qLen;
    shape.kvLen = kvLen;
    shape.density = problem.density < 1 ? 0.4 : 1;
    shapes.push_back(shape);
  }
  return shapes;
}

/// Everything that one checked call reads and writes, in one memory.
struct CheckedCall {
  ProblemShape shape;
  Tensor q, k, v;
  Tensor guarded; ///< o with spare rows
  Tensor lse;
  BlockLists lists;

  TensorView part(const Tensor &tensor, std::int64_t heads,
                  std::int64_t length) const {
    TensorView view = tensor.view();
    view.sizes[1] = heads;
    view.sizes[2] = length;
    return view;
  }
  TensorView qView() const { return part(q, shape.qHeads, shape.qLen); }
  TensorView kView() const { return part(k, shape.kvHeads, shape.kvLen); }
  TensorView vView() const { return part(v, shape.kvHeads, shape.kvLen); }

  /// A copy of the tensors on `device`; the lists with them.
  Result<CheckedCall> on(Device device) const {
    CheckedCall there = *this;
    for (Tensor *tensor :
         {&there.q, &there.k, &there.v, &there.guarded, &there.lse,
          &there.lists.indices, &there.lists.counts}) {
      if (tensor->view().device == device)
        continue;
      auto copy = tensor->copyTo(device);
      if (!copy.ok())
        return copy.status();
      *tensor = *std::move(copy);
    }
    return there;
  }
};

void fillBytes(const Tensor &tensor, unsigned char byte) {
  std::memset(tensor.view().data, byte,
              static_cast<std::size_t>(tensor.view().elementCount()) *
                  dataTypeSize(tensor.view().dtype));
}

/// Inputs, poisoned outputs and lists of a shape, on the CPU.
Result<CheckedCall> makeCheckedCall(const ProblemShape &shape,
                                    std::uint64_t seed) {
  auto inputs = problem::makeSyntheticInputs(
      {1, shape.qHeads, std::max(shape.qLen, shape.kvLen), shape.headDim},
      shape.dtype, seed, 1);
  if (!inputs.ok())
    return inputs.status();
  auto lists = randomLists(shape, seed);
  if (!lists.ok())
    return lists.status();
  auto guarded = Tensor::allocate(
      shape.dtype,
      {1, shape.qHeads, shape.qLen + 2 * kGuardRows, shape.headDim});
  auto lse = Tensor::allocate(DataType::Float32, {1, shape.qHeads, shape.qLen});
  if (!guarded.ok() || !lse.ok())
    return guarded.ok() ? lse.status() : guarded.status();
  fillBytes(*guarded, kPoison);
  fillBytes(*lse, 0xff);
  return CheckedCall{shape,    inputs->q, inputs->k, inputs->v,
                     *guarded, *lse,      *lists};
}

/// The call's results, on the CPU, against the reference: the largest
/// difference of o, or what is wrong.
Result<double> judge(const CheckedCall &call, std::uint64_t seed) {
  if (!guardsAreIntact(call.guarded))
    return Status(ErrorCode::Internal, "it wrote beside its output");
  CheckedCall wide = call;
  for (Tensor *tensor : {&wide.q, &wide.k, &wide.v, &wide.guarded}) {
    auto converted = problem::convertTensor(*tensor, DataType::Float32);
    if (!converted.ok())
      return converted.status();
    *tensor = *std::move(converted);
  }
  ReferenceProblem reference;
  reference.q = wide.qView();
  reference.k = wide.kView();
  reference.v = wide.vView();
  reference.o = insideOf(wide.guarded);
  reference.lse = wide.lse.view();
  reference.lists = &wide.lists;
  reference.softmaxScale =
      1 / std::sqrt(static_cast<double>(call.shape.headDim));
  reference.causal = call.shape.causal;
  report::Progress silent;
  const CheckReport report = compareWithReference(
      reference,
      chooseRows(reference.q, call.shape.qHeads * call.shape.qLen, seed), 1,
      silent);
  for (const auto &[name, error] :
       {std::pair("o", &report.o), std::pair("lse", &report.lse)})
    if (error->notFiniteAlike > 0 || !(error->relL2 < kWorstRelativeL2))
      return Status(ErrorCode::Internal,
                    fmt::format("{} is wrong: relative L2 error {:.3g} at {} x "
                                "{}",
                                name, error->relL2, call.shape.qLen,
                                call.shape.kvLen));
  return report.o.maxError;
}

} // namespace

Result<std::unique_ptr<TuneDevice>>
TuneDevice::open(const ProblemShape &problem, Device device,
                 std::uint64_t seed) {
  if (!spargejit::environment().ok())
    return spargejit::environment().status();
  std::unique_ptr<TuneDevice> opened(new TuneDevice(problem, device, seed));
  Status status = opened->identify();
  if (status.ok())
    status = opened->makeBuffers();
  if (!status.ok())
    return status;
  return opened;
}

Status TuneDevice::identify() {
  environment_.generator = jit::builtInCodeGenerator().identity();
  if (device_.kind == DeviceKind::Cpu) {
    environment_.target = "host";
    environment_.device = probeProcessor().name;
    environment_.assembler = "none";
  } else {
    auto driver = cuda::Driver::open(spargejit::environment()->cudaDriver);
    if (!driver.ok())
      return driver.status();
    auto context = cuda::DeviceContext::open(**driver, device_.ordinal);
    if (!context.ok())
      return context.status();
    auto target = api::targetOf(**context);
    if (!target.ok())
      return target.status();
    environment_.target = target->architecture;
    environment_.device = (*context)->name();
    environment_.driver = "CUDA " + (*driver)->versionText();
    const std::string &ptxas = spargejit::environment()->ptxas;
    auto identity = ptxas.empty() ? Result<std::string>("the driver's")
                                  : jit::assemblerIdentity(ptxas);
    if (!identity.ok())
      return identity.status();
    environment_.assembler = *identity;
  }
  const auto *text = kernels_ir::findEmbeddedText(
      kernelPath(kKernel, environment_.target, ".mlir"));
  if (!text)
    return Status(
        ErrorCode::Unsupported,
        fmt::format("there is no {} for {}", kKernel, environment_.target));
  environment_.kernelText = hashText(text->text).hex();
  return Status();
}

Status TuneDevice::makeBuffers() {
  const double bytes =
      static_cast<double>(problem_.headDim) *
      static_cast<double>(dataTypeSize(problem_.dtype)) *
      static_cast<double>(problem_.batch) *
      (2.0 * static_cast<double>(problem_.qHeads * problem_.qLen) +
       2.0 * static_cast<double>(problem_.kvHeads * problem_.kvLen));
  const auto sets = std::clamp<std::size_t>(
      static_cast<std::size_t>(2 * kCacheBytes / bytes) + 1, 2, kMostBuffers);
  auto inputs = problem::makeSyntheticInputs(
      {problem_.batch, std::max(problem_.qHeads, problem_.kvHeads),
       std::max(problem_.qLen, problem_.kvLen), problem_.headDim},
      problem_.dtype, seed_, 0);
  if (!inputs.ok())
    return inputs.status();
  auto place = [&](const Tensor &from, std::int64_t heads,
                   std::int64_t length) -> Result<Tensor> {
    auto tensor = Tensor::allocate(
        problem_.dtype, {problem_.batch, heads, length, problem_.headDim});
    if (!tensor.ok())
      return tensor;
    // Any numbers of the right kind do: the lists are given.
    std::memcpy(tensor->view().data, from.view().data,
                static_cast<std::size_t>(tensor->view().elementCount()) *
                    dataTypeSize(problem_.dtype));
    return device_.kind == DeviceKind::Cpu ? tensor : tensor->copyTo(device_);
  };
  for (std::size_t i = 0; i < sets; ++i) {
    auto q = place(inputs->q, problem_.qHeads, problem_.qLen);
    auto k = place(inputs->k, problem_.kvHeads, problem_.kvLen);
    auto v = place(inputs->v, problem_.kvHeads, problem_.kvLen);
    auto o = place(inputs->q, problem_.qHeads, problem_.qLen);
    for (const auto *tensor : {&q, &k, &v, &o})
      if (!tensor->ok())
        return tensor->status();
    buffers_.push_back({*q, *k, *v, *o});
  }
  if (problem_.density >= 1)
    return Status();
  auto lists = randomLists(problem_, seed_);
  if (lists.ok())
    lists = listsOn(*lists, device_);
  if (!lists.ok())
    return lists.status();
  lists_ = *std::move(lists);
  return Status();
}

AttentionConfig TuneDevice::callConfig(const ProblemShape &problem,
                                       const BlockLists *lists) const {
  AttentionConfig config;
  config.method = problem.density < 1 ? "block_sparse" : "dense";
  config.maskBlockQ = problem.maskBlockQ;
  config.maskBlockKv = problem.maskBlockKv;
  config.causal = problem.causal;
  config.lists = problem.density < 1 ? lists : nullptr;
  return config;
}

Result<api::Engine *> TuneDevice::engineOf(const autotune::Config &config) {
  if (engine_ && config == current_)
    return engine_.get();
  Environment settings = *spargejit::environment();
  settings.jit = true;
  settings.packFolders.clear();
  settings.tuning[kKernel] = config;
  engine_ = std::make_unique<api::Engine>(
      jit::builtInCodeGenerator(), kernels_ir::embeddedTexts(), settings);
  current_ = config;
  return engine_.get();
}

Result<autotune::BuildReport>
TuneDevice::build(const autotune::Config &config) {
  auto engine = engineOf(config);
  if (!engine.ok())
    return engine.status();
  const Buffers &buffers = buffers_.front();
  // Spills and serialised products are refused by the library itself.
  Status status =
      (*engine)->prepare(buffers.q.view(), buffers.k.view(), buffers.v.view(),
                         callConfig(problem_, &lists_), {});
  if (!status.ok())
    return status;
  return autotune::BuildReport();
}

Result<double> TuneDevice::checkShape(api::Engine &engine,
                                      const ProblemShape &shape,
                                      std::uint64_t seed) const {
  auto call = makeCheckedCall(shape, seed);
  if (!call.ok())
    return call.status();
  auto there = call->on(device_);
  if (!there.ok())
    return there.status();
  AttentionOutputs outputs;
  const TensorView lse = there->lse.view();
  outputs.lse = &lse;
  Status status = engine.attentionInto(
      insideOf(there->guarded), there->qView(), there->kView(), there->vView(),
      callConfig(shape, &there->lists), outputs);
  if (status.ok())
    status = synchronise(device_);
  if (!status.ok())
    return status;
  auto back = there->on(Device{});
  return back.ok() ? judge(*back, seed) : back.status();
}

Result<double> TuneDevice::check(const autotune::Config &config) {
  auto engine = engineOf(config);
  if (!engine.ok())
    return engine.status();
  double worst = 0;
  std::uint64_t seed = seed_;
  for (const ProblemShape &shape : smallShapes(problem_)) {
    auto error = checkShape(**engine, shape, ++seed);
    if (!error.ok())
      return error;
    worst = std::max(worst, *error);
  }
  return worst;
}

Result<double> TuneDevice::millisecondsPerCall(api::Engine &engine,
                                               const AttentionConfig &config,
                                               int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    const Buffers &buffers = buffers_[nextBuffers_++ % buffers_.size()];
    Status status =
        engine.attentionInto(buffers.o.view(), buffers.q.view(),
                             buffers.k.view(), buffers.v.view(), config, {});
    if (!status.ok())
      return status;
  }
  if (Status status = synchronise(device_); !status)
    return status;
  const std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - start;
  return took.count() / calls;
}

Result<std::vector<double>> TuneDevice::measure(const autotune::Config &config,
                                                int count) {
  auto engine = engineOf(config);
  if (!engine.ok())
    return engine.status();
  const AttentionConfig call = callConfig(problem_, &lists_);
  // The first warms up; the second tells how many make a sample.
  auto once = millisecondsPerCall(**engine, call, 1);
  if (once.ok())
    once = millisecondsPerCall(**engine, call, 1);
  if (!once.ok())
    return once.status();
  const int calls = static_cast<int>(
      std::clamp(std::ceil(kLeastMilliseconds / *once), 1.0, 100.0));
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    auto time = millisecondsPerCall(**engine, call, calls);
    if (!time.ok())
      return time.status();
    constexpr double kMicroseconds = 1e3;
    samples.push_back(*time * kMicroseconds);
  }
  return samples;
}

} // namespace spargejit::tool
