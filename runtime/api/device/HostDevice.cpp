// SPDX-License-Identifier: Apache-2.0
//
// Calls on the CPU.
#include "runtime/api/device/HostDevice.h"

#include "runtime/api/BlockListOps.h"
#include "runtime/backend/cpu/CpuBackend.h"
#include "runtime/base/AlignedMemory.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

namespace spargejit::api {

namespace {

class HostDeviceKernel final : public DeviceKernel {
public:
  explicit HostDeviceKernel(std::shared_ptr<const jit::LoadedKernel> kernel)
      : kernel_(std::move(kernel)) {}

  const LaunchInfo &launch() const override { return kernel_->launch; }
  Status run(const std::int64_t *slots, const AttentionConfig &config,
             bool /*isNext*/) const override {
    return cpu::runLaunch(kernel_->launch, kernel_->function, slots,
                          config.threads);
  }

private:
  std::shared_ptr<const jit::LoadedKernel> kernel_;
};

} // namespace

Result<std::shared_ptr<const DeviceKernel>>
HostDevice::load(const KernelSpec &spec, const jit::KernelText &text) {
  auto kernel = jit_.load(spec, text);
  if (!kernel.ok())
    return kernel.status();
  return std::shared_ptr<const DeviceKernel>(
      std::make_shared<HostDeviceKernel>(*kernel));
}

Result<std::shared_ptr<const DeviceKernel>>
HostDevice::loadCustom(const KernelSpec &, const jit::KernelText &) {
  return Status(ErrorCode::Unsupported,
                "config.method: expected one without stages in CUDA C++ "
                "(sparge.custom_scores, sparge.custom_select) on cpu; they run "
                "on a GPU alone");
}

Result<Workspace> HostDevice::workspace(std::int64_t bytes,
                                        const AttentionConfig &) {
  static thread_local GrowingMemory memory;
  void *base = memory.require(bytes);
  if (!base)
    return Status(ErrorCode::OutOfResources,
                  fmt::format("{} bytes of workspace cannot be had", bytes));
  return Workspace{base, nullptr, {}};
}

Status HostDevice::read(const void *from, void *to, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
  return Status();
}

Status HostDevice::listsFromMask(const TensorView &mask,
                                 const TensorView &indices,
                                 const TensorView &counts,
                                 const AttentionConfig &config) {
  api::listsFromMask(mask, indices, counts, config.threads);
  return Status();
}

Status HostDevice::listAllBlocks(const TensorView &indices,
                                 const TensorView &counts,
                                 const AttentionConfig &config) {
  api::listAllBlocks(indices, counts, config.threads);
  return Status();
}

Status HostDevice::validateEntries(const BlockLists &lists,
                                   const plan::AttentionProblem &problem,
                                   const AttentionConfig &config) {
  return api::validateEntries(lists, problem, config.threads);
}

Status HostDevice::checkGradient(const char *, const TensorView &) const {
  return Status();
}

Status HostDevice::writeZeros(const char *, const TensorView &view,
                              const AttentionConfig &) {
  const auto element = static_cast<std::int64_t>(dataTypeSize(view.dtype));
  const auto rowBytes = static_cast<std::size_t>(view.sizes[3] * element);
  for (std::int64_t b = 0; b < view.sizes[0]; ++b)
    for (std::int64_t h = 0; h < view.sizes[1]; ++h)
      for (std::int64_t i = 0; i < view.sizes[2]; ++i) {
        std::int64_t row =
            b * view.strides[0] + h * view.strides[1] + i * view.strides[2];
        // All-zero bytes are 0 in every floating-point type.
        std::memset(static_cast<char *>(view.data) + row * element, 0,
                    rowBytes);
      }
  return Status();
}

Status HostDevice::writeEmptyRows(const CallTensors &tensors,
                                  const AttentionConfig &config) {
  Status status = writeZeros("o", *tensors.o, config);
  const TensorView *lse = tensors.lse;
  if (!status.ok() || !lse)
    return status;
  for (std::int64_t b = 0; b < lse->sizes[0]; ++b)
    for (std::int64_t h = 0; h < lse->sizes[1]; ++h)
      for (std::int64_t i = 0; i < lse->sizes[2]; ++i)
        static_cast<float *>(
            lse->data)[b * lse->strides[0] + h * lse->strides[1] +
                       i * lse->strides[2]] =
            -std::numeric_limits<float>::infinity();
  return status;
}

} // namespace spargejit::api
