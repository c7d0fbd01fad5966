// SPDX-License-Identifier: Apache-2.0
//
// Candidates on a real device.
#include "runtime/api/tune/TrialDevice.h"

#include "runtime/api/tune/RandomLists.h"
#include "runtime/base/DataTypeConversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <thread>
#include <tuple>
#include <utility>

namespace spargejit::api {

namespace {

using autotune::ProblemShape;

/// More than the last-level cache of any device meant here (H200: 50 MB of L2),
/// so that buffers that take turns are read from memory.
constexpr double kCacheBytes = 128e6;
constexpr std::size_t kMostBuffers = 8;
/// Calls are timed together for at least this long, so that reading the clock
/// and waiting for the device do not count.
constexpr double kLeastMilliseconds = 1;
/// Samples end after so long, when there are a few: of calls that take long.
constexpr double kMostMilliseconds = 1000;
constexpr std::size_t kFewSamples = 5;
/// Rows of q, k and v that are drawn; longer tensors repeat them.
constexpr std::int64_t kDrawnRows = 8192;

/// Numbers from -1.7 to 1.7, of variance 1, [rows, headDim].
Result<Tensor> drawnTensor(std::int64_t rows, std::int64_t headDim,
                           DataType dtype, std::mt19937_64 &random) {
  auto tensor = Tensor::allocate(dtype, {rows, headDim});
  if (!tensor.ok())
    return tensor;
  std::uniform_real_distribution<float> uniform(-1.7F, 1.7F);
  std::vector<float> values(static_cast<std::size_t>(rows * headDim));
  for (float &value : values)
    value = uniform(random);
  convertFromFloat(values, dtype, tensor->view().data);
  return tensor;
}

/// A tensor of `device` that repeats the elements of a smaller one of the CPU.
Result<Tensor> repeated(Engine &engine, const Tensor &drawn,
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
  return device.kind == DeviceKind::Cpu ? tensor
                                        : engine.copy(tensor->view(), device);
}

/// What a configuration's being right depends on.
std::string checkName(const std::string &kernel, const ProblemShape &problem,
                      const autotune::Config &config) {
  return fmt::format("{} {} {} {}x{} {} {}: {}", kernel,
                     dataTypeName(problem.dtype), problem.headDim,
                     problem.maskBlockQ, problem.maskBlockKv, problem.causal,
                     problem.density < 1, autotune::describeConfig(config));
}

} // namespace

Status TrialSession::hold(Engine &engine, const ProblemShape &problem,
                          Device device, std::uint64_t seed) {
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
  std::mt19937_64 random(seed);
  auto drawn = drawnTensor(kDrawnRows, problem.headDim, problem.dtype, random);
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
    auto q = repeated(engine, *drawn, qSizes, device);
    auto k = repeated(engine, *drawn, kvSizes, device);
    auto v = repeated(engine, *drawn, kvSizes, device);
    auto o = engine.allocate(problem.dtype, qSizes, device);
    for (const auto *tensor : {&q, &k, &v, &o})
      if (!tensor->ok())
        return tensor->status();
    buffers.push_back({*q, *k, *v, *o, {}, {}, {}, {}});
  }
  held_ = problem;
  return Status();
}

Status TrialSession::holdGradients(Engine &engine, Device device) {
  for (Buffers &set : buffers) {
    if (set.dv.view().data)
      continue;
    const TensorView &q = set.q.view(), &k = set.k.view();
    auto like = [&](const TensorView &view) {
      return engine.allocate(
          view.dtype,
          {view.sizes[0], view.sizes[1], view.sizes[2], view.sizes[3]}, device);
    };
    auto lse = engine.allocate(DataType::Float32,
                               {q.sizes[0], q.sizes[1], q.sizes[2]}, device);
    auto dq = like(q), dk = like(k), dv = like(k);
    for (const auto *tensor : {&lse, &dq, &dk, &dv})
      if (!tensor->ok())
        return tensor->status();
    set.lse = *lse;
    set.dq = *dq;
    set.dk = *dk;
    set.dv = *dv;
  }
  return Status();
}

bool isOfBackward(const std::string &kernel) {
  return kernel.starts_with("attention_bwd_");
}

AttentionConfig trialCall(const ProblemShape &problem, const BlockLists *lists,
                          int threads) {
  AttentionConfig config;
  config.method = problem.density < 1 ? "block_sparse" : "dense";
  config.maskBlockQ = problem.maskBlockQ;
  config.maskBlockKv = problem.maskBlockKv;
  config.causal = problem.causal;
  config.lists = problem.density < 1 ? lists : nullptr;
  config.threads = threads;
  // Records are of kernels that keep nothing.
  config.keptBytes = 0;
  return config;
}

Result<std::unique_ptr<TrialDevice>>
TrialDevice::open(const TrialSetup &setup, const ProblemShape &problem,
                  TrialSession &session) {
  std::unique_ptr<TrialDevice> opened(new TrialDevice(setup, problem, session));
  if (Status status = opened->makeBuffers(); !status)
    return status;
  return opened;
}

