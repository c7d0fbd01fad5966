// SPDX-License-Identifier: Apache-2.0
//
// What to do about an artifact that is not there: the command that makes all
// that a call needs.
#pragma once

#include "runtime/base/KernelSpec.h"
#include "runtime/plan/AttentionProblem.h"
#include "spargejit/attention.h"

namespace spargejit::api {

/// "spargejit compile method:topk --arch host --head-dim 64 --dtype float32
/// --mask-block 128x64 -o DIR"; of a backward pass with --backward.
std::string compileCommand(const std::string &method,
                           const plan::ProblemClass &kind, const Target &target,
                           bool isBackward = false);

/// A failure of the code ArtifactMissing with that command after its message,
/// any other as it is.
Status nameCommand(Status status, const AttentionConfig &config,
                   const plan::ProblemClass &kind, const Target &target,
                   bool isBackward = false);

} // namespace spargejit::api
