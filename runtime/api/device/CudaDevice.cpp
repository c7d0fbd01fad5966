// SPDX-License-Identifier: Apache-2.0
//
// Calls on a GPU.
#include "runtime/api/device/CudaDevice.h"

#include "runtime/api/BlockListOps.h"
#include "runtime/api/Checks.h"
#include "runtime/backend/cuda/TensorMaps.h"
#include "runtime/base/TensorBytes.h"
#include "runtime/plan/MaskLists.h"

#include <fmt/format.h>

#include <bit>
#include <limits>

namespace spargejit::api {

namespace {

cuda::StreamHandle streamOf(const AttentionConfig &config) {
  return static_cast<cuda::StreamHandle>(config.stream);
}

/// The lists in host memory, after the work on the stream.
Result<BlockLists> copyToHost(const cuda::DeviceContext &context,
                              const BlockLists &lists,
                              cuda::StreamHandle stream) {
  BlockLists copies = lists;
  for (Tensor *tensor : {&copies.indices, &copies.counts}) {
    const TensorView view = tensor->view();
    auto copy = Tensor::allocate(
        view.dtype, {view.sizes.begin(), view.sizes.begin() + view.rank});
    if (!copy.ok())
      return copy.status();
    auto bytes = view.elementCount() *
                 static_cast<std::int64_t>(dataTypeSize(view.dtype));
    if (Status status = cuda::copyToHost(context, view.data, copy->view().data,
                                         bytes, stream);
        !status)
      return status;
    *tensor = *copy;
  }
  return copies;
}

} // namespace

Result<Target> targetOf(const cuda::DeviceContext &device) {
  if (device.capability() == 90) {
    Target target;
    target.architecture = "sm_90a";
    return target;
  }
  return Status(ErrorCode::Unsupported,
                fmt::format("cuda:{} is {} of compute capability {}.{}: "
                            "expected 9.0 (sm_90a), for which alone this build "
                            "has kernels",
                            device.ordinal(), device.name(),
                            device.capability() / 10,
                            device.capability() % 10));
}

class CudaDevice::Kernel final : public DeviceKernel {
public:
  explicit Kernel(std::shared_ptr<const cuda::LoadedKernel> kernel)
      : kernel_(std::move(kernel)) {}

  const LaunchInfo &launch() const override { return kernel_->launch(); }
  Status run(const std::int64_t *slots, const AttentionConfig &config,
             bool isNext) const override {
    return kernel_->run(slots, streamOf(config), order(isNext));
  }

  bool leavesRoom() const override { return kernel_->leavesRoom(); }

  /// Kernels of one device are of one class.
  Status runBeside(const DeviceKernel &next, const std::int64_t *nextSlots,
                   const std::int64_t *slots, const AttentionConfig &config,
                   bool isNext) const override {
    const auto &other = static_cast<const Kernel &>(next);
    return kernel_->run(slots, streamOf(config), order(isNext),
                        other.kernel_->wantsAllShared(nextSlots));
  }

private:
  cuda::LaunchOrder order(bool isNext) const {
    return isNext && kernel_->launch().startsEarly
               ? cuda::LaunchOrder::Early
               : cuda::LaunchOrder::AfterEnd;
  }

