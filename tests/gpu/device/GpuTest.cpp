// SPDX-License-Identifier: Apache-2.0
//
// The GPU of the tests.
#include "tests/gpu/device/GpuTest.h"

#include "runtime/backend/cuda/DeviceMemory.h"
#include "runtime/base/Environment.h"
#include "tests/numerics/harness/TestSeed.h"

#include <cstdio>
#include <cstdlib>

namespace spargejit::gpu {

namespace {

std::string openGpu(Gpu &gpu) {
  const Result<Environment> &settings = environment();
  if (!settings.ok())
    return settings.status().message();
  auto driver = cuda::Driver::open(settings->cudaDriver);
  if (!driver.ok())
    return driver.status().message();
  gpu.driver = *std::move(driver);
  auto device = cuda::DeviceContext::open(*gpu.driver, 0);
  if (!device.ok())
    return device.status().message();
  gpu.device = *std::move(device);
  if (gpu.device->capability() != 90)
    return gpu.device->name() + " is not of compute capability 9.0";
  std::printf("%s, driver CUDA %s (%s)\n", gpu.device->name().c_str(),
              gpu.driver->versionText().c_str(), gpu.driver->path().c_str());
  return "";
}

} // namespace

Gpu *Gpu::find(std::string *reason) {
  static Gpu gpu;
  static const std::string kReason = openGpu(gpu);
  if (reason)
    *reason = kReason;
  return kReason.empty() ? &gpu : nullptr;
}

void Gpu::require(cuda::ResultCode code, const char *symbol) const {
  if (code == cuda::result::kSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", symbol,
               code < 0 ? "no such function" : driver->errorText(code).c_str());
  std::abort();
}

template <typename T>
DeviceArray<T>::DeviceArray(const Gpu &gpu, std::size_t count)
    : gpu_(gpu), count_(count) {
  auto memory = cuda::allocateMemory(
      *gpu.device, static_cast<std::int64_t>(count * sizeof(T)));
  if (!memory.ok()) {
    std::fprintf(stderr, "%s\n", memory.status().message().c_str());
    std::abort();
  }
  memory_ = *memory;
}

template <typename T>
std::vector<T> DeviceArray<T>::read() const {
  cuda::CurrentContext current(*gpu_.device);
  gpu_.call("cuCtxSynchronize");
  std::vector<T> values(count_);
  gpu_.call("cuMemcpyDtoH_v2", static_cast<void *>(values.data()), address(),
            count_ * sizeof(T));
  return values;
}

template <typename T>
void DeviceArray<T>::write(const std::vector<T> &values) const {
  cuda::CurrentContext current(*gpu_.device);
  gpu_.call("cuCtxSynchronize");
  gpu_.call("cuMemcpyHtoD_v2", address(),
            static_cast<const void *>(values.data()),
            values.size() * sizeof(T));
}

template class DeviceArray<std::int32_t>;
template class DeviceArray<std::uint16_t>;
template class DeviceArray<std::uint32_t>;
template class DeviceArray<float>;

Stream::Stream(const Gpu &gpu) : gpu_(gpu) {
  cuda::CurrentContext current(*gpu.device);
  constexpr unsigned kNonBlocking = 1;
  gpu.call("cuStreamCreate", &handle_, kNonBlocking);
}

Stream::~Stream() {
  cuda::CurrentContext current(*gpu_.device);
  gpu_.call("cuStreamDestroy_v2", handle_);
}

void Stream::synchronise() const {
  cuda::CurrentContext current(*gpu_.device);
  gpu_.call("cuStreamSynchronize", handle_);
}

void Stream::beginCapture() const {
  cuda::CurrentContext current(*gpu_.device);
  constexpr int kGlobal = 0;
  gpu_.call("cuStreamBeginCapture_v2", handle_, kGlobal);
}

Graph Stream::endCapture() const {
  cuda::CurrentContext current(*gpu_.device);
  void *graph = nullptr;
  gpu_.call("cuStreamEndCapture", handle_, &graph);
  return Graph(gpu_, graph);
}

Graph::Graph(const Gpu &gpu, void *graph) : gpu_(gpu), graph_(graph) {
  cuda::CurrentContext current(*gpu_.device);
  gpu_.call("cuGraphInstantiateWithFlags", &executable_, graph_, 0ULL);
}

Graph::Graph(Graph &&other) noexcept
    : gpu_(other.gpu_), graph_(std::exchange(other.graph_, nullptr)),
      executable_(std::exchange(other.executable_, nullptr)) {}

Graph::~Graph() {
  if (!graph_)
    return;
  cuda::CurrentContext current(*gpu_.device);
  gpu_.call("cuGraphExecDestroy", executable_);
  gpu_.call("cuGraphDestroy", graph_);
}

void Graph::launch(const Stream &stream) const {
  cuda::CurrentContext current(*gpu_.device);
  gpu_.call("cuGraphLaunch", executable_, stream.handle());
}

void GpuTest::SetUp() {
  std::string reason;
  gpu_ = Gpu::find(&reason);
  if (gpu_)
    return;
  if (numerics::environment("SPARGEJIT_REQUIRE_GPU") == "1")
    FAIL() << reason;
  GTEST_SKIP() << reason;
}

cuda::ContextHandle GpuTest::current() const {
  cuda::ContextHandle context = nullptr;
  gpu().driver->functions().contextCurrent(&context);
  return context;
}

} // namespace spargejit::gpu
