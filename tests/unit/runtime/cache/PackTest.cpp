// SPDX-License-Identifier: Apache-2.0
//
// Packs: found whatever code generator and machine made them, used where they
// fit.
#include "runtime/cache/Pack.h"

#include "runtime/cache/ArtifactStore.h"
#include "runtime/cache/ArtifactText.h"
#include "runtime/cache/HostFeatures.h"
#include "tests/unit/runtime/cache/CacheTrial.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace spargejit::cache {
namespace {

class PackTest : public testing::Test {
protected:
  static KernelSpec specFor(const Target &target, std::int64_t headDim = 128) {
    KernelSpec spec;
    spec.kernel = "pool";
    spec.parameters = {{"elem", DataType::BFloat16}, {"head_dim", headDim}};
    spec.target = target;
    return spec;
  }
  void add(const KernelSpec &spec, const std::string &code,
           const std::string &generator = "LLVM 22") const {
    KernelArtifact artifact;
    artifact.target = spec.target;
    artifact.code = code;
    auto key = KernelKey::of(spec, "text", generator);
    ASSERT_EQ(publishEntry(folder_.file("."), "pool-" + key.hex(), key,
                           entryOf(spec, generator, artifact)),
              0);
  }
  Pack open() const {
    EXPECT_TRUE(writePackIndex(folder_.file(".")).ok());
    auto pack = Pack::open(folder_.file("."));
    EXPECT_TRUE(pack.ok()) << pack.status().message();
    return *pack;
  }
  static std::string codeOf(const std::optional<StoredEntry> &entry) {
    return entry ? entry->code : "none";
  }

  const Target gpu_{"sm_90a", "", ""};
  files::TemporaryFolder folder_;
};

TEST_F(PackTest, AnswersWhateverMadeIt) {
  add(specFor(gpu_), "made by 22");
  Pack pack = open();
  EXPECT_EQ(pack.size(), 1u);
  auto find = [&](const KernelSpec &spec, const char *text) {
    return codeOf(pack.find(KernelKey::of(spec, text, "none")));
  };
  EXPECT_EQ(find(specFor(gpu_), "text"), "made by 22");
  EXPECT_EQ(codeOf(pack.find(KernelKey::of(specFor(gpu_), "text", "none")
                                 .with("assembler", "ptxas"))),
            "made by 22");
  EXPECT_EQ(find(specFor(gpu_), "another text"), "none");
  EXPECT_EQ(find(specFor(gpu_, 64), "text"), "none");
  EXPECT_EQ(find(specFor({"sm_100a", "", ""}), "text"), "none");
  EXPECT_EQ(find(specFor({"sm_90", "", ""}), "text"), "none");
}

TEST_F(PackTest, TakesTheHostCodeThatUsesMostOfTheMachine) {
  // What every 64-bit processor has, and what none has.
  add(specFor({"host", "x86-64", "+sse,-avx2"}), "plain");
  add(specFor({"host", "x86-64-v9", "+sse,+flux-capacitor"}), "too new");
  auto key = KernelKey::of(specFor({"host", "", ""}), "text", "none");
  EXPECT_EQ(codeOf(open().find(key)), "plain");
  add(specFor({"host", "x86-64", "+sse,+sse2,+64bit"}), "better");
  EXPECT_EQ(codeOf(open().find(key)), "better");
}

TEST_F(PackTest, PassesOverDamagedEntriesWithOneWarning) {
  add(specFor(gpu_), "a");
  Pack pack = open();
  auto key = KernelKey::of(specFor(gpu_), "text", "none");
  std::string place = folder_.file(
      "pool-" + KernelKey::of(specFor(gpu_), "text", "LLVM 22").hex());
  files::writeBytes(place + "/kernel.ptx", "b");
  unit::Warnings warnings;
  EXPECT_EQ(codeOf(pack.find(key)), "none");
  EXPECT_EQ(codeOf(pack.find(key)), "none");
  ASSERT_EQ(warnings.lines().size(), 1u);
  EXPECT_NE(warnings.lines()[0].find(
                std::filesystem::path(place).filename().string()),
            std::string::npos)
      << warnings.lines()[0];
  // It is not ours to remove, and an index is not made of it.
  EXPECT_TRUE(std::filesystem::exists(place));
  EXPECT_FALSE(writePackIndex(folder_.file(".")).ok());
}

TEST_F(PackTest, SaysWhyAFolderIsNoPack) {
  auto missing = Pack::open(folder_.file("nowhere"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ErrorCode::IoError);
  EXPECT_NE(missing.status().message().find("nowhere/pack.json: No such file"),
            std::string::npos);
  for (const char *text :
       {"", "[]", R"({"pack_version":2,"entries":[]})",
        R"({"pack_version":1,"entries":[{"folder":"../x","request":"00"}]})"}) {
    files::writeBytes(folder_.file(kPackIndexName), text);
    EXPECT_FALSE(Pack::open(folder_.file(".")).ok()) << text;
  }
}

TEST_F(PackTest, IsLookedAtBeforeTheDiskCache) {
  add(specFor(gpu_), "of the pack");
  open();
  files::TemporaryFolder other;
  Environment settings;
  settings.packFolders = {other.file("no-pack"), folder_.file(".")};
  settings.cacheFolder = other.file("cache");
  unit::Warnings warnings;
  ArtifactStore store(settings);
  EXPECT_EQ(warnings.lines().size(), 1u);
  auto key = KernelKey::of(specFor(gpu_), "text", "none");
  EXPECT_EQ(codeOf(store.find(key)), "of the pack");
  auto another = KernelKey::of(specFor(gpu_, 64), "text", "none");
  EXPECT_EQ(codeOf(store.find(another)), "none");
  store.keep(another, {"kernel", "{}", "kernel.ptx", "of the cache"});
  EXPECT_EQ(codeOf(store.find(another)), "of the cache");
  EXPECT_NE(store.places().find(folder_.file(".")), std::string::npos);
}

TEST(HostFeatures, NeedsThoseWithAPlusAlone) {
  std::vector<std::string> flags{"lm", "sse4_1", "abm", "avx512f", "bmi1"};
  EXPECT_TRUE(missingFeatures("", flags).empty());
  EXPECT_TRUE(
      missingFeatures("+64bit,+sse4.1,+lzcnt,-avx2,+avx512f,+bmi", flags)
          .empty());
  EXPECT_EQ(missingFeatures("+avx2,-fma,+amx-tile", flags),
            (std::vector<std::string>{"avx2", "amx-tile"}));
  EXPECT_TRUE(missingFeatures("+shstk,+xsaves", flags).empty());
  EXPECT_EQ(missingHostFeatures("+nobody-has-this"),
            std::vector<std::string>{"nobody-has-this"});
}

} // namespace
} // namespace spargejit::cache
