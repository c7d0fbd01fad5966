// SPDX-License-Identifier: Apache-2.0
//
// The parameters that a kernel text declares, found in the store or listed by
// the code generator: with them there, a text is not parsed.
#pragma once

#include "runtime/cache/ArtifactStore.h"
#include "runtime/jit/CodeGenerator.h"

#include <string>
#include <vector>

namespace spargejit::jit {

/// The kind of entry that holds parameters.
inline constexpr const char *kParametersKind = "parameters";

cache::KernelKey parametersKey(const std::string &kernel,
                               const std::string &text,
                               const std::string &generator);
cache::StoredEntry
entryOf(const std::vector<compiler::KernelParameter> &parameters);
/// Internal for content that entryOf() does not write.
Result<std::vector<compiler::KernelParameter>>
parametersOf(const cache::StoredEntry &entry);

/// CodeGenerator::listKernelParameters(), kept in `store`.
Result<std::vector<compiler::KernelParameter>>
findOrListParameters(const cache::ArtifactStore &store,
                     CodeGenerator &generator, const std::string &text,
                     const std::string &textName, const std::string &kernel);

} // namespace spargejit::jit
