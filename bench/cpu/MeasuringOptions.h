// SPDX-License-Identifier: Apache-2.0
//
// Options that several commands of the benchmark have.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace spargejit::bench {

struct MeasuringOptions {
  std::int64_t headDim = 128;
  std::string dtype = "float32";
  int rounds = 5;
  int threads = 0;
  std::uint64_t seed = 1;

  /// All of them.
  void addTo(CLI::App &command) {
    addInputsTo(command);
    command
        .add_option("--rounds", rounds, "Runs of each measurement, at least")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
  }
  /// All but --rounds, for commands that measure once.
  void addInputsTo(CLI::App &command) {
    command.add_option("--head-dim", headDim, "Head dimension")
        ->capture_default_str();
    command.add_option("--dtype", dtype)
        ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
        ->capture_default_str();
    command.add_option("--threads", threads, "0 = all cores")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
    command.add_option("--seed", seed, "Of the inputs")->capture_default_str();
  }
};

/// A list of numbers, "1,2,3", each accepted by `check`.
template <typename Number>
void addList(CLI::App &command, const std::string &name,
             std::vector<Number> &values, const std::string &text,
             const CLI::Validator &check) {
  command.add_option(name, values, text)
      ->delimiter(',')
      ->check(check)
      ->capture_default_str();
}

inline const CLI::Range kAnyLength(1, 1 << 24);
inline const CLI::Range kAnyDensity(0.0, 1.0);

} // namespace spargejit::bench
