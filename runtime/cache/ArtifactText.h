// SPDX-License-Identifier: Apache-2.0
//
// A KernelArtifact as an entry of the disk cache or a pack, and back.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "runtime/cache/EntryFolder.h"
#include "spargejit/status.h"

namespace spargejit::cache {

/// The kind of entry that holds a kernel.
inline constexpr const char *kKernelKind = "kernel";

/// True for machine code of a GPU (an ELF file), false for PTX text. The
/// artifact is one for a GPU.
bool isCubin(const KernelArtifact &artifact);

/// `spec` and `generator` are written for people; the key has them, too.
StoredEntry entryOf(const KernelSpec &spec, const std::string &generator,
                    const KernelArtifact &artifact);

/// Internal, naming the field, for content that entryOf() does not write: with
/// verified entries that is another version's.
Result<KernelArtifact> artifactOf(const StoredEntry &entry);

} // namespace spargejit::cache
