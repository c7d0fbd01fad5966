// SPDX-License-Identifier: Apache-2.0
//
// Short searches on a user's machine.
#include "runtime/api/tune/FirstUse.h"

#include "autotune/search/ProblemFacts.h"
#include "runtime/api/tune/RandomLists.h"
#include "runtime/base/DataTypeConversion.h"
#include "runtime/jit/KernelCompiler.h"
#include "runtime/plan/DefaultTuning.h"
#include "runtime/plan/TunedProblem.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <random>

namespace spargejit::api {

namespace {

using autotune::ProblemShape;

/// Of the space's candidates. The estimate ranks; a whole search is
/// `spargejit tune`.
constexpr int kCandidates = 8;
/// Relative L2 distance of two right results in 16-bit types stays well below:
/// each is within 3e-3 of the exact one (tests/reference/Comparison).
constexpr double kWorstRelativeL2 = 1e-2;

/// A small problem of the class, with ragged ends and grouped heads.
ProblemShape smallProblem(const ProblemShape &problem) {
  ProblemShape shape = problem;
  shape.batch = 1;
  shape.qHeads = 2;
  shape.kvHeads = 1;
  shape.qLen = 301;
  shape.kvLen = 997;
  shape.density = problem.density < 1 ? 0.4 : 1;
  return shape;
}

/// Inputs of a problem and the result of the default for it.
class Comparison {
public:
  static Result<Comparison> make(const TrialSetup &setup,
                                 const ProblemShape &problem);
  /// The largest difference of another engine's o, or what is wrong with it.
  Result<double> judge(Engine &engine) const;

private:
  explicit Comparison(const TrialSetup &setup) : setup_(setup) {}
  Result<Tensor> drawn(std::int64_t heads, std::int64_t length,
                       std::mt19937_64 &random) const;
  /// o of a call, on the host.
  Result<std::vector<float>> run(Engine &engine) const;

  const TrialSetup &setup_;
  ProblemShape shape_;
  Tensor q_, k_, v_;
  BlockLists lists_;
  std::vector<float> expected_;
};

Result<Tensor> Comparison::drawn(std::int64_t heads, std::int64_t length,
                                 std::mt19937_64 &random) const {
  auto tensor =
      Tensor::allocate(shape_.dtype, {1, heads, length, shape_.headDim});
  if (!tensor.ok())
    return tensor;
  std::normal_distribution<float> normal;
  std::vector<float> values(
      static_cast<std::size_t>(tensor->view().elementCount()));
  for (float &value : values)
    value = normal(random);
  convertFromFloat(values, shape_.dtype, tensor->view().data);
  return setup_.device.kind == DeviceKind::Cpu
             ? tensor
             : setup_.engine.copy(tensor->view(), setup_.device);
}

Result<std::vector<float>> Comparison::run(Engine &engine) const {
  auto poisoned = Tensor::allocate(
      shape_.dtype, {1, shape_.qHeads, shape_.qLen, shape_.headDim});
  if (!poisoned.ok())
    return poisoned.status();
  const std::int64_t count = poisoned->view().elementCount();
  std::memset(poisoned->view().data, 0xff,
              static_cast<std::size_t>(count) * dataTypeSize(shape_.dtype));
  auto o = setup_.device.kind == DeviceKind::Cpu
               ? poisoned
               : setup_.engine.copy(poisoned->view(), setup_.device);
  if (!o.ok())
    return o.status();
  Status status = engine.attentionInto(
      o->view(), q_.view(), k_.view(), v_.view(),
      trialCall(shape_, &lists_, setup_.threads), AttentionOutputs());
  if (status.ok() && setup_.device.kind != DeviceKind::Cpu) {
    status = engine.synchronise(setup_.device);
    if (status.ok())
      o = setup_.engine.copy(o->view(), Device{});
  }
  if (!status.ok() || !o.ok())
    return status.ok() ? o.status() : status;
  std::vector<float> values(static_cast<std::size_t>(count));
  convertToFloat(o->view().data, shape_.dtype, values);
  return values;
}

Result<Comparison> Comparison::make(const TrialSetup &setup,
                                    const ProblemShape &problem) {
  Comparison made(setup);
  made.shape_ = smallProblem(problem);
  std::mt19937_64 random(setup.seed);
  auto q = made.drawn(made.shape_.qHeads, made.shape_.qLen, random);
  auto k = made.drawn(made.shape_.kvHeads, made.shape_.kvLen, random);
  auto v = made.drawn(made.shape_.kvHeads, made.shape_.kvLen, random);
  auto lists = randomLists(made.shape_, setup.seed);
  if (lists.ok())
    lists = listsOn(setup.engine, *lists, setup.device);
  for (const Status &status :
       {q.status(), k.status(), v.status(), lists.status()})
    if (!status.ok())
      return status;
  made.q_ = *std::move(q);
  made.k_ = *std::move(k);
  made.v_ = *std::move(v);
  made.lists_ = *std::move(lists);
  Environment settings = setup.settings;
  settings.usesRecords = false;
  Engine byDefault(setup.generator, setup.texts, settings);
  auto expected = made.run(byDefault);
  if (!expected.ok())
    return expected.status();
  made.expected_ = *std::move(expected);
  return made;
}

Result<double> Comparison::judge(Engine &engine) const {
  auto found = run(engine);
  if (!found.ok())
    return found.status();
  double error = 0, size = 0, largest = 0;
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    const double wanted = expected_[i];
    const double difference = static_cast<double>((*found)[i]) - wanted;
    error += difference * difference;
    size += wanted * wanted;
    largest = std::max(largest, std::abs(difference));
  }
  // NaN is not below anything.
  if (!(std::sqrt(error) <= kWorstRelativeL2 * std::sqrt(size)))
    return Status(ErrorCode::Internal,
                  fmt::format("o is wrong: relative L2 distance {:.3g} from "
                              "the default's",
                              std::sqrt(error / size)));
  return largest;
}

} // namespace