  std::shared_ptr<const cuda::LoadedKernel> kernel_;
};

Result<std::shared_ptr<const DeviceKernel>>
CudaDevice::load(const KernelSpec &spec, const jit::KernelText &text) {
  using Outcome = Result<std::shared_ptr<const DeviceKernel>>;
  return loaded_.get(jit_.keyOf(spec, text), [&]() -> Outcome {
    auto code = jit_.code(spec, text);
    if (!code.ok())
      return code.status();
    const cuda::Driver &driver = context_->driver();
    const std::string assembler =
        fmt::format("cuModuleLoadDataEx of {} (CUDA {})", driver.path(),
                    driver.versionText());
    std::string log;
    auto kernel = cuda::LoadedKernel::load(*context_, (*code)->launch,
                                           (*code)->image, &log);
    if (!kernel.ok())
      return kernel.status().code() == ErrorCode::CompileFailed
                 ? jit::assemblyFailure(**code, kernel.status().message(),
                                        assembler, log)
                 : Status(kernel.status())
                       .withContext("while loading " + (*code)->what);
    Status status =
        jit_.judge(**code, assembler, log, (*kernel)->resources().localBytes);
    if (!status.ok())
      return status;
    return std::shared_ptr<const DeviceKernel>(
        std::make_shared<Kernel>(*kernel));
  });
}

Result<std::shared_ptr<const DeviceKernel>>
CudaDevice::loadCustom(const KernelSpec &spec, const jit::KernelText &text) {
  using Outcome = Result<std::shared_ptr<const DeviceKernel>>;
  auto key = jit_.custom().keyOf(spec, text);
  if (!key.ok())
    return key.status();
  // What the user's code spills is the user's affair: nothing is judged.
  return loaded_.get(*key, [&]() -> Outcome {
    auto code = jit_.custom().code(spec, text);
    if (!code.ok())
      return code.status();
    auto kernel =
        cuda::LoadedKernel::load(*context_, (*code)->launch, (*code)->image);
    if (!kernel.ok())
      return Status(kernel.status())
          .withContext("while loading " + (*code)->what);
    return std::shared_ptr<const DeviceKernel>(
        std::make_shared<Kernel>(*kernel));
  });
}

Status CudaDevice::mayPrepare(const AttentionConfig &config) const {
  return cuda::expectNoCapture(*context_, streamOf(config),
                               "compile and load kernels");
}

Status CudaDevice::checkSupport(const plan::AttentionProblem &problem,
                                const AttentionConfig &config) const {
  // The kernels count rows in 32 bits, beyond the end by less than a tile.
  constexpr std::int64_t kMaxLength =
      std::numeric_limits<std::int32_t>::max() - 4096;
  const std::string &architecture = target().architecture;
  Checks checks;
  checks.supported(problem.kind.dtype == DataType::BFloat16 ||
                       problem.kind.dtype == DataType::Float16,
                   "q.dtype: expected bfloat16 or float16 on {}, got {}",
                   architecture, problem.kind.dtype);
  checks.supported(problem.softmaxScale > 0,
                   "config.softmaxScale: expected a number above 0 on {}, got "
                   "{}",
                   architecture, problem.softmaxScale);
  if (problem.kind.isEightBit())
    checks.supported(problem.kind.headDim == 64 || problem.kind.headDim == 96 ||
                         problem.kind.headDim == 128,
                     "q.sizes[3]: expected a headDim of 64, 96 or 128 with "
                     "config.precision {} on {}, got {}",
                     precisionName(config.precision), architecture,
                     problem.kind.headDim);
  if (config.blockMask && config.blockMask->rank == 4)
    checks.supported(config.blockMask->strides[3] == 1 ||
                         config.blockMask->sizes[3] <= 1,
                     "config.blockMask.strides[3]: expected 1 on {}, got {}",
                     architecture, config.blockMask->strides[3]);
  for (auto [name, length] :
       {std::pair("q", problem.qLen), std::pair("k", problem.kvLen)})
    checks.supported(length <= kMaxLength,
                     "{}.sizes[2]: expected at most {} on {}, got {}", name,
                     kMaxLength, architecture, length);
  return std::move(checks).status();
}

Result<Tensor> CudaDevice::allocate(DataType dtype,
                                    const std::vector<std::int64_t> &sizes,
                                    const AttentionConfig &config) {
  auto bytes = tensorBytes(dtype, sizes);
  if (!bytes.ok())
    return bytes.status();
  if (Status status = cuda::expectNoCapture(*context_, streamOf(config),
                                            "allocate memory for a result");
      !status)
    return status;
  auto memory = cuda::allocateMemory(*context_, *bytes);
  if (!memory.ok())
    return memory.status();
  return Tensor::adopt(*std::move(memory), dtype, sizes,
                       {DeviceKind::Cuda, context_->ordinal()});
}

Result<Workspace> CudaDevice::workspace(std::int64_t bytes,
                                        const AttentionConfig &config) {
  auto lease = workspaces_.take(bytes, streamOf(config));
  if (!lease.ok())
    return lease.status();
  return Workspace{lease->base, lease->counters, std::move(lease->lock)};
}

Status CudaDevice::read(const void *from, void *to, std::int64_t bytes) {
  if (Status status = synchronise(); !status)
    return status;
  return cuda::copyToHost(*context_, from, to, bytes, nullptr);
}

Status CudaDevice::write(const void *from, void *to, std::int64_t bytes) {
  if (Status status = synchronise(); !status)
    return status;
  return cuda::copyFromHost(*context_, from, to, bytes, nullptr);
}

Result<std::shared_ptr<const DeviceKernel>>
CudaDevice::maskKernel(const AttentionConfig &config) {
  if (const auto *kept = maskKernel_.find(0))
    return *kept;
  if (Status status = mayPrepare(config); !status)
    return status;
  using Outcome = Result<std::shared_ptr<const DeviceKernel>>;
  return maskKernel_.get(0, [&]() -> Outcome {
    const KernelSpec spec = plan::maskListsSpec(target());
    auto text = jit_.text(spec.kernel);
    return text.ok() ? load(spec, **text) : text.status();
  });
}

Status CudaDevice::listsFromMask(const TensorView &mask,
                                 const TensorView &indices,
                                 const TensorView &counts,
                                 const AttentionConfig &config) {
  auto kernel = maskKernel(config);
  if (!kernel.ok())
    return kernel.status();
  const auto slots = plan::packMaskLists(mask, indices, counts);
  return (*kernel)->run(slots.data(), config, false);
}

Status CudaDevice::listAllBlocks(const TensorView &indices,
                                 const TensorView &counts,
                                 const AttentionConfig &config) {
  Status status = cuda::fillCounting(*context_, indices, streamOf(config));
  if (!status.ok())
    return status;
  return cuda::fillWords(*context_, counts,
                         static_cast<std::uint32_t>(indices.sizes[3]),
                         streamOf(config));
}

Status CudaDevice::validateEntries(const BlockLists &lists,
                                   const plan::AttentionProblem &problem,
                                   const AttentionConfig &config) {
  Status status = cuda::expectNoCapture(
      *context_, streamOf(config), "read the lists (config.validateLists)");
  if (!status.ok())
    return status;
  auto copies = copyToHost(*context_, lists, streamOf(config));
  if (!copies.ok())
    return Status(copies.status()).withContext("config.validateLists");
  return api::validateEntries(*copies, problem, config.threads);
}

Status CudaDevice::checkForward(const char *name,
                                const TensorView &view) const {
  Checks checks;
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i)
    checks.supported(view.strides[i] >= 0,
                     "{}.strides[{}]: expected 0 or more on {}, got {}", name,
                     i, target().architecture, view.strides[i]);
  return std::move(checks).status();
}

Status CudaDevice::checkGradient(const char *name,
                                 const TensorView &view) const {
  return cuda::checkCopied(name, view);
}

Status CudaDevice::writeZeros(const char *name, const TensorView &view,
                              const AttentionConfig &config) {
  if (Status status = checkForward(name, view); !status)
    return status;
  return cuda::fillZeros(*context_, view, streamOf(config));
}

Status CudaDevice::writeEmptyRows(const CallTensors &tensors,
                                  const AttentionConfig &config) {
  Checks checks;
  if (tensors.lse)
    checks.also(checkForward("outputs.lse", *tensors.lse));
  if (checks.ok())
    checks.also(writeZeros("o", *tensors.o, config));
  if (!checks.ok() || !tensors.lse)
    return std::move(checks).status();
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  return cuda::fillWords(*context_, *tensors.lse,
                         std::bit_cast<std::uint32_t>(kMinusInfinity),
                         streamOf(config));
}

} // namespace spargejit::api
