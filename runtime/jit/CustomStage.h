// SPDX-License-Identifier: Apache-2.0
//
// A kernel with stages that the user wrote in CUDA C++, as text.
#pragma once

#include "runtime/base/MethodPlan.h"
#include "runtime/jit/KernelCompiler.h"
#include "runtime/jit/Nvrtc.h"

#include <string>
#include <vector>

namespace spargejit::jit {

/// The text of a custom launch: that of its stages, `customSource`
/// (config.customSource) for those that the call brings. Its parameters are
/// those of kernels_ir/cuda/custom_select.cu.
KernelText customText(const PlanLaunch &launch,
                      const std::string &customSource);

/// The program that NVRTC compiles for `spec` with such a text, what it
/// includes, and the definitions that make the spec's parameters known to it.
struct CustomUnit {
  NvrtcText unit;
  std::vector<NvrtcText> headers;
  std::vector<std::string> definitions;
};
CustomUnit customUnit(const KernelSpec &spec, const KernelText &text);

/// How to run the kernel: arguments as of select_blocks, eight rows of blocks
/// a CTA of 256 threads.
LaunchInfo customSelectInfo();

/// Digest of the texts that every unit has beside the user's.
std::string customTextsDigest();

} // namespace spargejit::jit
