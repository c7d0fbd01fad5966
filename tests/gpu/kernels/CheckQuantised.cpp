// SPDX-License-Identifier: Apache-2.0
//
// check_quantised FOLDER CASE-LINE…: runs variants of attention_fwd_fp8 that
// write_variants made on the GPU, compares sampled rows with float64 references
// of the 8-bit inputs and of those that they were rounded from, looks for rows
// left unwritten and for writes outside, repeats, and times. Variants of
// quantise_rows and quantise_values must give the bytes that the host makes;
// quantise_peaks, and a variant factors=NAME of quantise_factors behind it, the
// host's factors.
//
// A case line: variant=NAME and the settings of Trial.h, and rows=N (sampled
// rows a head), repeats=N (bitwise equal), time=N and sustained=MS as in
// CheckVariants.cpp, ctas=N, tickets=0, original=E (relative L2 allowed against
// the inputs before they were rounded), of=q|k (what quantise_rows is given).
// One line of results a case; status 1 if any case failed.
#include "tests/gpu/kernels/QuantisedTrial.h"
#include "tests/gpu/kernels/VariantLaunch.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <mutex>
#include <random>
#include <set>

using namespace spargejit::gpu_trial;

namespace {

/// Relative L2 error allowed for o against the 8-bit inputs: the weights' three
/// bits of mantissa give 2.5e-2 where values have no mean and rows see many
/// keys alike, their linear mantissa 3.1e-2 (a model on the CPU agrees).
/// Absolute, for lse: a weight that stands alone is off by half a unit of its
/// three bits, 1 / 16, and by the linear mantissa.
constexpr double kLargestError = 3e-2, kLargestLseError = 0.065;
constexpr double kLargestErrorFast = 4e-2, kLargestLseErrorFast = 0.13;

struct DeviceBuffers {
  CudaDriver &driver;
  std::vector<DevicePointer> all;
  explicit DeviceBuffers(CudaDriver &d) : driver(d) {}
  ~DeviceBuffers() {
    for (DevicePointer pointer : all)
      driver.release(pointer);
  }
  template <typename T>
  DevicePointer upload(const std::vector<T> &values) {
    std::size_t bytes = values.size() * sizeof(T);
    all.push_back(driver.allocate(bytes));
    driver.toDevice(all.back(), values.data(), bytes);
    return all.back();
  }
};

/// Inputs that several variants in a row are tried on.
struct Problem {
  std::string key;
  Trial trial;
  QuantisedTrial quantised;
};

const Problem &problemOf(const Settings &settings, const Settings &parameters,
                         std::uint64_t seed) {
  static Problem last;
  std::string key = std::to_string(seed);
  for (const auto *words : {&settings.words, &parameters.words})
    for (const char *name :
         {"batch", "q_heads", "kv_heads", "q_len", "kv_len", "layout", "lists",
          "density", "spread", "scale", "mean", "elem", "causal", "has_lists",
          "mask_block_q", "mask_block_kv", "head_dim"}) {
      auto found = words->find(name);
      key += "," + (found == words->end() ? "" : found->second);
    }
  if (key != last.key) {
    last.trial = makeTrial(settings, parameters, seed);
    last.quantised = quantise(last.trial);
    last.key = key;
  }
  return last;
}

struct Places {
  DevicePointer o = 0, lse = 0, tickets = 0;
  std::vector<float> lseHost;
};

Arguments makeArguments(const Problem &problem, DeviceBuffers &buffers,
                        Places &places, bool hasTickets) {
  const Trial &t = problem.trial;
  const QuantisedTrial &eight = problem.quantised;
  std::int64_t b = t.q.batch, h = t.q.heads, kvHeads = t.k.heads, d = t.q.dim;
  places.o = buffers.upload(t.o.buffer);
  places.lseHost.assign(static_cast<std::size_t>(b * h * t.q.length), 0.0f);
  places.lse = buffers.upload(places.lseHost);
  places.tickets = buffers.upload(std::vector<std::int32_t>{0});
  return {
      {{"q", describePacked(buffers.upload(eight.q), {b, h, t.q.length, d}, 1)},
       {"k", describePacked(buffers.upload(eight.k),
                            {b, kvHeads, t.k.length, d}, 1)},
       {"v", describePacked(buffers.upload(eight.v),
                            {b, kvHeads, eight.imageRows, 128}, 1)},
       {"v_scale",
        describePacked(buffers.upload(eight.vScale), {b, kvHeads, d})},
       {"o", describe(places.o, t.o)},
       {"indices", describePacked(buffers.upload(t.indices),
                                  {b, h, t.qBlocks, t.capacity})},
       {"counts", describePacked(buffers.upload(t.counts), {b, h, t.qBlocks})},
       {"lse", describePacked(places.lse, {b, h, t.q.length})},
       {"tickets", describePacked(hasTickets ? places.tickets : 0, {1})}},
      {}};
}

/// The larger one, or infinity for NaN.
double larger(double worst, double error) {
  return std::isnan(error) ? std::numeric_limits<double>::infinity()
                           : std::max(worst, error);
}

/// Sums over rows of squared differences and of squares.
struct Distance {
  double difference = 0, norm = 0;
  void add(const std::vector<double> &is, const std::vector<double> &should) {
    for (std::size_t i = 0; i < is.size(); ++i) {
      difference += (is[i] - should[i]) * (is[i] - should[i]);
      norm += should[i] * should[i];
    }
  }
  void add(const Distance &other) {
    difference += other.difference, norm += other.norm;
  }
  double relative() const {
    return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
  }
};

struct Outcome {
  Distance rounded, original;
  double lseError = 0, worst = -1;
  std::int64_t unwritten = 0, outside = 0, unequal = 0, wrongInfinities = 0;
  std::string worstRow;
};

/// Rows to compare: those at edges of tiles and blocks, and random ones.
std::set<std::int64_t> sampleRows(std::int64_t length, std::int64_t count,
                                  std::mt19937_64 &engine) {
  std::set<std::int64_t> rows{length - 1, std::max<std::int64_t>(length - 2, 0),
                              (length - 1) / 128 * 128};
  for (std::int64_t row : {0, 1, 8, 63, 64, 127, 128})
    rows.insert(std::min(row, length - 1));
  for (std::int64_t i = 0; i < count; ++i)
    rows.insert(static_cast<std::int64_t>(engine() %
                                          static_cast<std::uint64_t>(length)));
  return rows;
}

void checkRow(const Problem &problem, std::int64_t b, std::int64_t h,
              std::int64_t row, const std::vector<std::uint16_t> &got,
              float isLse, Outcome &outcome) {
  const Trial &t = problem.trial;
  ReferenceRow want = referenceRow(problem.quantised, b, h, row);
  std::vector<double> is;
  for (std::int64_t c = 0; c < t.q.dim; ++c)
    is.push_back(toFloat(got[static_cast<std::size_t>(t.o.at(b, h, row) + c)],
                         t.isBfloat16));
  Distance rounded;
  rounded.add(is, want.o);
  outcome.rounded.add(rounded);
  outcome.original.add(is, referenceRow(t, b, h, row).o);
  if (std::isinf(want.lse) || std::isinf(isLse))
    outcome.wrongInfinities +=
        static_cast<double>(isLse) != want.lse || rounded.difference != 0;
  else
    outcome.lseError = larger(outcome.lseError, std::fabs(isLse - want.lse));
  if (double relative = rounded.relative(); !(relative <= outcome.worst)) {
    outcome.worst = relative;
    char text[96];
    std::snprintf(text, sizeof text, "b%d h%d row %d: %.2e",
                  static_cast<int>(b), static_cast<int>(h),
                  static_cast<int>(row), relative);
    outcome.worstRow = text;
  }
}

void checkRows(const Problem &problem, const std::vector<std::uint16_t> &got,
               const std::vector<float> &lse, std::int64_t rowsPerHead,
               std::uint64_t seed, Outcome &outcome) {
  const HostTensor &q = problem.trial.q;
  std::mutex mutex;
  forAll(q.batch * q.heads, [&](std::int64_t head) {
    std::mt19937_64 engine(seed + 99 + static_cast<std::uint64_t>(head));
    Outcome own;
    for (std::int64_t row : sampleRows(q.length, rowsPerHead, engine))
      checkRow(problem, head / q.heads, head % q.heads, row, got,
               lse[static_cast<std::size_t>(head * q.length + row)], own);
    std::lock_guard lock(mutex);
    outcome.rounded.add(own.rounded), outcome.original.add(own.original);
    outcome.lseError = larger(outcome.lseError, own.lseError);
    outcome.wrongInfinities += own.wrongInfinities;
    if (!(own.worst <= outcome.worst))
      outcome.worst = own.worst, outcome.worstRow = own.worstRow;
  });
}

bool hasPassed(const Outcome &outcome, const Settings &settings, bool isFast) {
  double most = isFast ? kLargestErrorFast : kLargestError;
  double mostLse = isFast ? kLargestLseErrorFast : kLargestLseError;
  double mostOriginal =
      settings.real("original", std::numeric_limits<double>::infinity());
  return outcome.rounded.relative() < most && outcome.lseError < mostLse &&
         outcome.original.relative() < mostOriginal &&
         outcome.unwritten + outcome.outside + outcome.unequal +
                 outcome.wrongInfinities ==
             0;
}

/// Launches as often as the case says, for bits that stay the same.
std::vector<std::uint16_t> launchAll(CudaDriver &driver, Launch &launch,
                                     std::size_t elements, Places &places,
                                     std::int64_t repeats, Outcome &outcome) {
  std::vector<std::uint16_t> got(elements), first;
  for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
    driver.fill(places.o, 0xFF, got.size() * 2);
    driver.fill(places.lse, 0xFF, places.lseHost.size() * 4);
    Launch::run(&launch);
    driver.synchronise();
    driver.toHost(got.data(), places.o, got.size() * 2);
    if (repeat == 0)
      first = got;
    outcome.unequal += got != first;
  }
  driver.toHost(places.lseHost.data(), places.lse, places.lseHost.size() * 4);
  std::int32_t ticketsAfter = 0;
  driver.toHost(&ticketsAfter, places.tickets, 4);
  outcome.unequal += ticketsAfter != 0;
  return got;
}

