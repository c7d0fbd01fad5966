// SPDX-License-Identifier: Apache-2.0
//
// The search for a kernel's configuration that a call asks for
// (AttentionConfig::tune), and what it has in common with `spargejit tune`.
#pragma once

#include "autotune/search/Search.h"
#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/api/tune/TrialDevice.h"

#include <string>
#include <vector>

namespace spargejit::api {

/// A kernel's space, and a request without its numbers of candidates.
struct KernelSearch {
  autotune::ConfigSpace space;
  autotune::SearchRequest request;
};

/// Unsupported for a kernel without a tuning space on the target.
Result<KernelSearch>
searchFor(const std::vector<kernels_ir::EmbeddedText> &texts,
          const std::string &target, const std::string &kernel,
          const autotune::ProblemShape &problem);

/// Tries the default and a few of the cheapest by estimate, each compared with
/// the default on a small problem: the record of the one to use.
/// Errors: those of searchFor, TrialDevice and autotune::searchConfigs.
Result<autotune::TuningRecord>
tuneForFirstUse(TrialSetup setup, const autotune::ProblemShape &problem);

} // namespace spargejit::api
