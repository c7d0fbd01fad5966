// SPDX-License-Identifier: Apache-2.0
//
// What a GPU can load, whatever compiled it.
#pragma once

#include "runtime/base/KernelSpec.h"

#include <string>

namespace spargejit::jit {

/// A kernel's code for one architecture; belongs to no device or context.
struct DeviceCode {
  /// The kernel in words (cache::describeSpec).
  std::string what;
  LaunchInfo launch;
  /// Machine code (a cubin) where a ptxas program has assembled it, else PTX,
  /// which the driver assembles when it loads it.
  std::string image;
  bool isAssembled = false;
  /// Where the stages are dumped; empty when they are not.
  std::string dumpPlace;
};

} // namespace spargejit::jit
