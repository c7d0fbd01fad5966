// SPDX-License-Identifier: Apache-2.0
//
// Workloads. Tokens are those of one full-length clip or picture, text tokens
// included where a model attends to both at once.
#include "autotune/db/ProblemLists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace spargejit::autotune {

namespace {

struct Workload {
  const char *list;
  const char *name;
  std::int64_t heads;
  std::int64_t length;
  std::int64_t headDim;
};

/// Wan: 81 frames are 21 latent ones; 480p has 30 x 52 tokens in each, 720p 45
/// x 80 (patches of 2 x 2 on latents of an eighth). The others by their model
/// cards and by reports of their users.
constexpr Workload kWorkloads[] = {
    {"wan", "wan-1.3b-480p", 12, 21 * 30 * 52, 128},
    {"wan", "wan-14b-480p", 40, 21 * 30 * 52, 128},
    {"wan", "wan-14b-720p", 40, 21 * 45 * 80, 128},
    {"hunyuan", "hunyuan-720p", 24, 115456, 128},
    {"cogvideox", "cogvideox-2b", 30, 17776, 64},
    {"cogvideox", "cogvideox-5b", 48, 17776, 64},
    {"ltx", "ltx-video", 32, 18200, 64},
    {"flux", "flux-1024", 24, 4608, 128},
    {"minimax-h3", "minimax-h3-5s", 56, 37719, 128},
    {"minimax-h3", "minimax-h3-15s", 56, 91392, 128},
};

ProblemShape shapeOf(const Workload &workload, std::int64_t maskBlockKv,
                     double density) {
  ProblemShape shape;
  shape.name = density < 1 ? fmt::format("{}-b{}-d{:g}", workload.name,
                                         maskBlockKv, density)
                           : fmt::format("{}-dense", workload.name);
  shape.qHeads = shape.kvHeads = workload.heads;
  shape.qLen = shape.kvLen = workload.length;
  shape.headDim = workload.headDim;
  shape.maskBlockKv = maskBlockKv;
  shape.density = density;
  return shape;
}

} // namespace

std::int64_t listedBlocks(const ProblemShape &shape) {
  const std::int64_t blocks =
      (shape.kvLen + shape.maskBlockKv - 1) / shape.maskBlockKv;
  return std::clamp<std::int64_t>(
      static_cast<std::int64_t>(shape.density * static_cast<double>(blocks)), 1,
      blocks);
}

std::vector<std::string> problemListNames() {
  std::vector<std::string> names;
  for (const Workload &workload : kWorkloads)
    if (std::find(names.begin(), names.end(), workload.list) == names.end())
      names.emplace_back(workload.list);
  return names;
}

Result<std::vector<ProblemShape>> problemList(const std::string &name) {
  std::vector<ProblemShape> shapes;
  for (const Workload &workload : kWorkloads) {
    auto add = [&](const ProblemShape &shape) {
      if (name == workload.list || name == workload.name || name == shape.name)
        shapes.push_back(shape);
    };
    add(shapeOf(workload, 64, 1));
    for (std::int64_t maskBlockKv : {64, 16})
      for (double density : {0.1, 0.05, 0.02})
        add(shapeOf(workload, maskBlockKv, density));
  }
  if (shapes.empty())
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("problems: expected one of {}, or the name of a "
                              "workload or problem in one, got \"{}\"",
                              fmt::join(problemListNames(), ", "), name));
  return shapes;
}

} // namespace spargejit::autotune
