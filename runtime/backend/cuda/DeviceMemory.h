// SPDX-License-Identifier: Apache-2.0
//
// Device memory: blocks for results, workspaces that are kept, and fills.
#pragma once

#include "runtime/backend/cuda/DeviceContext.h"
#include "spargejit/tensor.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace spargejit::cuda {

/// `bytes` (0 included) of uninitialised device memory, freed with the last
/// reference, after all work on the device that was given by then. The pointer
/// is a device address. `device` must outlive the memory.
Result<std::shared_ptr<void>> allocateMemory(const DeviceContext &device,
                                             std::int64_t bytes);

/// Copies `bytes` to the host after the work on `stream`, and waits for it.
Status copyToHost(const DeviceContext &device, const void *from, void *to,
                  std::int64_t bytes, StreamHandle stream);

/// Copies `bytes` from the host after the work on `stream`, and waits for it.
Status copyFromHost(const DeviceContext &device, const void *from, void *to,
                    std::int64_t bytes, StreamHandle stream);

/// Waits for all work given to the device's primary context.
Status synchronise(const DeviceContext &device);

/// Sets every element of a float32 or int32 view of rank 3 to the 32 bits
/// given. Strides are not negative.
Status fillWords(const DeviceContext &device, const TensorView &view,
                 std::uint32_t bits, StreamHandle stream);

/// Sets every element of a view of rank 4 to zero bytes. The last stride is 1,
/// the others are not negative.
Status fillZeros(const DeviceContext &device, const TensorView &view,
                 StreamHandle stream);

/// Writes j to element (…, j) of a dense int32 view of rank 4. One fill for
/// each j: 2 µs apiece, for lists of all blocks, which nobody needs often.
Status fillCounting(const DeviceContext &device, const TensorView &view,
                    StreamHandle stream);

/// Workspaces of one device, one for each stream. They only grow, and what was
/// handed out before stays allocated, since a captured graph may still use it.
/// Thread-safe.
class Workspaces {
public:
  /// The workspace of a stream, held by one call: work of two threads on one
  /// stream must not be interleaved while it uses the workspace.
  struct Lease {
    void *base = nullptr;
    /// kCounters words (KernelSpec.h) that are 0 before and after a call's
    /// launches on the stream (tile.next_program, tile.await).
    void *counters = nullptr;
    std::unique_lock<std::mutex> lock;
  };

  explicit Workspaces(const DeviceContext &device) : device_(device) {}

  /// At least `bytes` bytes for work on `stream`. Where it has to grow, memory
  /// is allocated, also while the stream is being captured: that is not part of
  /// the graph, and stays. InvalidArgument for the legacy stream while another
  /// one is captured that it would wait for; OutOfResources.
  Result<Lease> take(std::int64_t bytes, StreamHandle stream);

private:
  struct Workspace {
    std::mutex mutex;
    /// All blocks; the last one is in use.
    std::vector<std::shared_ptr<void>> blocks;
    std::int64_t bytes = 0;
    /// Which stream has the handle: handles are used again.
    unsigned long long streamId = 0;
  };

  Workspace &find(StreamHandle stream);
  Status adopt(Workspace &workspace, StreamHandle stream);
  Status grow(Workspace &workspace, std::int64_t bytes, StreamHandle stream);

  const DeviceContext &device_;
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::unique_ptr<Workspace>> workspaces_;
};

} // namespace spargejit::cuda
