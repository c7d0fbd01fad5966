// SPDX-License-Identifier: Apache-2.0
//
// Loads a host KernelArtifact into this process.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "spargejit/status.h"

#include <memory>

namespace spargejit::compiler {

/// A loaded host kernel; the function is valid while this object lives.
class HostKernel {
public:
  virtual ~HostKernel() = default;
  virtual HostKernelFunction function() const = 0;
};

/// Links the artifact's object code into this process (ORC). Thread-safe.
/// Errors: InvalidArgument for an artifact of another target, CompileFailed
/// for code that does not link.
Result<std::shared_ptr<HostKernel>>
loadHostKernel(const KernelArtifact &artifact);

} // namespace spargejit::compiler
