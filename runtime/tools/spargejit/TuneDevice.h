// SPDX-License-Identifier: Apache-2.0
//
// Tries configurations of attention_fwd on the CPU or a GPU, by whole calls
// with given lists, so that what is measured is what users get.
#pragma once

#include "autotune/search/Search.h"
#include "runtime/api/Engine.h"
#include "runtime/base/Environment.h"

#include <memory>
#include <string>
#include <vector>

namespace spargejit::tool {

class TuneDevice final : public autotune::TuningDevice {
public:
  /// Allocates the problem's tensors on `device`, as often as it takes to find
  /// none of them in a cache. OutOfResources, Unsupported, DriverError.
  static Result<std::unique_ptr<TuneDevice>>
  open(const autotune::ProblemShape &problem, Device device,
       std::uint64_t seed);

  autotune::TuningEnvironment environment() const override {
    return environment_;
  }
  Result<autotune::BuildReport> build(const autotune::Config &config) override;
  Result<double> check(const autotune::Config &config) override;
  Result<std::vector<double>> measure(const autotune::Config &config,
                                      int count) override;

private:
  /// One set of buffers.
  struct Buffers {
    Tensor q, k, v, o;
  };

  TuneDevice(const autotune::ProblemShape &problem, Device device,
             std::uint64_t seed)
      : problem_(problem), device_(device), seed_(seed) {}
  Status identify();
  Status makeBuffers();
  AttentionConfig callConfig(const autotune::ProblemShape &problem,
                             const BlockLists *lists) const;
  /// The engine of a configuration; the last one is kept.
  Result<api::Engine *> engineOf(const autotune::Config &config);
  Result<double> checkShape(api::Engine &engine,
                            const autotune::ProblemShape &shape,
                            std::uint64_t seed) const;
  Result<double> millisecondsPerCall(api::Engine &engine,
                                     const AttentionConfig &config, int calls);

  autotune::ProblemShape problem_;
  Device device_;
  std::uint64_t seed_;
  autotune::TuningEnvironment environment_;
  std::vector<Buffers> buffers_;
  std::size_t nextBuffers_ = 0;
  BlockLists lists_;
  autotune::Config current_;
  std::unique_ptr<api::Engine> engine_;
};

} // namespace spargejit::tool
