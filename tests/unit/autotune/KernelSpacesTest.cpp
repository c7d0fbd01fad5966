// SPDX-License-Identifier: Apache-2.0
//
// The tuning spaces of our kernels: each can be read, and the configuration
// that calls use without a record is in it.
#include "autotune/db/TuningRecord.h"
#include "autotune/space/ConfigSpace.h"
#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/plan/DefaultTuning.h"

#include <gtest/gtest.h>

namespace spargejit::autotune {
namespace {

ConfigSpace spaceOf(const std::string &path) {
  const auto *text = kernels_ir::findEmbeddedText(path);
  EXPECT_NE(text, nullptr) << path;
  auto space = ConfigSpace::parse(text->text);
  EXPECT_TRUE(space.ok()) << path << ": " << space.status().message();
  return *space;
}

struct Class {
  plan::ProblemClass kind;
  bool hasLists;

  Values facts() const {
    return {{"head_dim", kind.headDim},
            {"mask_block_q", kind.maskBlockQ},
            {"mask_block_kv", kind.maskBlockKv},
            {"has_lists", hasLists},
            {"causal", kind.causal},
            {"elem_bytes", 2},
            {"visited_keys", 2048}};
  }
};

std::vector<Class> classes(const std::vector<std::int64_t> &headDims) {
  std::vector<Class> all;
  for (std::int64_t headDim : headDims)
    for (std::int64_t q : {64, 128})
      for (std::int64_t kv : {16, 32, 64, 128})
        for (bool hasLists : {false, true}) {
          plan::ProblemClass kind;
          kind.dtype = DataType::BFloat16;
          kind.headDim = headDim;
          kind.maskBlockQ = q;
          kind.maskBlockKv = kv;
          all.push_back({kind, hasLists});
        }
  return all;
}

/// Every default is right, and the derived parameters follow as the defaults
/// have them.
void expectDefaultsInside(const std::string &path, const Target &target,
                          const std::vector<std::int64_t> &headDims) {
  ConfigSpace space = spaceOf(path);
  for (const Class &each : classes(headDims)) {
    const auto defaults = plan::defaultTuning(each.kind, target, each.hasLists);
    SCOPED_TRACE(path + ": head_dim=" + std::to_string(each.kind.headDim) +
                 ", mask block " + std::to_string(each.kind.maskBlockQ) + "x" +
                 std::to_string(each.kind.maskBlockKv) +
                 (each.hasLists ? " with lists" : ""));
    auto reason = space.whyNot(each.facts(), defaults);
    ASSERT_TRUE(reason.ok()) << reason.status().message();
    EXPECT_FALSE(*reason) << **reason;
    auto found = space.enumerate(each.facts());
    ASSERT_TRUE(found.ok());
    bool isListed = false;
    for (const Candidate &candidate : found->candidates) {
      bool isSame = true;
      for (const auto &[name, value] : candidate.config) {
        auto it = defaults.find(name);
        ASSERT_NE(it, defaults.end()) << name;
        isSame &= it->second == value;
      }
      isListed |= isSame;
    }
    EXPECT_TRUE(isListed) << describeConfig(defaults);
  }
}

constexpr const char *kKernels[] = {"attention_fwd", "attention_bwd_q",
                                    "attention_bwd_kv"};

TEST(KernelSpaces, HoldTheDefaultsOfTheHost) {
  for (const char *kernel : kKernels)
    expectDefaultsInside("kernels/portable/" + std::string(kernel) + ".tuning",
                         Target(), {8, 64, 72, 128, 256});
}

TEST(KernelSpaces, HoldTheDefaultsOfHopper) {
  for (const char *kernel : kKernels)
    expectDefaultsInside("kernels/sm90/" + std::string(kernel) + ".tuning",
                         {"sm_90a", "", ""}, {64, 96, 128, 192, 256});
}

TEST(KernelSpaces, LeaveSomethingToChooseFrom) {
  for (const std::string folder : {"kernels/portable/", "kernels/sm90/"})
    for (const char *kernel : kKernels) {
      const std::string path = folder + kernel + ".tuning";
      ConfigSpace space = spaceOf(path);
      for (const Class &each : classes({64, 128})) {
        auto found = space.enumerate(each.facts());
        ASSERT_TRUE(found.ok());
        EXPECT_GE(found->candidates.size(), 3u) << path;
      }
    }
}

} // namespace
} // namespace spargejit::autotune
