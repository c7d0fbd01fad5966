// SPDX-License-Identifier: Apache-2.0
//
// What the operating system calls the processor.
#pragma once

#include <string>

namespace spargejit {

/// The first "model name" of /proc/cpuinfo; "unknown" where there is none.
std::string processorName();

} // namespace spargejit
