// SPDX-License-Identifier: Apache-2.0
//
// Calls as command lines.
#include "runtime/api/MissingArtifact.h"

#include <fmt/format.h>

namespace spargejit::api {

std::string compileCommand(const std::string &method,
                           const plan::ProblemClass &kind, const Target &target,
                           bool isBackward) {
  return fmt::format(
      "spargejit compile method:{} --arch {} --head-dim {} "
      "--dtype {} --mask-block {}x{}{}{}{}{}{} -o DIR",
      method, target.architecture, kind.headDim, dataTypeName(kind.dtype),
      kind.maskBlockQ, kind.maskBlockKv, kind.causal ? " --causal" : "",
      kind.rows == plan::SelectionRows::Usual
          ? ""
          : fmt::format(
                " --rows {}",
                plan::kSelectionRowsNames[static_cast<std::size_t>(kind.rows)]),
      kind.hasDense ? " --dense-tokens" : "",
      kind.isEightBit()
          ? fmt::format(" --precision {}", precisionName(kind.precision))
          : "",
      isBackward ? " --backward" : "");
}

Status nameCommand(Status status, const AttentionConfig &config,
                   const plan::ProblemClass &kind, const Target &target,
                   bool isBackward) {
  if (status.ok() || status.code() != ErrorCode::ArtifactMissing)
    return status;
  return Status(
      ErrorCode::ArtifactMissing,
      fmt::format("{}; `{}` makes all that this call needs", status.message(),
                  compileCommand(config.method, kind, target, isBackward)));
}

} // namespace spargejit::api
