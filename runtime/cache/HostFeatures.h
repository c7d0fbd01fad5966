// SPDX-License-Identifier: Apache-2.0
//
// Whether this machine has the processor features that a host kernel was
// compiled for, found without LLVM.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spargejit::cache {

/// Those of `features` ("+avx2,-avx512f,+fma": LLVM's names, those with a minus
/// are not needed) that this machine lacks, or that are not known here. What
/// only systems use is left alone.
std::vector<std::string> missingHostFeatures(std::string_view features);

/// The same for a processor whose flags, as Linux names them, are `flags`.
std::vector<std::string> missingFeatures(std::string_view features,
                                         const std::vector<std::string> &flags);

} // namespace spargejit::cache
