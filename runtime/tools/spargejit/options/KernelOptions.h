// SPDX-License-Identifier: Apache-2.0
//
// The options that `dump` and `compile` share, and the kernel texts and specs
// that they mean.
#pragma once

#include "compiler/Driver/CompileKernel.h"
#include "runtime/base/KernelSpec.h"
#include "runtime/tools/spargejit/options/OptionChecks.h"
#include "spargejit/status.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace spargejit::tool {

struct KernelOptions {
  std::string arch = "host";
  std::int64_t headDim = 128;
  /// Empty: float32 on the host, bfloat16 on a GPU.
  std::string dtype;
  std::string maskBlock = "128x64";
  bool causal = false;
  /// plan::SelectionRows, by name.
  std::string rows = "usual";
  bool hasDense = false;
  std::string precision = kDefaultPrecision;
  /// "name=value", each overrides or adds a parameter of the kernel.
  std::vector<std::string> sets;
};

void addKernelOptions(CLI::App &command, KernelOptions &options);

/// A kernel's text, built in or from a file.
struct KernelSource {
  std::string kernel;
  std::string fileName;
  std::string text;
};

/// `kernel` is the name of a built-in kernel of the architecture or the path of
/// an .mlir file that holds a kernel of the file's name. Usage error for
/// another name, listing the kernels; IoError.
Result<KernelSource> findKernel(const std::string &kernel,
                                const std::string &arch);

/// The spec that the options mean: every parameter that the text declares gets
/// its value from --set, else from the other options, else from the default
/// tuning. Usage errors on --set: a name that the kernel does not declare, a
/// value of the wrong kind, a parameter that nothing gives.
Result<KernelSpec> makeSpec(const KernelSource &source,
                            const KernelOptions &options);

/// The specs of all kernels that `method` needs for the options, with the
/// default tuning and with every other that tuning records advise for problems
/// of this class. Without --set. Unsupported when one does not exist for the
/// architecture.
struct MethodKernel {
  KernelSource source;
  KernelSpec spec;
  /// Of a record, and so not needed where it does not compile.
  bool isAdvised = false;
};
Result<std::vector<MethodKernel>> kernelsOfMethod(const std::string &method,
                                                  const KernelOptions &options);

/// The folder of an architecture's kernels: "kernels/portable/" for the host,
/// "kernels/sm90/" for sm_90a.
std::string kernelFolder(const std::string &arch);

/// What the code generator is to compile for.
Target targetOf(const KernelOptions &options);

/// A built-in text and what it says it is.
struct TextSummary {
  std::string name; ///< "topk", "attention_fwd"
  std::string path; ///< "methods/topk.mlir", "kernels/portable/…"
  std::string summary;
};
std::vector<TextSummary> listTexts(const std::string &folder);

} // namespace spargejit::tool
