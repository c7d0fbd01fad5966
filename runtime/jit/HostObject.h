// SPDX-License-Identifier: Apache-2.0
//
// Links a host kernel's object into this process: a relocatable ELF file of the
// kind that our code generator makes. Takes microseconds, and needs no LLVM.
#pragma once

#include "compiler/Driver/LoadHostKernel.h"
#include "runtime/base/KernelSpec.h"
#include "spargejit/status.h"

#include <memory>

namespace spargejit::jit {

/// The function artifact.launch.entryName of an object for this processor.
/// Unsupported for other code, data that can be written, and relocations and
/// foreign functions that our code generator does not use: an ordinary linker
/// may take it. CompileFailed for an object without that function,
/// OutOfResources. Thread-safe.
Result<std::shared_ptr<compiler::HostKernel>>
loadHostObject(const KernelArtifact &artifact);

} // namespace spargejit::jit
