// SPDX-License-Identifier: Apache-2.0
//
// Tries configurations of a kernel of attention or of its gradients on the CPU
// or a GPU, by whole calls with given lists, so that what is measured is what
// users get.
#pragma once

#include "autotune/search/Search.h"
#include "runtime/api/Engine.h"
#include "runtime/base/Environment.h"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spargejit::api {

/// A call of the problem: dense, or with given lists where density < 1.
AttentionConfig trialCall(const autotune::ProblemShape &problem,
                          const BlockLists *lists, int threads);

/// True for a kernel of the backward pass, whose trials are calls of
/// attentionBackward.
bool isOfBackward(const std::string &kernel);

/// Where and how candidates are tried.
struct TrialSetup {
  /// What candidates are compiled with; must outlive the device.
  jit::CodeGenerator &generator;
  const std::vector<kernels_ir::EmbeddedText> &texts;
  /// Packs and records are left out of it.
  Environment settings;
  /// Allocates and copies.
  Engine &engine;
  Device device;
  autotune::TuningEnvironment environment;
  std::string kernel;
  /// Whether the engine of a candidate is right on problems of this class: the
  /// largest difference, or what is wrong.
  std::function<Result<double>(Engine &, const autotune::ProblemShape &)> check;
  int threads = 0;
  std::uint64_t seed = 1;
};

/// What problems that are tried one after the other share.
class TrialSession {
public:
  /// One set of buffers; the last four for gradients alone.
  struct Buffers {
    Tensor q, k, v, o;
    Tensor lse, dq, dk, dv;
  };

  /// Fills `buffers` with the problem's tensors on `device`, as often as it
  /// takes to find none of them in a cache; nothing where they have these sizes
  /// already. OutOfResources, Unsupported, DriverError.
  Status hold(Engine &engine, const autotune::ProblemShape &problem,
              Device device, std::uint64_t seed);
  /// What the buffers lack for gradients of the problem that they hold.
  Status holdGradients(Engine &engine, Device device);

  std::vector<Buffers> buffers;
  /// Outcomes of checks, by kernel, class of problems and configuration.
  std::map<std::string, Result<double>> checks;

private:
  std::optional<autotune::ProblemShape> held_;
};

class TrialDevice final : public autotune::TuningDevice {
public:
  /// `session` must outlive the device. Errors: those of TrialSession::hold.
  static Result<std::unique_ptr<TrialDevice>>
  open(const TrialSetup &setup, const autotune::ProblemShape &problem,
       TrialSession &session);

  autotune::TuningEnvironment environment() const override {
    return setup_.environment;
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
    std::unique_ptr<Engine> engine;
  };

  TrialDevice(const TrialSetup &setup, const autotune::ProblemShape &problem,
              TrialSession &session)
      : setup_(setup), problem_(problem), session_(session) {}
  Status makeBuffers();
  /// o and lse of all buffers, by the configuration that calls have.
  Status runForward();
  std::unique_ptr<Engine> newEngine(const autotune::Config &config) const;
  Status prepareOn(Engine &engine) const;
  /// The engine of a configuration; the last two are kept.
  Engine &engineOf(const autotune::Config &config);
  Status call(Engine &engine, const AttentionConfig &config,
              const TrialSession::Buffers &buffers) const;
  Result<double> millisecondsPerCall(Engine &engine,
                                     const AttentionConfig &config, int calls);

  const TrialSetup setup_;
  const autotune::ProblemShape problem_;
  TrialSession &session_;
  std::size_t nextBuffers_ = 0;
  BlockLists lists_;
  std::array<ConfiguredEngine, 2> engines_;
};

} // namespace spargejit::api
