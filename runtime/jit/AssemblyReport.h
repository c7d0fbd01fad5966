// SPDX-License-Identifier: Apache-2.0
//
// What an assembler of PTX says about a kernel, read from its log: that of
// `ptxas -v` and that of the driver, which are alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spargejit::jit {

/// The largest of each number over the functions in the log.
struct AssemblyReport {
  /// True when the log tells registers and spills; false for one that holds
  /// messages alone, or nothing.
  bool complete = false;
  /// Per thread.
  int registers = 0;
  std::int64_t stackBytes = 0;
  std::int64_t spillStoreBytes = 0;
  std::int64_t spillLoadBytes = 0;
  /// Per CTA.
  int barriers = 0;
  std::int64_t staticSharedBytes = 0;
  /// Messages (C75xx) about the warpgroup pipeline: products run one by one,
  /// waits put in, setmaxnreg ignored.
  std::vector<std::string> losses;
  /// Lines marked as warnings.
  std::vector<std::string> warnings;
};

AssemblyReport parseAssemblerLog(std::string_view log);

/// What no kernel of ours may have, in words: spills, a stack, losses. Empty
/// when there is none.
std::vector<std::string> faultsOf(const AssemblyReport &report);

/// "168 registers, 0 bytes of stack, 0 bytes of spill stores and 0 of loads, 16
/// barriers, 0 bytes of static shared memory".
std::string describeReport(const AssemblyReport &report);

} // namespace spargejit::jit
