// SPDX-License-Identifier: Apache-2.0
//
// The text around users' stages.
#include "runtime/jit/CustomStage.h"

#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/base/Hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace spargejit::jit {

namespace {

/// What the user's text sees, and what stands behind it.
constexpr std::string_view kDeviceHeader = "spargejit_device.h";
constexpr std::string_view kSelectRow = "select_row.h";
constexpr std::string_view kKernel = "custom_select.cu";

/// Text below kernels_ir/cuda.
std::string_view embedded(std::string_view name) {
  const kernels_ir::EmbeddedText *text =
      kernels_ir::findEmbeddedText(std::string("cuda/").append(name));
  return text ? text->text : std::string_view();
}

bool definesFunction(const PlanLaunch &launch, const char *function) {
  return std::any_of(
      launch.sources.begin(), launch.sources.end(),
      [&](const PlanSource &source) { return source.function == function; });
}

} // namespace

KernelText customText(const PlanLaunch &launch,
                      const std::string &customSource) {
  KernelText text;
  text.fileName = fmt::format("cuda/{}", kKernel);
  text.text = fmt::format("#define SPARGEJIT_SCORE {:d}\n"
                          "#define SPARGEJIT_KEEP {:d}\n",
                          definesFunction(launch, "score"),
                          definesFunction(launch, "keep"));
  bool fromCall = false;
  for (const PlanSource &source : launch.sources) {
    text.text += source.text;
    fromCall |= source.text.empty();
  }
  // Both functions may stand in the one text of the call.
  if (fromCall)
    text.text +=
        fmt::format("#line 1 \"config.customSource\"\n{}\n", customSource);
  for (const char *name : {"head_dim", "mask_block_q", "mask_block_kv",
                           "causal", "keep_diagonal", "keep_first"})
    text.parameters.push_back({name, false});
  return text;
}

CustomUnit customUnit(const KernelSpec &spec, const KernelText &text) {
  CustomUnit unit;
  unit.unit.name = "stage.cu";
  unit.unit.text = fmt::format(
      "#include \"{}\"\n{}#line 1 \"{}\"\n#include \"{}\"\n"
      "#include \"{}\"\n",
      kDeviceHeader, text.text, unit.unit.name, kSelectRow, kKernel);
  for (std::string_view name : {kDeviceHeader, kSelectRow, kKernel})
    unit.headers.push_back({std::string(name), std::string(embedded(name))});
  for (const auto &[name, value] : spec.parameters) {
    std::string macro = "-DSPARGEJIT_" + name;
    std::transform(macro.begin() + 2, macro.end(), macro.begin() + 2,
                   [](unsigned char letter) { return std::toupper(letter); });
    unit.definitions.push_back(
        fmt::format("{}={}", macro, std::get<std::int64_t>(value)));
  }
  return unit;
}

LaunchInfo customSelectInfo() {
  using Kind = KernelArgument::Kind;
  LaunchInfo info;
  info.entryName = "custom_select";
  int slot = 0;
  auto add = [&](const char *name, Kind kind, int rank = 0) {
    info.arguments.push_back({name, kind, rank, slot});
    slot += info.arguments.back().slotCount();
  };
  add("pooled_q", Kind::Tensor, 4);
  add("pooled_k", Kind::Tensor, 4);
  add("indices", Kind::Tensor, 4);
  add("counts", Kind::Tensor, 3);
  add("softmax_scale", Kind::Float);
  add("k", Kind::Index);
  add("p", Kind::Float);
  add("q_len", Kind::Index);
  add("kv_len", Kind::Index);
  add("k_values", Kind::Tensor, 3);
  add("p_values", Kind::Tensor, 3);
  for (const char *name :
       {"dense_first", "dense_end", "dense_row_first", "dense_row_end"})
    add(name, Kind::Index);
  // These are kRows and kThreads of the kernel; a row has a key and a weight
  // for each key block, 4 bytes each, and eight rows or one are in memory.
  info.gridArgument = 0;
  info.gridTile = 8;
  info.threads = 256;
  DynamicScratch rows;
  rows.bytesPerColumn = 8 * 8;
  rows.columnsSlot = info.arguments[1].firstSlot + 3;
  rows.shares = 8;
  info.dynamicScratch.push_back(rows);
  return info;
}

std::string customTextsDigest() {
  FieldHasher hasher;
  for (std::string_view name : {kDeviceHeader, kSelectRow, kKernel})
    hasher.field(embedded(name));
  return hasher.digest().hex();
}

} // namespace spargejit::jit
