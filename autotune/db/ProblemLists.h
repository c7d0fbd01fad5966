// SPDX-License-Identifier: Apache-2.0
//
// Problems by name: what well-known models ask of attention. For `spargejit
// tune`, `compile` and `warmup`.
#pragma once

#include "spargejit/status.h"
#include "spargejit/tensor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spargejit::autotune {

/// One call's sizes; density is the share of key blocks that a row of blocks
/// attends to, 1 for dense attention.
struct ProblemShape {
  std::string name;
  DataType dtype = DataType::BFloat16;
  std::int64_t batch = 1;
  std::int64_t qHeads = 1;
  std::int64_t kvHeads = 1;
  std::int64_t qLen = 0;
  std::int64_t kvLen = 0;
  std::int64_t headDim = 128;
  std::int64_t maskBlockQ = 128;
  std::int64_t maskBlockKv = 64;
  bool causal = false;
  double density = 1;
};

/// Key blocks of a row's list: as many as top-k takes of the density,
/// trunc(density * blocks), at least one; all where density is 1.
std::int64_t listedBlocks(const ProblemShape &shape);

/// Names of the lists: "wan", "hunyuan", …
std::vector<std::string> problemListNames();

/// The problems of one list: each workload dense and at densities 0.1, 0.05 and
/// 0.02, with mask blocks of 128x64 and, where sparse, of 128x16. The name of a
/// workload ("wan-14b-480p") or of a problem ("wan-14b-480p-b64-d0.05") gives
/// its own alone. InvalidArgument for another name, with the lists that exist.
Result<std::vector<ProblemShape>> problemList(const std::string &name);

} // namespace spargejit::autotune
