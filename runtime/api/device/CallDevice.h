// SPDX-License-Identifier: Apache-2.0
//
// What a call needs of the device that its tensors are on: kernels, memory, and
// the little work that no kernel does. One class for the CPU, one for GPUs.
#pragma once

#include "runtime/api/Validate.h"
#include "runtime/jit/KernelCompiler.h"
#include "runtime/plan/AttentionProblem.h"
#include "spargejit/attention.h"

#include <memory>
#include <mutex>
#include <vector>

namespace spargejit::api {

/// A kernel that is ready to run on one device. Thread-safe.
class DeviceKernel {
public:
  virtual ~DeviceKernel() = default;
  virtual const LaunchInfo &launch() const = 0;
  /// Runs every program on launch().slotCount() argument slots: on the CPU by
  /// the time it returns, on a GPU in the order of config.stream. `isNext`:
  /// the last thing given to the device was the launch before this one in the
  /// same call, which this kernel may overlap as far as it says itself.
  virtual Status run(const std::int64_t *slots, const AttentionConfig &config,
                     bool isNext) const = 0;
  /// Whether its programs stay and leave room for those of the launch after it,
  /// which runs beside it.
  virtual bool leavesRoom() const { return false; }
  /// As run(), beside the launch of `next`, of the same device, on `nextSlots`.
  virtual Status runBeside(const DeviceKernel & /*next*/,
                           const std::int64_t * /*nextSlots*/,
                           const std::int64_t *slots,
                           const AttentionConfig &config, bool isNext) const {
    return run(slots, config, isNext);
  }
};

/// Memory for what lies between the launches of one call. While it is held, no
/// other call uses it.
struct Workspace {
  void *base = nullptr;
  /// As plan::ValueTensors::setCounters; null where kernels need none.
  void *counters = nullptr;
  std::unique_lock<std::mutex> lock;
};

/// Thread-safe. Work on a GPU is given to config.stream and not waited for,
/// unless said otherwise.
class CallDevice {
public:
  virtual ~CallDevice() = default;

  virtual const Target &target() const = 0;
  /// As jit::KernelCompiler::text.
  virtual Result<std::shared_ptr<const jit::KernelText>>
  text(const std::string &kernel) = 0;
  /// The kernel of `spec`, compiled from `text` and loaded where that has not
  /// been done.
  virtual Result<std::shared_ptr<const DeviceKernel>>
  load(const KernelSpec &spec, const jit::KernelText &text) = 0;
  /// The same for a kernel with stages in CUDA C++, of a text of
  /// jit::customText. Unsupported on the CPU.
  virtual Result<std::shared_ptr<const DeviceKernel>>
  loadCustom(const KernelSpec &spec, const jit::KernelText &text) = 0;
  /// Success where a call may compile, load and allocate now; InvalidArgument,
  /// asking for prepare(), while the stream is being captured.
  virtual Status mayPrepare(const AttentionConfig &config) const = 0;
  /// Unsupported, naming the argument, for what is in order but not implemented
  /// by this device's kernels.
  virtual Status checkSupport(const plan::AttentionProblem &problem,
                              const AttentionConfig &config) const = 0;

  /// Uninitialised memory for a result.
  virtual Result<Tensor> allocate(DataType dtype,
                                  const std::vector<std::int64_t> &sizes,
                                  const AttentionConfig &config) = 0;
  /// `bytes` of memory, kept for the next call like this.
  virtual Result<Workspace> workspace(std::int64_t bytes,
                                      const AttentionConfig &config) = 0;
  /// Copies `bytes` to the host when all work given to the device is done.
  virtual Status read(const void *from, void *to, std::int64_t bytes) = 0;
  /// Copies `bytes` from the host when all work given to the device is done.
  virtual Status write(const void *from, void *to, std::int64_t bytes) = 0;
  /// Waits for all work given to the device.
  virtual Status synchronise() = 0;

  /// Compiles and loads what listsFromMask() needs, where that has not been
  /// done; InvalidArgument, asking for prepare(), in a capture.
  virtual Status prepareListsFromMask(const AttentionConfig &config) = 0;
  /// The functions of BlockListOps.h.
  virtual Status listsFromMask(const TensorView &mask,
                               const TensorView &indices,
                               const TensorView &counts,
                               const AttentionConfig &config) = 0;
  virtual Status listAllBlocks(const TensorView &indices,
                               const TensorView &counts,
                               const AttentionConfig &config) = 0;
  /// Waits for the stream on a GPU.
  virtual Status validateEntries(const BlockLists &lists,
                                 const plan::AttentionProblem &problem,
                                 const AttentionConfig &config) = 0;
  /// Unsupported, naming it and a dimension, where this device's kernels cannot
  /// write a gradient there.
  virtual Status checkGradient(const char *name,
                               const TensorView &view) const = 0;
  /// Zeros in every element of a tensor of rank 4 whose last stride is 1.
  virtual Status writeZeros(const char *name, const TensorView &view,
                            const AttentionConfig &config) = 0;
  /// The result where no row attends to any key: o = 0, lse = -inf.
  virtual Status writeEmptyRows(const CallTensors &tensors,
                                const AttentionConfig &config) = 0;
};

} // namespace spargejit::api
