// SPDX-License-Identifier: Apache-2.0
//
// Candidates on a real device.
#include "runtime/tools/spargejit/tune/TuneDevice.h"

#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/api/device/CudaDevice.h"
#include "runtime/backend/cuda/Driver.h"
#include "runtime/base/Hash.h"
#include "runtime/base/ProcessorName.h"
#include "runtime/jit/AssembleWithPtxas.h"
#include "runtime/tools/spargejit/SystemProbe.h"
#include "runtime/tools/spargejit/problem/ParallelFor.h"
#include "runtime/tools/spargejit/problem/SyntheticInputs.h"
#include "runtime/tools/spargejit/tune/CheckCandidate.h"
#include "runtime/tools/spargejit/tune/RandomLists.h"
#include "runtime/tools/spargejit/tune/TuningFacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

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
/// Rows of q, k and v that are drawn; longer tensors repeat them.
constexpr std::int64_t kDrawnRows = 8192;

/// A tensor of `device` that repeats the elements of a smaller one of the CPU.
Result<Tensor> repeated(const Tensor &drawn,
                        const std::vector<std::int64_t> &sizes, Device device) {
  auto tensor = Tensor::allocate(drawn.view().dtype, sizes);
  if (!tensor.ok())
    return tensor;
  auto bytesOf = [](const TensorView &view) {
    return static_cast<std::size_t>(view.elementCount()) *
           dataTypeSize(view.dtype);
  };
  const std::size_t period = bytesOf(drawn.view());
  auto *to = static_cast<char *>(tensor->view().data);
  for (std::size_t left = bytesOf(tensor->view()); left > 0;) {
    const std::size_t count = std::min(left, period);
    std::memcpy(to, drawn.view().data, count);
    to += count;
    left -= count;
  }
  return device.kind == DeviceKind::Cpu ? tensor : tensor->copyTo(device);
}

/// What a configuration's being right depends on.
std::string checkName(const ProblemShape &problem,
                      const autotune::Config &config) {
  return fmt::format("{} {} {}x{} {} {}: {}", dataTypeName(problem.dtype),
                     problem.headDim, problem.maskBlockQ, problem.maskBlockKv,
                     problem.causal, problem.density < 1,
                     autotune::describeConfig(config));
}

} // namespace

Status TuneSession::hold(const ProblemShape &problem, Device device,
                         std::uint64_t seed) {
  auto sizesOf = [](const ProblemShape &shape) {
    return std::tuple(shape.dtype, shape.batch, shape.qHeads, shape.kvHeads,
                      shape.qLen, shape.kvLen, shape.headDim);
  };
  if (held_ && sizesOf(*held_) == sizesOf(problem))
    return Status();
  held_.reset();
  buffers.clear();
  const std::vector<std::int64_t> qSizes = {problem.batch, problem.qHeads,
                                            problem.qLen, problem.headDim};
  const std::vector<std::int64_t> kvSizes = {problem.batch, problem.kvHeads,
                                             problem.kvLen, problem.headDim};
  // Any numbers of the right kind do: the lists are given.
  auto drawn = problem::makeSyntheticInputs({1, 1, kDrawnRows, problem.headDim},
                                            problem.dtype, seed, 0);
  if (!drawn.ok())
    return drawn.status();
  double bytes = 0;
  for (const auto *sizes : {&qSizes, &kvSizes})
    bytes += 2.0 * static_cast<double>(dataTypeSize(problem.dtype)) *
             std::accumulate(sizes->begin(), sizes->end(), 1.0,
                             std::multiplies<double>());
  const auto sets = std::clamp<std::size_t>(
      static_cast<std::size_t>(2 * kCacheBytes / bytes) + 1, 2, kMostBuffers);
  for (std::size_t i = 0; i < sets; ++i) {
    auto q = repeated(drawn->q, qSizes, device);
    auto k = repeated(drawn->k, kvSizes, device);
    auto v = repeated(drawn->v, kvSizes, device);
    auto o = Tensor::allocate(problem.dtype, qSizes, device);
    for (const auto *tensor : {&q, &k, &v, &o})
      if (!tensor->ok())
        return tensor->status();
    buffers.push_back({*q, *k, *v, *o});
  }
  held_ = problem;
  return Status();
}

