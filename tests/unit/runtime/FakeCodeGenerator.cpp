// SPDX-License-Identifier: Apache-2.0
//
// The fake compiler: an artifact's code is the sizes of its mask blocks.
#include "tests/unit/runtime/FakeCodeGenerator.h"

#include "tests/unit/runtime/ExamplePlans.h"
#include "tests/unit/runtime/FakeKernels.h"

namespace spargejit::unit {

namespace {

class FakeKernel final : public compiler::HostKernel {
public:
  explicit FakeKernel(HostKernelFunction function) : function_(function) {}
  HostKernelFunction function() const override { return function_; }

private:
  HostKernelFunction function_;
};

std::int64_t sizeOf(const KernelSpec &spec, const char *name) {
  return std::get<std::int64_t>(spec.parameters.at(name));
}

std::string blocksOf(const KernelSpec &spec) {
  return std::to_string(sizeOf(spec, "mask_block_q")) + "x" +
         std::to_string(sizeOf(spec, "mask_block_kv"));
}

HostKernelFunction findFunction(const std::string &entry,
                                const std::string &code) {
  if (entry == "pool")
    return code == "64x16"    ? fakePool<64, 16>
           : code == "64x64"  ? fakePool<64, 64>
           : code == "128x16" ? fakePool<128, 16>
                              : fakePool<128, 64>;
  if (entry == "select_blocks")
    return fakeSelect;
  if (code == "64x16")
    return fakeAttention<64, 16>;
  if (code == "64x64")
    return fakeAttention<64, 64>;
  return code == "128x16" ? fakeAttention<128, 16> : fakeAttention<128, 64>;
}

/// Tensor maps of every tensor of the problem's type, the counters that kernels
/// on a device take as their last arguments, and the code's entry.
void makeDeviceKernel(const KernelSpec &spec, const std::string &prefix,
                      KernelArtifact &artifact) {
  LaunchInfo &launch = artifact.launch;
  launch.threads = 384;
  launch.sharedBytes = 200 << 10;
  launch.persistent = true;
  if (spec.kernel == "attention_fwd") {
    launch.arguments.push_back(
        {"tickets", KernelArgument::Kind::Tensor, 1, launch.slotCount()});
    for (int argument : {0, 1, 2, 5})
      launch.tensorMaps.push_back(
          {argument, std::get<DataType>(spec.parameters.at("elem")),
           sizeOf(spec, "tile_q"), 64, 128});
  }
  if (spec.kernel == "attention_fwd" || spec.kernel == "select_blocks")
    launch.arguments.push_back(
        {"selected", KernelArgument::Kind::Tensor, 1, launch.slotCount()});
  artifact.code = prefix + "// entry " + launch.entryName + " " +
                  std::to_string(8 * launch.slotCount());
  for (std::size_t i = 0; i < launch.tensorMaps.size(); ++i)
    artifact.code += " 128";
  artifact.code += "\n";
}

} // namespace

Target FakeCodeGenerator::hostTarget() const {
  Target target;
  target.cpu = "fake-cpu";
  return target;
}

Result<MethodPlan> FakeCodeGenerator::planMethod(const std::string &text,
                                                 const std::string &textName) {
  ++planned;
  if (text == "text of dense")
    return densePlan();
  if (text == "text of block_sparse")
    return blockSparsePlan();
  if (text == "text of spargeattention2")
    return selectingPlan();
  if (text == "text of custom")
    return customPlan();
  return Status(ErrorCode::CompileFailed, textName + ":1:1: no method");
}

Result<std::vector<compiler::KernelParameter>>
FakeCodeGenerator::listKernelParameters(const std::string &text,
                                        const std::string &,
                                        const std::string &kernel) {
  ++listed;
  using List = std::vector<compiler::KernelParameter>;
  if (kernel == "pool")
    return List{{"elem", true},
                {"head_dim", false},
                {"mask_block_q", false},
                {"mask_block_kv", false}};
  if (kernel == "list_blocks")
    return List{{"list_run", false},
                {"list_rows", false},
                {"list_warps", false},
                {"list_ctas", false}};
  if (kernel == "select_blocks" && text.ends_with("for sm90"))
    return List{
        {"head_dim", false}, {"keep_diagonal", false}, {"keep_first", false}};
  if (kernel == "select_blocks")
    return List{{"head_dim", false},      {"mask_block_q", false},
                {"mask_block_kv", false}, {"causal", false},
                {"keep_diagonal", false}, {"keep_first", false},
                {"tile_rows", false},     {"tile_columns", false}};
  return List{{"elem", true},          {"head_dim", false},
              {"mask_block_q", false}, {"mask_block_kv", false},
              {"causal", false},       {"has_lists", false},
              {"tile_q", false},       {"tile_kv", false}};
}

Result<KernelArtifact>
FakeCodeGenerator::compileKernel(const std::string &, const std::string &,
                                 const KernelSpec &spec) {
  ++compiled;
  if (!compileFailure.empty())
    return Status(ErrorCode::CompileFailed, compileFailure);
  KernelArtifact artifact;
  artifact.target = spec.target;
  if (spec.kernel == "pool") {
    artifact.launch = poolInfo(sizeOf(spec, "mask_block_q"));
    artifact.code = blocksOf(spec);
  } else if (spec.kernel == "select_blocks") {
    artifact.launch =
        selectBlocksInfo(spec.target.isHost() ? sizeOf(spec, "tile_rows") : 16);
  } else if (spec.kernel == "list_blocks") {
    artifact.launch = listBlocksInfo(sizeOf(spec, "list_rows"));
  } else {
    lastTileKv = sizeOf(spec, "tile_kv");
    if (lastTileKv == refusedTileKv)
      return Status(ErrorCode::CompileFailed, "a tile that is refused");
    artifact.launch = attentionInfo(sizeOf(spec, "tile_q"));
    artifact.code = blocksOf(spec);
  }
  if (!spec.target.isHost())
    makeDeviceKernel(spec, devicePrefix, artifact);
  return artifact;
}

Result<std::string> FakeCodeGenerator::dumpKernel(const std::string &,
                                                  const std::string &,
                                                  const KernelSpec &spec,
                                                  compiler::Stage stage) {
  return spec.kernel + " at stage " + std::to_string(static_cast<int>(stage));
}

Result<std::shared_ptr<compiler::HostKernel>>
FakeCodeGenerator::loadHostKernel(const KernelArtifact &artifact) {
  ++loaded;
  if (!loadFailure.empty())
    return Status(ErrorCode::CompileFailed, loadFailure);
  return std::shared_ptr<compiler::HostKernel>(std::make_shared<FakeKernel>(
      findFunction(artifact.launch.entryName, artifact.code)));
}

const std::vector<kernels_ir::EmbeddedText> &fakeTexts() {
  static const std::vector<kernels_ir::EmbeddedText> kTexts = {
      {"kernels/portable/attention_fwd.mlir", "text of attention_fwd"},
      {"kernels/portable/pool.mlir", "text of pool"},
      {"kernels/portable/select_blocks.mlir", "text of select_blocks"},
      {"kernels/sm90/attention_fwd.mlir", "text of attention_fwd for sm90"},
      {"methods/block_sparse.mlir", "text of block_sparse"},
      {"methods/broken.mlir", "text of broken"},
      {"methods/dense.mlir", "text of dense"},
      {"methods/spargeattention2.mlir", "text of spargeattention2"},
  };
  return kTexts;
}

} // namespace spargejit::unit
