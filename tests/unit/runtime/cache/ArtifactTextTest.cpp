// SPDX-License-Identifier: Apache-2.0
//
// Artifacts as entries: every field comes back, and none may be missing.
#include "runtime/cache/ArtifactText.h"

#include "tests/unit/runtime/cache/CacheTrial.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace spargejit::cache {
namespace {

using Json = nlohmann::ordered_json;

/// No field has its default value.
KernelArtifact exampleArtifact(reference::Random &random) {
  auto number = [&] { return 1 + random.below(1000); };
  auto small = [&] { return static_cast<int>(number()); };
  KernelArtifact artifact;
  artifact.target = {"sm_90a", "a cpu", "+a,-b"};
  LaunchInfo &launch = artifact.launch;
  launch.entryName = "attention_fwd";
  launch.arguments = {{"q", KernelArgument::Kind::Tensor, 4, small()},
                      {"k_max", KernelArgument::Kind::Index, small(), small()},
                      {"scale", KernelArgument::Kind::Float, small(), small()}};
  launch.gridArgument = small();
  launch.gridTile = number();
  launch.staticScratchBytes = number() << 33;
  launch.dynamicScratch = {{number(), number(), small()},
                           {number(), number(), small()}};
  launch.threads = small();
  launch.sharedBytes = number();
  launch.persistent = true;
  launch.ctasPerMultiprocessor = small();
  launch.assemblerLevel = small();
  for (DataType type :
       {DataType::BFloat16, DataType::Float16, DataType::Float32})
    launch.tensorMaps.push_back({small(), type, number(), number(), small()});
  artifact.code = std::string("\x7f"
                              "ELF\0\xff",
                              6);
  return artifact;
}

StoredEntry entryFor(const KernelArtifact &artifact) {
  KernelSpec spec;
  spec.kernel = "attention_fwd";
  spec.target = artifact.target;
  spec.parameters = {{"elem", DataType::Float16}, {"head_dim", 64}};
  return entryOf(spec, "generator 1", artifact);
}

TEST(ArtifactText, ComesBackWhole) {
  auto random = numerics::randomForTest();
  KernelArtifact artifact = exampleArtifact(random);
  auto back = artifactOf(entryFor(artifact));
  ASSERT_TRUE(back.ok()) << back.status().message();
  const LaunchInfo &a = artifact.launch;
  const LaunchInfo &b = back->launch;
  EXPECT_EQ(back->target.architecture, "sm_90a");
  EXPECT_EQ(back->target.cpu, "a cpu");
  EXPECT_EQ(back->target.features, "+a,-b");
  EXPECT_EQ(back->code, artifact.code);
  EXPECT_EQ(b.entryName, a.entryName);
  ASSERT_EQ(b.arguments.size(), a.arguments.size());
  for (std::size_t i = 0; i < a.arguments.size(); ++i) {
    EXPECT_EQ(b.arguments[i].name, a.arguments[i].name);
    EXPECT_EQ(b.arguments[i].kind, a.arguments[i].kind);
    EXPECT_EQ(b.arguments[i].rank, a.arguments[i].rank);
    EXPECT_EQ(b.arguments[i].firstSlot, a.arguments[i].firstSlot);
  }
  EXPECT_EQ(b.gridArgument, a.gridArgument);
  EXPECT_EQ(b.gridTile, a.gridTile);
  EXPECT_EQ(b.staticScratchBytes, a.staticScratchBytes);
  ASSERT_EQ(b.dynamicScratch.size(), 2u);
  EXPECT_EQ(b.dynamicScratch[1].bytesPerColumn,
            a.dynamicScratch[1].bytesPerColumn);
  EXPECT_EQ(b.dynamicScratch[1].columnsMultiple,
            a.dynamicScratch[1].columnsMultiple);
  EXPECT_EQ(b.dynamicScratch[1].columnsSlot, a.dynamicScratch[1].columnsSlot);
  EXPECT_EQ(b.threads, a.threads);
  EXPECT_EQ(b.sharedBytes, a.sharedBytes);
  EXPECT_TRUE(b.persistent);
  EXPECT_EQ(b.ctasPerMultiprocessor, a.ctasPerMultiprocessor);
  EXPECT_EQ(b.assemblerLevel, a.assemblerLevel);
  ASSERT_EQ(b.tensorMaps.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(b.tensorMaps[i].argument, a.tensorMaps[i].argument);
    EXPECT_EQ(b.tensorMaps[i].elementType, a.tensorMaps[i].elementType);
    EXPECT_EQ(b.tensorMaps[i].boxRows, a.tensorMaps[i].boxRows);
    EXPECT_EQ(b.tensorMaps[i].boxColumns, a.tensorMaps[i].boxColumns);
    EXPECT_EQ(b.tensorMaps[i].swizzleBytes, a.tensorMaps[i].swizzleBytes);
  }
}

TEST(ArtifactText, NamesTheCodeByWhatItIs) {
  auto random = numerics::randomForTest();
  KernelArtifact artifact = exampleArtifact(random);
  EXPECT_EQ(entryFor(artifact).codeFile, "kernel.cubin");
  artifact.code = ".version 8.6\n";
  EXPECT_FALSE(isCubin(artifact));
  EXPECT_EQ(entryFor(artifact).codeFile, "kernel.ptx");
  artifact.target.architecture = "host";
  EXPECT_EQ(entryFor(artifact).codeFile, "kernel.o");
}

TEST(ArtifactText, RefusesContentWithoutAField) {
  auto random = numerics::randomForTest();
  const StoredEntry whole = entryFor(exampleArtifact(random));
  const Json content = Json::parse(whole.content);
  auto refused = [&](const Json &changed) {
    StoredEntry entry = whole;
    entry.content = changed.dump();
    auto artifact = artifactOf(entry);
    return !artifact.ok() && artifact.status().code() == ErrorCode::Internal;
  };
  ASSERT_FALSE(refused(content));
  for (const char *part : {"target", "launch"}) {
    for (const auto &field : content[part].items()) {
      Json changed = content;
      changed[part].erase(field.key());
      EXPECT_TRUE(refused(changed)) << part << "." << field.key();
      changed = content;
      changed[part][field.key()] = nullptr;
      EXPECT_TRUE(refused(changed)) << part << "." << field.key();
    }
  }
  Json changed = content;
  changed["launch"]["arguments"][0]["kind"] = "scalar";
  EXPECT_TRUE(refused(changed));
  changed = content;
  changed["launch"]["tensor_maps"][1].erase("box_rows");
  EXPECT_TRUE(refused(changed));
  StoredEntry plan = whole;
  plan.kind = "plan";
  EXPECT_FALSE(artifactOf(plan).ok());
}

} // namespace
} // namespace spargejit::cache
