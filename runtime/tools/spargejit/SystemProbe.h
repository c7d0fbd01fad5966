// SPDX-License-Identifier: Apache-2.0
//
// What this machine has: processor, and the libraries that the CUDA back end
// opens at run time.
#pragma once

#include "spargejit/status.h"

#include <string>
#include <vector>

namespace spargejit::tool {

struct ProcessorInfo {
  std::string name;                  ///< as the kernel reports it
  std::vector<std::string> features; ///< vector extensions that matter here
};
/// Reads /proc/cpuinfo; empty where there is none.
ProcessorInfo probeProcessor();

/// Processors that this process may run on.
int processorCount();

/// A library that may be there.
struct LibraryInfo {
  std::string name;   ///< "libcuda"
  bool sought = true; ///< false where the settings cannot be read
  bool found = false;
  std::string path;    ///< where it was found
  std::string version; ///< in words, or empty when it did not say
  std::string reason;  ///< why it was not found
};
LibraryInfo probeCudaDriver();
LibraryInfo probeNvrtc();

} // namespace spargejit::tool
