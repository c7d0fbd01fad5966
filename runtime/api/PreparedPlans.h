// SPDX-License-Identifier: Apache-2.0
//
// Plans with their kernels loaded and their arguments bound, ready for any
// lengths. A warm call finds its plan here and nothing else is looked up.
#pragma once

#include "autotune/db/TuningTable.h"
#include "runtime/api/device/CallDevice.h"
#include "runtime/base/Hash.h"
#include "runtime/base/MethodPlan.h"
#include "runtime/base/SingleFlight.h"
#include "runtime/plan/AttentionProblem.h"
#include "runtime/plan/Planner.h"

#include <memory>
#include <vector>

namespace spargejit::api {

struct PreparedLaunch {
  std::shared_ptr<const DeviceKernel> kernel;
  std::vector<plan::ArgumentSource> sources;
  /// plan::keepsGradients().
  bool keeps = false;
};

struct PreparedPlan {
  std::shared_ptr<const MethodPlan> plan;
  std::vector<PreparedLaunch> launches;
};

/// Which launches of a plan are wanted.
enum class PlanScope : std::uint8_t { Whole, SelectionOnly };

/// Those of one device. Thread-safe; single flight.
class PreparedPlans {
public:
  /// `device` must outlive the plans.
  explicit PreparedPlans(CallDevice &device) : device_(device) {}

  using Configs = autotune::TuningTable::Configs;

  /// The launches of `plan` for problems of class `kind`, with the
  /// configurations that `tuned` has for their kernels (of a TuningTable, or
  /// null); where one of these does not compile or is not to be had, with the
  /// default and a warning. Compiles and loads what this process has not loaded
  /// yet, where config.stream allows; errors are those of CallDevice and of the
  /// planner.
  Result<std::shared_ptr<const PreparedPlan>>
  get(const std::shared_ptr<const MethodPlan> &plan,
      const plan::ProblemClass &kind, PlanScope scope,
      const AttentionConfig &config, const Configs *tuned);

private:
  struct Key {
    // Plans are kept for the life of the process, so the address is a name.
    const MethodPlan *plan;
    plan::ProblemClass kind;
    PlanScope scope;
    /// Tables give equal configurations one address.
    const Configs *tuned;
    /// Digest of config.customSource where the plan takes it.
    Digest customSource;
    friend bool operator==(const Key &, const Key &) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key &key) const;
  };

  Result<std::shared_ptr<const PreparedPlan>>
  make(const std::shared_ptr<const MethodPlan> &plan,
       const plan::ProblemClass &kind, PlanScope scope,
       const AttentionConfig &config, const Configs *tuned);
  /// `tuned`: of this launch's kernel, or null.
  Result<PreparedLaunch> prepareLaunch(const MethodPlan &plan,
                                       const PlanLaunch &launch,
                                       const plan::ProblemClass &kind,
                                       const AttentionConfig &config,
                                       const Configs::mapped_type *tuned);
  /// The same, with the default where the tuned one cannot be had.
  Result<PreparedLaunch> prepareTuned(const MethodPlan &plan,
                                      const PlanLaunch &launch,
                                      const plan::ProblemClass &kind,
                                      const AttentionConfig &config,
                                      const Configs *tuned);

  CallDevice &device_;
  SingleFlight<Key, PreparedPlan, KeyHash> prepared_;
};

} // namespace spargejit::api
