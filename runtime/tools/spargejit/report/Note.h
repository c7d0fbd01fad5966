// SPDX-License-Identifier: Apache-2.0
//
// Lines on standard error. A standard error that cannot be written to is no
// reason to fail (fmt::print would throw), so nothing is checked.
#pragma once

#include <cstdio>
#include <string>

namespace spargejit::report {

/// Writes `text` and a line feed.
inline void note(const std::string &text) {
  std::string line = text + "\n";
  std::fputs(line.c_str(), stderr);
}

} // namespace spargejit::report
