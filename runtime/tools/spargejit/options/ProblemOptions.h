// SPDX-License-Identifier: Apache-2.0
//
// The options that `run` and `check` share: inputs, method, execution.
#pragma once

#include "runtime/tools/spargejit/options/OptionChecks.h"
#include "runtime/tools/spargejit/problem/AttentionInputs.h"
#include "spargejit/attention.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace spargejit::tool {

inline constexpr const char *kDefaultLayout = "bhnd";

/// The values as given on the command line.
struct ProblemOptions {
  problem::InputSource source;
  std::string layout = kDefaultLayout;
  std::string dtype;
  std::string method = "spargeattention2";
  std::optional<double> topK;
  std::optional<double> topP;
  std::string maskBlock = "128x64";
  std::optional<double> softmaxScale;
  std::string blockMask;
  std::string customSource;
  bool causal = false;
  std::string precision = kDefaultPrecision;
  std::string device = "cpu";
  int threads = 0;
};

/// Adds the options to a subcommand; `options` must live as long as it.
void addProblemOptions(CLI::App &command, ProblemOptions &options);

/// Inputs and configuration ready for a call. Not to be moved while in use: the
/// configuration refers to the mask.
struct PreparedProblem {
  problem::AttentionInputs inputs; ///< in host memory
  /// The same on the device that was asked for.
  problem::AttentionInputs inputsOnDevice;
  AttentionConfig config;
  /// The method reads top_k and top_p of the configuration.
  bool usesTopK = false;
  bool usesTopP = false;
  Tensor blockMask;
};

/// Checks the options against each other (usage errors name the option) and
/// loads the inputs.
Result<PreparedProblem> prepareProblem(const ProblemOptions &options);

/// The library's failure with its field names ("config.topK: …", "k.sizes[3]:
/// …") replaced by what the user knows: the option, or the input.
Status inTermsOfOptions(const Status &status, const PreparedProblem &problem);

/// What was asked, for the JSON output: input, method, shape, dtype and so on.
nlohmann::ordered_json describeAsJson(const PreparedProblem &problem);

/// The same for people, one line an item: (label, text).
std::vector<std::pair<std::string, std::string>>
describeAsText(const PreparedProblem &problem);

} // namespace spargejit::tool
