// SPDX-License-Identifier: Apache-2.0
//
// Reads /proc/cpuinfo.
#include "runtime/base/ProcessorName.h"

#include <fstream>

namespace spargejit {

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (std::size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
}

} // namespace spargejit
