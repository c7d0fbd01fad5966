// SPDX-License-Identifier: Apache-2.0
//
// A GPU as a device of calls.
#pragma once

#include "runtime/api/device/CallDevice.h"
#include "runtime/backend/cuda/DeviceContext.h"
#include "runtime/backend/cuda/DeviceMemory.h"
#include "runtime/backend/cuda/LoadedKernel.h"
#include "runtime/jit/DeviceJit.h"

namespace spargejit::api {

/// The architecture to compile for on a device: "sm_90a" for compute capability
/// 9.0. Unsupported for a GPU that this build has no kernels for.
Result<Target> targetOf(const cuda::DeviceContext &device);

class CudaDevice final : public CallDevice {
public:
  /// `jit` is for the device's target and outlives this object.
  CudaDevice(std::unique_ptr<cuda::DeviceContext> context, jit::DeviceJit &jit)
      : context_(std::move(context)), jit_(jit), workspaces_(*context_) {}

  const Target &target() const override { return jit_.target(); }
  Result<std::shared_ptr<const jit::KernelText>>
  text(const std::string &kernel) override {
    return jit_.text(kernel);
  }
  Result<std::shared_ptr<const DeviceKernel>>
  load(const KernelSpec &spec, const jit::KernelText &text) override;
  Result<std::shared_ptr<const DeviceKernel>>
  loadCustom(const KernelSpec &spec, const jit::KernelText &text) override;
  Status mayPrepare(const AttentionConfig &config) const override;
  Status checkSupport(const plan::AttentionProblem &problem,
                      const AttentionConfig &config) const override;

  Result<Tensor> allocate(DataType dtype,
                          const std::vector<std::int64_t> &sizes,
                          const AttentionConfig &config) override;
  Result<Workspace> workspace(std::int64_t bytes,
                              const AttentionConfig &config) override;
  Status read(const void *from, void *to, std::int64_t bytes) override;
  Status write(const void *from, void *to, std::int64_t bytes) override;
  Status synchronise() override { return cuda::synchronise(*context_); }

  Status prepareListsFromMask(const AttentionConfig &config) override {
    return maskKernel(config).status();
  }
  Status listsFromMask(const TensorView &mask, const TensorView &indices,
                       const TensorView &counts,
                       const AttentionConfig &config) override;
  Status listAllBlocks(const TensorView &indices, const TensorView &counts,
                       const AttentionConfig &config) override;
  Status validateEntries(const BlockLists &lists,
                         const plan::AttentionProblem &problem,
                         const AttentionConfig &config) override;
  Status checkGradient(const char *name, const TensorView &view) const override;
  Status writeZeros(const char *name, const TensorView &view,
                    const AttentionConfig &config) override;
  Status writeEmptyRows(const CallTensors &tensors,
                        const AttentionConfig &config) override;

private:
  class Kernel;

  /// Unsupported for a negative stride.
  Status checkForward(const char *name, const TensorView &view) const;
  Result<std::shared_ptr<const DeviceKernel>>
  maskKernel(const AttentionConfig &config);

  const std::unique_ptr<cuda::DeviceContext> context_;
  jit::DeviceJit &jit_;
  cuda::Workspaces workspaces_;
  SingleFlight<cache::KernelKey, DeviceKernel, cache::KernelKeyHash> loaded_;
  /// The one that turns masks into lists, at key 0.
  SingleFlight<int, DeviceKernel> maskKernel_;
};

} // namespace spargejit::api
