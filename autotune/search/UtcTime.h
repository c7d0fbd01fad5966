// SPDX-License-Identifier: Apache-2.0
//
// The time as records have it.
#pragma once

#include <string>

namespace spargejit::autotune {

/// "2026-11-30T06:30:00.123Z": texts compare as the times do.
std::string utcNow();

} // namespace spargejit::autotune