/// quantise_rows or quantise_values: each byte as the host has it, and none
/// behind the last.
bool runQuantise(CudaDriver &driver, const Variant &variant,
                 const Problem &problem, const Settings &settings,
                 const std::string &line) {
  const QuantisedTrial &eight = problem.quantised;
  bool isValues = variant.description["entry"] == "quantise_values";
  bool isQuery = settings.text("of", "q") == "q";
  const HostTensor &x = isValues  ? problem.trial.v
                        : isQuery ? problem.trial.q
                                  : problem.trial.k;
  const std::vector<std::uint8_t> &want = isValues  ? eight.v
                                          : isQuery ? eight.q
                                                    : eight.k;
  DeviceBuffers buffers(driver);
  constexpr std::size_t kGuardBytes = 4096;
  std::vector<std::uint8_t> got(want.size() + kGuardBytes, 0x7F);
  Argument from = describe(buffers.upload(x.buffer), x);
  DevicePointer to = buffers.upload(got);
  Argument rows = describePacked(to, {x.batch, x.heads, x.length, x.dim}, 1);
  Argument image =
      describePacked(to, {x.batch, x.heads, eight.imageRows, 128}, 1);
  Argument perChannel =
      describePacked(buffers.upload(eight.vFactor), {x.batch, x.heads, x.dim});
  Argument perHead =
      describePacked(buffers.upload(isQuery ? eight.qFactor : eight.kFactor),
                     {x.batch, x.heads});
  Arguments arguments{{{isValues ? "v" : "x", from},
                       {"factors", isValues ? perChannel : perHead},
                       {isValues ? "image" : "into", isValues ? image : rows}},
                      {}};
  Launch launch;
  prepareLaunch(launch, driver, variant, arguments, settings);
  Launch::run(&launch);
  driver.synchronise();
  driver.toHost(got.data(), to, got.size());
  std::int64_t unequal = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    unequal += got[i] != (i < want.size() ? want[i] : 0x7F);
  std::string timing;
  double bytes = static_cast<double>(x.batch * x.heads * x.length * x.dim * 2) +
                 static_cast<double>(want.size());
  // In place of operations: bytes, so that 1 TFLOP/s stands for 1 TB/s.
  if (int count = static_cast<int>(settings.number("time", 0)))
    timing = timeLaunches(launch, bytes, count, 0);
  std::printf("%s %s | %lld of %lld bytes unequal |%s (bytes)\n",
              unequal == 0 ? "ok  " : "FAIL", line.c_str(),
              static_cast<long long>(unequal),
              static_cast<long long>(want.size()), timing.c_str());
  std::fflush(stdout);
  return unequal == 0;
}

