// SPDX-License-Identifier: Apache-2.0
//
// Writes kernels, and what a build without a compiler needs beside them, into a
// pack (runtime/cache/Pack.h).
#pragma once

#include "runtime/base/Environment.h"
#include "runtime/jit/DeviceJit.h"
#include "runtime/tools/spargejit/options/KernelOptions.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spargejit::tool {

class PackWriter {
public:
  /// For kernels of one target. GPU kernels are assembled by the ptxas program
  /// that is found (SPARGEJIT_PTXAS, PATH, the toolkit's usual place); with
  /// none, or where `keepPtx`, they stay PTX for the driver to assemble.
  static Result<PackWriter> open(const std::string &folder,
                                 const Target &target, bool keepPtx);

  /// Compiles a kernel, or finds it in the disk cache, and writes it with the
  /// list of its text's parameters. Those written already are left alone.
  Status add(const MethodKernel &kernel);
  /// Writes the plan of a method.
  Status addPlan(const std::string &method);
  /// Writes the pack's index: it is complete then.
  Status finish();

  /// Folders of the kernels written or found in place.
  const std::vector<std::string> &kernelFolders() const { return folders_; }
  /// True for GPU kernels that were left as PTX for want of a ptxas program.
  bool lacksAssembler() const { return lacksAssembler_; }

private:
  explicit PackWriter(std::string folder) : folder_(std::move(folder)) {}
  Status write(const std::string &name, const cache::KernelKey &key,
               const cache::StoredEntry &entry);
  Result<KernelArtifact> artifactOf(const MethodKernel &kernel,
                                    const jit::KernelText &text);

  std::string folder_;
  std::unique_ptr<jit::KernelCompiler> hostCompiler_;
  std::unique_ptr<jit::DeviceJit> deviceJit_;
  std::set<std::string> written_;
  std::vector<std::string> folders_;
  bool lacksAssembler_ = false;
};

} // namespace spargejit::tool
