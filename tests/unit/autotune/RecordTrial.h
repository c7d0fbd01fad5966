// SPDX-License-Identifier: Apache-2.0
//
// Records with random content for the tests of autotune/.
#pragma once

#include "autotune/db/TuningRecord.h"
#include "tests/numerics/harness/TestSeed.h"

namespace spargejit::unit {

inline autotune::ProblemShape exampleProblem(std::int64_t length = 32760,
                                             double density = 0.05) {
  autotune::ProblemShape problem;
  problem.name = "example";
  problem.qHeads = problem.kvHeads = 12;
  problem.qLen = problem.kvLen = length;
  problem.density = density;
  return problem;
}

inline autotune::TuningEnvironment exampleEnvironment() {
  return {"sm_90a", "A card", "580.1", "ptxas 13.0", "generator \"1\"", "0123"};
}

inline autotune::TuningRecord randomRecord(reference::Random &random) {
  autotune::TuningRecord record;
  record.kernel = "attention_fwd";
  record.problem = exampleProblem(1 + random.below(100000), 0.02);
  record.problem.causal = random.chance(0.5);
  record.environment = exampleEnvironment();
  record.config = {{"tile_kv", 64 * (1 + random.below(4))},
                   {"stages", 2 + random.below(3)}};
  record.medianUs = random.uniform() * 1e4;
  record.spreadUs = random.uniform();
  record.count = 20 + random.below(100);
  record.registers = 168;
  record.maxError = random.uniform() * 1e-3;
  record.date = "2026-11-30T06:30:00.123Z";
  return record;
}

} // namespace spargejit::unit
