// SPDX-License-Identifier: Apache-2.0
//
// The kernel that quantises: its bytes and means are the host's.
#include "tests/gpu/kernels/QuantisedCase.h"

#include <cstdio>

using namespace spargejit::gpu_trial;

namespace {

/// What bytes hold before a kernel writes them (NaN), and how many behind the
/// last one are looked at.
constexpr std::uint8_t kPoison = 0x7F;
constexpr std::size_t kGuardBytes = 4096;

/// Bytes that are not the host's, and changed ones of the guard behind them.
std::int64_t countUnequal(CudaDriver &driver, DevicePointer from,
                          const std::vector<std::uint8_t> &want) {
  std::vector<std::uint8_t> got(want.size() + kGuardBytes);
  driver.toHost(got.data(), from, got.size());
  std::int64_t unequal = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    unequal += got[i] != (i < want.size() ? want[i] : kPoison);
  return unequal;
}

DevicePointer uploadPoison(DeviceBuffers &buffers, std::size_t bytes) {
  return buffers.upload(
      std::vector<std::uint8_t>(bytes + kGuardBytes, kPoison));
}

/// Means of a tensor's blocks in float64, [batch, heads, blocks, dim].
std::vector<double> meansOf(const Trial &t, const HostTensor &x,
                            std::int64_t block) {
  std::int64_t blocks = (x.length + block - 1) / block;
  std::vector<double> means(
      static_cast<std::size_t>(x.batch * x.heads * blocks * x.dim));
  forAll(x.batch * x.heads, [&](std::int64_t head) {
    for (std::int64_t row = 0; row < x.length; ++row)
      for (std::int64_t c = 0; c < x.dim; ++c) {
        std::int64_t first = row / block * block;
        auto count = static_cast<double>(std::min(block, x.length - first));
        auto at = static_cast<std::size_t>(
            x.at(head / x.heads, head % x.heads, row) + c);
        means[static_cast<std::size_t>((head * blocks + row / block) * x.dim +
                                       c)] +=
            static_cast<double>(toFloat(x.buffer[at], t.isBfloat16)) / count;
      }
  });
  return means;
}

/// The largest distance of device's means from `want`, or infinity.
double compareMeans(CudaDriver &driver, DevicePointer from,
                    const std::vector<double> &want) {
  std::vector<float> got(want.size());
  driver.toHost(got.data(), from, got.size() * sizeof(float));
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = larger(worst, std::fabs(static_cast<double>(got[i]) - want[i]));
  return worst;
}

/// Where a kernel writes the means of q's and k's blocks, or nowhere, and how
/// many blocks of each head of k are done.
class Pooled {
public:
  Pooled(const Problem &problem, DeviceBuffers &buffers, bool wanted)
      : trial_(problem.trial), wanted_(wanted) {
    if (!wanted)
      return;
    const Trial &t = trial_;
    q_ = meansOf(t, t.q, t.maskBlockQ), k_ = meansOf(t, t.k, t.maskBlockKv);
    auto poisoned = [&](std::size_t count) {
      return buffers.upload(std::vector<float>(count, std::nanf("")));
    };
    pooledQ_ = poisoned(q_.size()), pooledK_ = poisoned(k_.size());
    progress_ = buffers.upload(std::vector<std::int32_t>(groups()));
  }
  void addTo(Arguments &arguments) const {
    const Trial &t = trial_;
    arguments.tensors["pooled_q"] = describePacked(
        pooledQ_, {t.q.batch, t.q.heads, blocks(q_, t.q), t.q.dim});
    arguments.tensors["pooled_k"] = describePacked(
        pooledK_, {t.k.batch, t.k.heads, blocks(k_, t.k), t.k.dim});
    arguments.tensors["progress"] =
        describePacked(progress_, {static_cast<std::int64_t>(groups())});
  }
  bool check(CudaDriver &driver) {
    if (!wanted_)
      return true;
    const Trial &t = trial_;
    worst_ = larger(compareMeans(driver, pooledQ_, q_),
                    compareMeans(driver, pooledK_, k_));
    std::vector<std::int32_t> done(groups());
    driver.toHost(done.data(), progress_, done.size() * 4);
    for (std::int32_t count : done)
      miscounted_ +=
          count != blocks(k_, t.k) + t.q.heads / t.k.heads * blocks(q_, t.q);
    // Sums of at most 128 numbers in float32.
    return miscounted_ == 0 && worst_ < 1e-5;
  }
  std::string text() const {
    char line[80];
    std::snprintf(line, sizeof line, " means off by %.1e, %lld miscounted;",
                  worst_, static_cast<long long>(miscounted_));
    return wanted_ ? line : "";
  }

private:
  std::size_t groups() const {
    return static_cast<std::size_t>(trial_.k.batch * trial_.k.heads);
  }
  static std::int64_t blocks(const std::vector<double> &means,
                             const HostTensor &x) {
    return static_cast<std::int64_t>(means.size()) /
           (x.batch * x.heads * x.dim);
  }

