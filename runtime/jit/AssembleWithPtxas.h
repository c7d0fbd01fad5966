// SPDX-License-Identifier: Apache-2.0
//
// PTX to machine code by the `ptxas` program of a CUDA toolkit: needs no GPU.
// Never by nvJitLink, which compiles relocatable code, ignores setmaxnreg and
// runs wgmma one by one.
#pragma once

#include "runtime/jit/ToolkitPrograms.h"
#include "spargejit/status.h"

#include <chrono>
#include <string>

namespace spargejit::jit {

/// What tells one ptxas from another without running it, which would take
/// longer than finding its product on disk: the program's size and the time at
/// which it was last written, which installing another version changes.
/// IoError.
Result<std::string> assemblerIdentity(const std::string &program);

struct AssembledCode {
  /// A cubin: an ELF file. Empty when the PTX could not be assembled.
  std::string cubin;
  /// Why there is no cubin: "ended with 255". Empty on success.
  std::string failure;
  /// What ptxas -v printed.
  std::string log;
  /// The command, for people to repeat it.
  std::string command;
};

/// Assembles PTX text for `architecture` ("sm_90a") with the optimiser at
/// `level` (LaunchInfo::assemblerLevel). Intermediate files are in a temporary
/// folder that is gone when this returns. PTX that is refused, or takes longer
/// than `limit`, is a `failure` in the result. IoError when the program cannot
/// be started or a file cannot be written or read.
Result<AssembledCode>
assembleWithPtxas(const std::string &program, const std::string &ptx,
                  const std::string &architecture, int level,
                  std::chrono::milliseconds limit = std::chrono::minutes(2));

} // namespace spargejit::jit
