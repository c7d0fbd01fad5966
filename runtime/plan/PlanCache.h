// SPDX-License-Identifier: Apache-2.0
//
// Method texts turned into MethodPlans, once per text: from memory, the store,
// or the code generator.
#pragma once

#include "runtime/base/MethodPlan.h"
#include "runtime/base/SingleFlight.h"
#include "runtime/cache/ArtifactStore.h"
#include "runtime/plan/MethodLibrary.h"
#include "runtime/plan/QuantisedPlan.h"

#include <functional>
#include <memory>
#include <string>

namespace spargejit::plan {

/// Thread-safe; single flight per text; failures are kept.
class PlanCache {
public:
  /// Parses a text: (text, file name for diagnostics).
  using PlanMethod = std::function<Result<MethodPlan>(const std::string &,
                                                      const std::string &)>;
  /// `generator`: the identity of what plans.
  explicit PlanCache(PlanMethod planMethod, cache::ArtifactStore store = {},
                     std::string generator = {})
      : planMethod_(std::move(planMethod)), store_(std::move(store)),
        generator_(std::move(generator)) {}

  Result<std::shared_ptr<const MethodPlan>> get(const MethodText &method);
  /// withForm() of it; of a backward pass there is none.
  Result<std::shared_ptr<const MethodPlan>> get(const MethodText &method,
                                                PlanForm form);

private:
  /// A text in a form.
  struct FormKey {
    Digest text;
    PlanForm form;
    friend bool operator==(const FormKey &, const FormKey &) = default;
  };
  struct FormKeyHash {
    std::size_t operator()(const FormKey &key) const {
      return DigestHash()(key.text) + static_cast<std::size_t>(key.form);
    }
  };

  Result<MethodPlan> make(const MethodText &method) const;

  PlanMethod planMethod_;
  cache::ArtifactStore store_;
  std::string generator_;
  SingleFlight<Digest, MethodPlan, DigestHash> plans_;
  SingleFlight<FormKey, MethodPlan, FormKeyHash> forms_;
};

} // namespace spargejit::plan