  const Trial &trial_;
  bool wanted_;
  std::vector<double> q_, k_;
  DevicePointer pooledQ_ = 0, pooledK_ = 0, progress_ = 0;
  double worst_ = 0;
  std::int64_t miscounted_ = 0;
};

} // namespace

bool spargejit::gpu_trial::runQuantising(CudaDriver &driver,
                                         const Variant &variant,
                                         const Problem &problem,
                                         const Settings &settings,
                                         const std::string &line) {
  const QuantisedTrial &eight = problem.quantised;
  const Trial &t = problem.trial;
  const std::int64_t b = t.q.batch, h = t.q.heads, kvHeads = t.k.heads,
                     d = t.q.dim;
  DeviceBuffers buffers(driver);
  const DevicePointer intoQ = uploadPoison(buffers, eight.q.size()),
                      intoK = uploadPoison(buffers, eight.k.size()),
                      image = uploadPoison(buffers, eight.v.size());
  Pooled pooled(problem, buffers, settings.number("pooled", 0) != 0);
  Arguments arguments{
      {{"q", describe(buffers.upload(t.q.buffer), t.q)},
       {"k", describe(buffers.upload(t.k.buffer), t.k)},
       {"v", describe(buffers.upload(t.v.buffer), t.v)},
       {"q_factors", describePacked(buffers.upload(eight.qFactor), {b, h})},
       {"k_factors",
        describePacked(buffers.upload(eight.kFactor), {b, kvHeads})},
       {"v_factors",
        describePacked(buffers.upload(eight.vFactor), {b, kvHeads, d})},
       {"into_q", describePacked(intoQ, {b, h, t.q.length, d}, 1)},
       {"into_k", describePacked(intoK, {b, kvHeads, t.k.length, d}, 1)},
       {"image", describePacked(image, {b, kvHeads, eight.imageRows, 128}, 1)},
       {"saturated", describePacked(0, {b * kvHeads})}},
      {}};
  pooled.addTo(arguments);
  Launch launch;
  prepareLaunch(launch, driver, variant, arguments, settings);
  Launch::run(&launch);
  driver.synchronise();
  const std::int64_t unequal = countUnequal(driver, intoQ, eight.q) +
                               countUnequal(driver, intoK, eight.k) +
                               countUnequal(driver, image, eight.v);
  const bool passed = pooled.check(driver) && unequal == 0;
  std::string timing;
  const auto elements =
      static_cast<double>(b * d * (h * t.q.length + 2 * kvHeads * t.k.length));
  const double bytes =
      2 * elements +
      static_cast<double>(eight.q.size() + eight.k.size() + eight.v.size());
  if (int count = static_cast<int>(settings.number("time", 0)))
    timing = timeLaunches(launch, bytes, count, 0);
  std::printf("%s %s | %lld bytes unequal |%s%s (bytes)\n",
              passed ? "ok  " : "FAIL", line.c_str(),
              static_cast<long long>(unequal), pooled.text().c_str(),
              timing.c_str());
  std::fflush(stdout);
  return passed;
}
