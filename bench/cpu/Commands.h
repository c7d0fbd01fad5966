// SPDX-License-Identifier: Apache-2.0
//
// The commands of the benchmark program. Each adds its options to `app` and
// returns what it does when it is chosen: measure, and give the figures as
// JSON. Names end in their unit: ms, us (microseconds), gflops (10^9 operations
// a second, a multiply-add is two), mib.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>

namespace spargejit::bench {

using Json = nlohmann::ordered_json;
using Command = std::function<Json()>;

/// What was built, with what, for which CPU.
Command addMachineCommand(CLI::App &app);
/// The peak of float32 multiply-adds, on one core and on all.
Command addPeakCommand(CLI::App &app);
/// Dense attention over lengths, in turns with the peak.
Command addDenseCommand(CLI::App &app);
/// Selection and attention over densities and mask blocks, in turns with dense.
Command addSparseCommand(CLI::App &app);
/// Recall and error of selections over densities and mask blocks.
Command addQualityCommand(CLI::App &app);
/// The backward pass over densities and mask blocks, in turns with dense.
Command addBackwardCommand(CLI::App &app);
/// Time over the visited blocks, in three ways to change their number.
Command addGrowthCommand(CLI::App &app);
/// Time to compile a method's kernels; to be run in a fresh process.
Command addCompileCommand(CLI::App &app);
/// Time of warm calls of tiny problems.
Command addCallsCommand(CLI::App &app);
/// Kernels that many different lengths compile.
Command addLengthsCommand(CLI::App &app);
/// Time and memory of one long problem; to be run in a fresh process.
Command addMemoryCommand(CLI::App &app);

} // namespace spargejit::bench