Result<KernelSearch>
searchFor(const std::vector<kernels_ir::EmbeddedText> &texts,
          const std::string &target, const std::string &kernel,
          const ProblemShape &problem) {
  Target compiledFor;
  compiledFor.architecture = target;
  const auto *text =
      jit::findKernelFile(texts, compiledFor, kernel + ".tuning");
  if (!text)
    return Status(ErrorCode::Unsupported,
                  fmt::format("{} has no tuning space for {}", kernel, target));
  auto space = autotune::ConfigSpace::parse(text->text);
  if (!space.ok())
    return Status(space.status()).withContext(std::string(text->path));
  KernelSearch search{*std::move(space), {}};
  search.request.kernel = kernel;
  search.request.problem = problem;
  search.request.facts = autotune::factsOf(problem);
  auto enumeration = search.space.enumerate(search.request.facts);
  if (!enumeration.ok())
    return Status(enumeration.status()).withContext(std::string(text->path));
  // The default as far as the space has parameters for it.
  const auto all = plan::defaultTuning(plan::classOf(problem), compiledFor,
                                       problem.density < 1);
  if (!enumeration->candidates.empty())
    for (const auto &[name, value] : enumeration->candidates.front().config)
      if (auto it = all.find(name); it != all.end())
        search.request.defaultConfig[name] = it->second;
  return search;
}

Result<autotune::TuningRecord> tuneForFirstUse(TrialSetup setup,
                                               const ProblemShape &problem) {
  auto search =
      searchFor(setup.texts, setup.environment.target, setup.kernel, problem);
  if (!search.ok())
    return search.status();
  search->request.best = kCandidates;
  search->request.random = 0;
  search->request.count = 0; // the least
  auto comparison = Comparison::make(setup, problem);
  if (!comparison.ok())
    return comparison.status();
  setup.check = [&](Engine &engine, const ProblemShape &) {
    return comparison->judge(engine);
  };
  TrialSession session;
  auto device = TrialDevice::open(setup, problem, session);
  if (!device.ok())
    return device.status();
  auto outcome = autotune::searchConfigs(
      search->space, search->request, **device, {},
      [](const autotune::TuningRecord &) { return Status(); },
      [](const autotune::SearchProgress &) { return true; });
  if (!outcome.ok())
    return outcome.status();
  return outcome->chosen;
}

} // namespace spargejit::api