Result<std::unique_ptr<TuneDevice>>
TuneDevice::open(const ProblemShape &problem, Device device, std::uint64_t seed,
                 TuneSession &session) {
  if (!spargejit::environment().ok())
    return spargejit::environment().status();
  std::unique_ptr<TuneDevice> opened(
      new TuneDevice(problem, device, seed, session));
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
    environment_.device = processorName();
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
  if (Status status = session_.hold(problem_, device_, seed_); !status)
    return status;
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

std::unique_ptr<api::Engine>
TuneDevice::newEngine(const autotune::Config &config) const {
  Environment settings = *spargejit::environment();
  settings.jit = true;
  settings.packFolders.clear();
  settings.usesRecords = false;
  settings.tuning[kKernel] = config;
  return std::make_unique<api::Engine>(jit::builtInCodeGenerator(),
                                       kernels_ir::embeddedTexts(), settings);
}

Status TuneDevice::prepareOn(api::Engine &engine) const {
  const TuneSession::Buffers &buffers = session_.buffers.front();
  return engine.prepare(buffers.q.view(), buffers.k.view(), buffers.v.view(),
                        configOf(problem_, &lists_), {});
}

void TuneDevice::announce(const std::vector<autotune::Config> &configs) {
  // What is compiled here is found on disk afterwards, or not at all.
  if (spargejit::environment()->cacheFolder.empty())
    return;
  problem::parallelFor(static_cast<std::int64_t>(configs.size()),
                       processorCount(), [&](int, std::int64_t i) {
                         auto engine =
                             newEngine(configs[static_cast<std::size_t>(i)]);
                         // A failure comes again when the configuration is
                         // built.
                         (void)prepareOn(*engine);
                       });
}

api::Engine &TuneDevice::engineOf(const autotune::Config &config) {
  auto &[first, second] = engines_;
  if (first.engine && config == first.config)
    return *first.engine;
  // The one before is kept for two that meet in turns.
  std::swap(first, second);
  if (!first.engine || config != first.config)
    first = {config, newEngine(config)};
  return *first.engine;
}

Result<autotune::BuildReport>
TuneDevice::build(const autotune::Config &config) {
  // Spills and serialised products are refused by the library itself.
  Status status = prepareOn(engineOf(config));
  if (!status.ok())
    return status;
  return autotune::BuildReport();
}

Result<double> TuneDevice::check(const autotune::Config &config) {
  const std::string name = checkName(problem_, config);
  auto known = session_.checks.find(name);
  if (known == session_.checks.end())
    known = session_.checks
                .emplace(name, checkCandidate(engineOf(config), problem_,
                                              device_, seed_))
                .first;
  return known->second;
}

Result<double> TuneDevice::millisecondsPerCall(api::Engine &engine,
                                               const AttentionConfig &config,
                                               int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    const TuneSession::Buffers &buffers =
        session_.buffers[nextBuffers_++ % session_.buffers.size()];
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
  api::Engine &engine = engineOf(config);
  const AttentionConfig call = configOf(problem_, &lists_);
  // The first warms up; the second tells how many make a sample.
  auto once = millisecondsPerCall(engine, call, 1);
  if (once.ok())
    once = millisecondsPerCall(engine, call, 1);
  if (!once.ok())
    return once.status();
  const int calls = static_cast<int>(
      std::clamp(std::ceil(kLeastMilliseconds / *once), 1.0, 100.0));
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    auto time = millisecondsPerCall(engine, call, calls);
    if (!time.ok())
      return time.status();
    constexpr double kMicroseconds = 1e3;
    samples.push_back(*time * kMicroseconds);
  }
  return samples;
}

} // namespace spargejit::tool
