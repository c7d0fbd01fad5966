// SPDX-License-Identifier: Apache-2.0
//
// Where a kernel's tuning space is found.
#pragma once

#include <string>

namespace spargejit::tool {

/// "kernels/sm90/attention_fwd.tuning".
std::string kernelPath(const std::string &kernel, const std::string &target,
                       const std::string &ending);

} // namespace spargejit::tool