Status TrialDevice::makeBuffers() {
  if (Status status =
          session_.hold(setup_.engine, problem_, setup_.device, setup_.seed);
      !status)
    return status;
  if (problem_.density < 1) {
    auto lists = randomLists(problem_, setup_.seed);
    if (lists.ok())
      lists = listsOn(setup_.engine, *lists, setup_.device);
    if (!lists.ok())
      return lists.status();
    lists_ = *std::move(lists);
  }
  return isOfBackward(setup_.kernel) ? runForward() : Status();
}

Status TrialDevice::runForward() {
  if (Status status = session_.holdGradients(setup_.engine, setup_.device);
      !status)
    return status;
  const AttentionConfig config = trialCall(problem_, &lists_, setup_.threads);
  for (const TrialSession::Buffers &set : session_.buffers)
    if (Status status = setup_.engine.attentionInto(
            set.o.view(), set.q.view(), set.k.view(), set.v.view(), config,
            {.lse = &set.lse.view(), .lists = nullptr});
        !status)
      return status;
  return setup_.engine.synchronise(setup_.device);
}

Status TrialDevice::call(Engine &engine, const AttentionConfig &config,
                         const TrialSession::Buffers &set) const {
  const TensorView &q = set.q.view(), &k = set.k.view(), &v = set.v.view();
  if (!isOfBackward(setup_.kernel))
    return engine.attentionInto(set.o.view(), q, k, v, config, {});
  // q in the place of do: any numbers of its kind do.
  return engine.attentionBackwardInto(
      {set.dq.view(), set.dk.view(), set.dv.view()}, q, k, v,
      {set.o.view(), set.lse.view(), config.lists}, q, config, nullptr);
}

std::unique_ptr<Engine>
TrialDevice::newEngine(const autotune::Config &config) const {
  Environment settings = setup_.settings;
  settings.packFolders.clear();
  settings.usesRecords = false;
  settings.tuning[setup_.kernel] = config;
  return std::make_unique<Engine>(setup_.generator, setup_.texts, settings);
}

Status TrialDevice::prepareOn(Engine &engine) const {
  const TrialSession::Buffers &set = session_.buffers.front();
  const AttentionConfig config = trialCall(problem_, &lists_, setup_.threads);
  return isOfBackward(setup_.kernel)
             ? engine.prepareBackward(set.q.view(), set.k.view(), set.v.view(),
                                      config)
             : engine.prepare(set.q.view(), set.k.view(), set.v.view(), config,
                              {});
}

void TrialDevice::announce(const std::vector<autotune::Config> &configs) {
  // What is compiled here is found on disk afterwards, or not at all.
  if (setup_.settings.cacheFolder.empty())
    return;
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t i = next++; i < configs.size(); i = next++)
      // A failure comes again when the configuration is built.
      (void)prepareOn(*newEngine(configs[i]));
  };
  const std::size_t count = std::min<std::size_t>(
      configs.size(), std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back(work);
  for (std::thread &thread : threads)
    thread.join();
}

Engine &TrialDevice::engineOf(const autotune::Config &config) {
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
TrialDevice::build(const autotune::Config &config) {
  // Spills and serialised products are refused by the library itself.
  Status status = prepareOn(engineOf(config));
  if (!status.ok())
    return status;
  return autotune::BuildReport();
}

Result<double> TrialDevice::check(const autotune::Config &config) {
  const std::string name = checkName(setup_.kernel, problem_, config);
  auto known = session_.checks.find(name);
  if (known == session_.checks.end())
    known =
        session_.checks.emplace(name, setup_.check(engineOf(config), problem_))
            .first;
  return known->second;
}

Result<double> TrialDevice::millisecondsPerCall(Engine &engine,
                                                const AttentionConfig &config,
                                                int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    const auto set = nextBuffers_++ % session_.buffers.size();
    if (Status status = call(engine, config, session_.buffers[set]); !status)
      return status;
  }
  if (Status status = engine.synchronise(setup_.device); !status)
    return status;
  const std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - start;
  return took.count() / calls;
}

Result<std::vector<double>> TrialDevice::measure(const autotune::Config &config,
                                                 int count) {
  Engine &engine = engineOf(config);
  const AttentionConfig call = trialCall(problem_, &lists_, setup_.threads);
  // The first warms up; the second tells how many make a sample, where that can
  // be more than one.
  auto once = millisecondsPerCall(engine, call, 1);
  if (once.ok() && *once < 100 * kLeastMilliseconds)
    once = millisecondsPerCall(engine, call, 1);
  if (!once.ok())
    return once.status();
  const int calls = static_cast<int>(
      std::clamp(std::ceil(kLeastMilliseconds / *once), 1.0, 100.0));
  std::vector<double> samples;
  double total = 0;
  for (int i = 0; i < count; ++i) {
    if (total > kMostMilliseconds && samples.size() >= kFewSamples)
      break;
    auto time = millisecondsPerCall(engine, call, calls);
    if (!time.ok())
      return time.status();
    constexpr double kMicroseconds = 1e3;
    samples.push_back(*time * kMicroseconds);
    total += *time * calls;
  }
  return samples;
}

} // namespace spargejit::api
