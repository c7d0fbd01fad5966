// SPDX-License-Identifier: Apache-2.0
//
// One forward and backward pass under test: the forward pass is an
// AttentionTrial, what the backward pass has beside it is drawn and poisoned in
// the same way.
#pragma once

#include "spargejit/training.h"
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/reference/ReferenceGradients.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spargejit::numerics {

/// Where dO, and the gradients, are put.
struct GradientPlacement {
  Placement dO = {};
  /// Strides of dO in place of the placement's, also 0.
  std::optional<std::vector<std::int64_t>> dOStrides = std::nullopt;
  Placement gradients = {};
};

class GradientTrial {
public:
  /// dO and dLse drawn from a normal distribution like q, k and v.
  GradientTrial(TestBackend &backend, const AttentionCase &shape,
                Random &random, const GradientPlacement &placement = {});

  /// Compiles both passes.
  Status prepare() const;
  /// The forward pass, and then runBackward().
  Status run();
  /// Poisons dq, dk and dv, calls attentionBackwardInto on what the last
  /// forward pass left, fetches dq, dk and dv.
  Status runBackward();
  AttentionSaved saved() const;

  /// No input written, nothing beside the elements of the gradients written.
  testing::AssertionResult memoryIsIntact() const;
  /// dq, dk and dv of the last run against the reference.
  testing::AssertionResult matchesReference() const;
  /// run(), memoryIsIntact() and matchesReference(); on a back end without
  /// gradients, that it says so.
  testing::AssertionResult isRight();

  reference::Gradients expected() const;
  /// Bits of dq, dk and dv.
  std::vector<std::byte> bits() const;

  AttentionTrial forward;
  TestTensor dO;
  TestTensor dLse;
  TestTensor dq;
  TestTensor dk;
  TestTensor dv;
  /// Whether dLse is given.
  bool wantsDLse = true;

private:
  TestBackend *backend_;
};

/// Compiles what the trials need, on as many threads as the machine has: a
/// compilation keeps one of them busy for half a second.
void prepareTogether(const std::vector<std::unique_ptr<GradientTrial>> &trials);

} // namespace spargejit::numerics
