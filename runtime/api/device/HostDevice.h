// SPDX-License-Identifier: Apache-2.0
//
// The CPU as a device of calls.
#pragma once

#include "runtime/api/device/CallDevice.h"
#include "runtime/jit/HostJit.h"

namespace spargejit::api {

class HostDevice final : public CallDevice {
public:
  /// `generator` and `texts` must outlive the device.
  HostDevice(jit::CodeGenerator &generator,
             const std::vector<kernels_ir::EmbeddedText> &texts,
             const Environment &settings)
      : jit_(generator, texts, settings) {}

  const Target &target() const override { return jit_.target(); }
  Result<std::shared_ptr<const jit::KernelText>>
  text(const std::string &kernel) override {
    return jit_.text(kernel);
  }
  Result<std::shared_ptr<const DeviceKernel>>
  load(const KernelSpec &spec, const jit::KernelText &text) override;
  /// Unsupported.
  Result<std::shared_ptr<const DeviceKernel>>
  loadCustom(const KernelSpec &spec, const jit::KernelText &text) override;
  Status mayPrepare(const AttentionConfig &) const override { return Status(); }
  Status checkSupport(const plan::AttentionProblem &,
                      const AttentionConfig &) const override {
    return Status();
  }

  Result<Tensor> allocate(DataType dtype,
                          const std::vector<std::int64_t> &sizes,
                          const AttentionConfig &) override {
    return Tensor::allocate(dtype, sizes);
  }
  /// Of the calling thread; needs no lock.
  Result<Workspace> workspace(std::int64_t bytes,
                              const AttentionConfig &config) override;
  Status read(const void *from, void *to, std::int64_t bytes) override;
  Status write(const void *from, void *to, std::int64_t bytes) override {
    return read(from, to, bytes);
  }
  Status synchronise() override { return Status(); }

  Status prepareListsFromMask(const AttentionConfig &) override {
    return Status();
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
  jit::HostJit jit_;
};

} // namespace spargejit::api
