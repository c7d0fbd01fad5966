// SPDX-License-Identifier: Apache-2.0
//
// A code generator whose kernels are C++ functions of the test: the runtime
// runs whole calls on it without the compiler. float32 alone on the host; for a
// GPU, code that the fake driver loads (backend/cuda/FakeCuda.h).
#pragma once

#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/jit/CodeGenerator.h"

#include <atomic>
#include <string>
#include <vector>

namespace spargejit::unit {

/// Plans for "methods/{dense,block_sparse,spargeattention2}.mlir" and kernels
/// "pool", "select_blocks" (by rank alone) and "attention_fwd" (not causal) for
/// mask blocks of 64 or 128 by 16 or 64.
class FakeCodeGenerator final : public jit::CodeGenerator {
public:
  Target hostTarget() const override;
  std::string identity() const override { return "fake 1"; }
  Result<MethodPlan> planMethod(const std::string &text,
                                const std::string &textName) override;
  Result<std::vector<compiler::KernelParameter>>
  listKernelParameters(const std::string &text, const std::string &textName,
                       const std::string &kernel) override;
  Result<KernelArtifact> compileKernel(const std::string &text,
                                       const std::string &textName,
                                       const KernelSpec &spec) override;
  Result<std::string> dumpKernel(const std::string &text,
                                 const std::string &textName,
                                 const KernelSpec &spec,
                                 compiler::Stage stage) override;
  Result<std::shared_ptr<compiler::HostKernel>>
  loadHostKernel(const KernelArtifact &artifact) override;

  std::atomic<int> planned{0};
  std::atomic<int> listed{0};
  std::atomic<int> compiled{0};
  std::atomic<int> loaded{0};
  /// Of the attention kernel compiled last.
  std::atomic<std::int64_t> lastTileKv{0};
  /// An attention kernel with this tile does not compile.
  std::int64_t refusedTileKv = -1;
  /// Where set, compileKernel and loadHostKernel fail with it.
  std::string compileFailure;
  std::string loadFailure;
  /// Stands before the code of GPU kernels.
  std::string devicePrefix = ".version 8.6\n";
};

/// Texts that stand for these methods and kernels.
const std::vector<kernels_ir::EmbeddedText> &fakeTexts();

} // namespace spargejit::unit
