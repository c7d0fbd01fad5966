// SPDX-License-Identifier: Apache-2.0
//
// A problem's class of kernels, and where a kernel's tuning space is found.
#pragma once

#include "autotune/db/ProblemLists.h"
#include "runtime/plan/AttentionProblem.h"

#include <string>

namespace spargejit::tool {

plan::ProblemClass classOf(const autotune::ProblemShape &problem);

/// "kernels/sm90/attention_fwd.tuning".
std::string kernelPath(const std::string &kernel, const std::string &target,
                       const std::string &ending);

} // namespace spargejit::tool
