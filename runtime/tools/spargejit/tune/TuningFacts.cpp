// SPDX-License-Identifier: Apache-2.0
//
// Texts beside a kernel.
#include "runtime/tools/spargejit/tune/TuningFacts.h"

#include "runtime/tools/spargejit/options/KernelOptions.h"

namespace spargejit::tool {

std::string kernelPath(const std::string &kernel, const std::string &target,
                       const std::string &ending) {
  const bool isGpu =
      target.starts_with("sm_") && target.find_first_of("0123456789") == 3;
  const bool isKnown = target == "host" || isGpu;
  return (isKnown ? kernelFolder(target) : target + "/") + kernel + ending;
}

} // namespace spargejit::tool
