// SPDX-License-Identifier: Apache-2.0
//
// Pictures of block masks: query blocks downwards, key blocks to the right,
// selected blocks dark on light.
#pragma once

#include "spargejit/attention.h"
#include "spargejit/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spargejit::report {

/// Writes one picture per batch and head: to `path` itself when there is one,
/// else with "-b<batch>" (when there are several) and "-h<head>" before the
/// file name's ending. A block is a rectangle of whole pixels whose sides are
/// in the ratio maskBlockKv : maskBlockQ, scaled so that the longer side of
/// the picture has at least 512; masks that would need more than 1024 pixels at
/// the smallest scale are averaged over squares of blocks, grey meaning partly
/// selected. A grey frame of one pixel surrounds the mask.
/// Returns the paths written.
Result<std::vector<std::string>> writeMaskImages(const std::string &path,
                                                 const BlockLists &lists);

} // namespace spargejit::report
