// SPDX-License-Identifier: Apache-2.0
//
// Tries configurations of attention_fwd on the CPU or a GPU, by whole calls
// with given lists, so that what is measured is what users get.
#pragma once

#include "autotune/search/Search.h"
#include "runtime/api/Engine.h"
#include "runtime/base/Environment.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spargejit::tool {

/// What problems that are tuned one after the other share.
class TuneSession {
public:
  /// One set of buffers.
  struct Buffers {
    Tensor q, k, v, o;
  };

  /// Fills `buffers` with the problem's tensors on `device`, as often as it
  /// takes to find none of them in a cache; nothing where they have these sizes
  /// already. OutOfResources, Unsupported, DriverError.
  Status hold(const autotune::ProblemShape &problem, Device device,
              std::uint64_t seed);

  std::vector<Buffers> buffers;
  /// Outcomes of checks, by class of problems and configuration.
  std::map<std::string, Result<double>> checks;

private:
  std::optional<autotune::ProblemShape> held_;
};

class TuneDevice final : public autotune::TuningDevice {
public:
  /// `session` must outlive the device. Errors: those of TuneSession::hold.
  static Result<std::unique_ptr<TuneDevice>>
  open(const autotune::ProblemShape &problem, Device device, std::uint64_t seed,
       TuneSession &session);

  autotune::TuningEnvironment environment() const override {
    return environment_;
  }
  /// Compiles on all cores, into the disk cache.
  void announce(const std::vector<autotune::Config> &configs) override;
  Result<autotune::BuildReport> build(const autotune::Config &config) override;
  Result<double> check(const autotune::Config &config) override;
  Result<std::vector<double>> measure(const autotune::Config &config,
                                      int count) override;

private:
  struct ConfiguredEngine {
    autotune::Config config;
    std::unique_ptr<api::Engine> engine;
  };

  TuneDevice(const autotune::ProblemShape &problem, Device device,
             std::uint64_t seed, TuneSession &session)
      : problem_(problem), device_(device), seed_(seed), session_(session) {}
  Status identify();
  Status makeBuffers();
  std::unique_ptr<api::Engine> newEngine(const autotune::Config &config) const;
  Status prepareOn(api::Engine &engine) const;
  /// The engine of a configuration; the last two are kept.
  api::Engine &engineOf(const autotune::Config &config);
  Result<double> millisecondsPerCall(api::Engine &engine,
                                     const AttentionConfig &config, int calls);

  autotune::ProblemShape problem_;
  Device device_;
  std::uint64_t seed_;
  TuneSession &session_;
  autotune::TuningEnvironment environment_;
  std::size_t nextBuffers_ = 0;
  BlockLists lists_;
  std::array<ConfiguredEngine, 2> engines_;
};

} // namespace spargejit::tool