/// The largest difference of the factors, in parts of them.
double compareFactors(CudaDriver &driver, DevicePointer from,
                      const std::vector<float> &want) {
  std::vector<float> got(want.size());
  driver.toHost(got.data(), from, got.size() * sizeof(float));
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst = larger(worst, std::fabs(static_cast<double>(got[i]) / want[i] - 1));
  }
  return worst;
}

/// quantise_peaks of q, k and v, then quantise_factors.
bool runFactors(CudaDriver &driver, const std::string &folder,
                const Variant &peaks, const Problem &problem,
                const Settings &settings, const std::string &line) {
  const QuantisedTrial &eight = problem.quantised;
  const Trial &t = problem.trial;
  DeviceBuffers buffers(driver);
  std::int64_t block = peaks.parameters.number("quantise_block", 0);
  Arguments arguments;
  std::string timing;
  for (const auto &[name, x] :
       {std::pair<const char *, const HostTensor *>{"q_peaks", &t.q},
        {"k_peaks", &t.k},
        {"v_peaks", &t.v}}) {
    std::vector<std::int64_t> sizes{x->batch, x->heads,
                                    (x->length + block - 1) / block, x->dim};
    std::vector<float> poison(
        static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]),
        std::nanf(""));
    arguments.tensors[name] = describePacked(buffers.upload(poison), sizes);
    Arguments of{{{"x", describe(buffers.upload(x->buffer), *x)},
                  {"peaks", arguments.tensors[name]}},
                 {}};
    Launch launch;
    prepareLaunch(launch, driver, peaks, of, settings);
    Launch::run(&launch);
    driver.synchronise();
    if (int count = static_cast<int>(settings.number("time", 0)))
      timing += timeLaunches(launch, static_cast<double>(x->buffer.size() * 2),
                             count, 0);
  }
  std::int64_t b = t.q.batch, h = t.q.heads, kvHeads = t.k.heads, d = t.q.dim;
  auto poisoned = [&](const std::vector<float> &like) {
    return buffers.upload(std::vector<float>(like.size(), std::nanf("")));
  };
  auto &tensors = arguments.tensors;
  tensors["q_factors"] = describePacked(poisoned(eight.qFactor), {b, h});
  tensors["k_factors"] = describePacked(poisoned(eight.kFactor), {b, kvHeads});
  tensors["v_factors"] =
      describePacked(poisoned(eight.vFactor), {b, kvHeads, d});
  tensors["v_scales"] = describePacked(poisoned(eight.vScale), {b, kvHeads, d});
  arguments.scalars["softmax_scale"] = t.softmaxScale;
  Variant factors =
      loadVariant(driver, folder,
                  Settings::parse("variant=" + settings.text("factors", "")));
  Launch launch;
  prepareLaunch(launch, driver, factors, arguments, settings);
  Launch::run(&launch);
  driver.synchronise();
  if (int count = static_cast<int>(settings.number("time", 0)))
    timing += timeLaunches(launch, 0, count, 0);
  double worst = std::max(
      {compareFactors(driver, tensors["q_factors"].data, eight.qFactor),
       compareFactors(driver, tensors["k_factors"].data, eight.kFactor),
       compareFactors(driver, tensors["v_factors"].data, eight.vFactor),
       compareFactors(driver, tensors["v_scales"].data, eight.vScale)});
  bool passed = worst < 1e-6;
  std::printf("%s %s | factors off by %.1e |%s (bytes)\n",
              passed ? "ok  " : "FAIL", line.c_str(), worst, timing.c_str());
  std::fflush(stdout);
  return passed;
}

