// SPDX-License-Identifier: Apache-2.0
//
// The linker of host objects, on objects that the compiler makes. That what it
// links computes the right thing is shown by every test of calls on the CPU.
#include "runtime/jit/HostObject.h"

#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/cache/HostFeatures.h"
#include "runtime/jit/CodeGenerator.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

namespace spargejit::jit {
namespace {

/// attention_fwd has constants, and calls functions of the C library.
KernelArtifact attentionArtifact() {
  KernelSpec spec;
  spec.kernel = "attention_fwd";
  spec.target = builtInCodeGenerator().hostTarget();
  spec.parameters = {{"elem", DataType::Float32},
                     {"head_dim", 64},
                     {"mask_block_q", 64},
                     {"mask_block_kv", 64},
                     {"causal", 0},
                     {"has_lists", 1},
                     {"tile_q", 64},
                     {"tile_kv", 64}};
  const auto *text =
      kernels_ir::findEmbeddedText("kernels/portable/attention_fwd.mlir");
  auto artifact = builtInCodeGenerator().compileKernel(
      std::string(text->text), "attention_fwd.mlir", spec);
  EXPECT_TRUE(artifact.ok()) << artifact.status().message();
  return artifact.ok() ? *artifact : KernelArtifact();
}

TEST(HostObject, LinksWhatTheCompilerMakes) {
  KernelArtifact artifact = attentionArtifact();
  auto kernel = loadHostObject(artifact);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_NE((*kernel)->function(), nullptr);
  artifact.launch.entryName = "another";
  auto missing = loadHostObject(artifact);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ErrorCode::CompileFailed);
  EXPECT_EQ(missing.status().message(),
            "expected a function another in the object, found none");
}

TEST(HostFeatures, FindsOnThisMachineWhatTheCompilerFinds) {
  const Target host = builtInCodeGenerator().hostTarget();
  EXPECT_NE(host.features, "");
  EXPECT_EQ(cache::missingHostFeatures(host.features),
            std::vector<std::string>{});
}

TEST(HostObject, DeclinesWhatIsNoObject) {
  for (const char *code : {"", "64x64", ".version 8.6",
                           "\x7f"
                           "ELF"}) {
    KernelArtifact artifact;
    artifact.code = code;
    EXPECT_EQ(loadHostObject(artifact).status().code(), ErrorCode::Unsupported);
  }
}

TEST(HostObject, SurvivesObjectsWithChangedBytes) {
  auto random = numerics::randomForTest();
  const KernelArtifact whole = attentionArtifact();
  const auto size = static_cast<std::int64_t>(whole.code.size());
  int declined = 0;
  for (int repeat = 0; repeat < 3000; ++repeat) {
    KernelArtifact artifact = whole;
    // Headers and tables are at both ends.
    std::int64_t at =
        random.chance(0.5)
            ? random.below(64)
            : size - 1 - random.below(std::min<std::int64_t>(size, 4000));
    artifact.code[static_cast<std::size_t>(at)] =
        static_cast<char>(random.next());
    if (random.chance(0.1))
      artifact.code.resize(static_cast<std::size_t>(random.below(size)));
    declined += !loadHostObject(artifact).ok();
  }
  EXPECT_GT(declined, 100);
}

} // namespace
} // namespace spargejit::jit