bool runCase(CudaDriver &driver, const std::string &folder,
             const std::string &line, std::uint64_t seed) {
  Settings settings = Settings::parse(line);
  Variant variant = loadVariant(driver, folder, settings);
  const Problem &problem = problemOf(settings, variant.parameters, seed);
  const Trial &trial = problem.trial;
  if (variant.description["entry"] == "quantise_peaks")
    return runFactors(driver, folder, variant, problem, settings, line);
  if (variant.description["entry"] != "attention_fwd_fp8")
    return runQuantise(driver, variant, problem, settings, line);
  DeviceBuffers buffers(driver);
  Places places;
  Launch launch;
  prepareLaunch(launch, driver, variant,
                makeArguments(problem, buffers, places,
                              settings.number("tickets", 1) != 0),
                settings);
  Outcome outcome;
  std::vector<std::uint16_t> got =
      launchAll(driver, launch, trial.o.buffer.size(), places,
                settings.number("repeats", 1), outcome);
  const Written written = writtenOf(trial.o, got);
  outcome.unwritten += written.unwritten;
  outcome.outside += written.outside;
  checkRows(problem, got, places.lseHost, settings.number("rows", 16), seed,
            outcome);
  double operations =
      4.0 * trial.visitedPairs() * static_cast<double>(trial.q.dim);
  if (!trial.hasLists && trial.causal)
    operations /= 2;
  std::string timing;
  if (int count = static_cast<int>(settings.number("time", 0)))
    timing = timeLaunches(launch, operations, count,
                          static_cast<int>(settings.number("sustained", 0)));
  bool passed =
      hasPassed(outcome, settings, variant.parameters.number("fast", 0) != 0);
  std::printf("%s %s | o %.2e, of the original %.2e, lse %.1e unwritten %lld "
              "outside %lld unequal %lld infinities %lld, worst %s |%s\n",
              passed ? "ok  " : "FAIL", line.c_str(),
              outcome.rounded.relative(), outcome.original.relative(),
              outcome.lseError, static_cast<long long>(outcome.unwritten),
              static_cast<long long>(outcome.outside),
              static_cast<long long>(outcome.unequal),
              static_cast<long long>(outcome.wrongInfinities),
              outcome.worstRow.c_str(), timing.c_str());
  std::fflush(stdout);
  return passed;
}

} // namespace

int main(int argc, char **argv) {
  return runCases("check_quantised", argc, argv, runCase);
}
