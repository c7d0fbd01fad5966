// SPDX-License-Identifier: Apache-2.0
//
// check_quantised FOLDER CASE-LINE…: runs variants of attention_fwd_fp8 that
// write_variants made on the GPU, compares sampled rows with float64 references
// of the 8-bit inputs and of those that they were rounded from, looks for rows
// left unwritten and for writes outside, repeats, and times. Variants of
// quantise must give the bytes that the host makes, of the host's factors.
//
// A case line: variant=NAME and the settings of Trial.h, and rows=N (sampled
// rows a head), repeats=N (bitwise equal), time=N and sustained=MS as in
// CheckVariants.cpp, ctas=N, tickets=0, original=E (relative L2 allowed against
// the inputs before they were rounded), shift=1 (a number added to each row's
// lse), pooled=1 (of quantise). One line of results a case; status 1 if any
// case failed.
#include "tests/gpu/kernels/QuantisedCase.h"

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

const Problem &problemOf(const Settings &settings, const Settings &parameters,
                         std::uint64_t seed) {
  static Problem last;
  std::string key = std::to_string(seed);
  for (const auto *words : {&settings.words, &parameters.words})
    for (const char *name :
         {"batch", "q_heads", "kv_heads", "q_len", "kv_len", "layout", "lists",
          "density", "spread", "scale", "mean", "elem", "causal", "has_lists",
          "mask_block_q", "mask_block_kv", "head_dim", "value_dim"}) {
      auto found = words->find(name);
      key += "," + (found == words->end() ? "" : found->second);
    }
  if (key != last.key) {
    last.trial = makeTrial(settings, parameters, seed);
    last.quantised =
        quantise(last.trial, parameters.number("value_dim", last.trial.q.dim));
    last.key = key;
  }
  return last;
}

struct Places {
  DevicePointer o = 0, lse = 0, tickets = 0;
  std::vector<float> lseHost;
  std::vector<float> lseShift; // empty: absent
};

/// Shared by the launches of all parts of the channels.
struct Inputs {
  DevicePointer q = 0, k = 0, v = 0, vScale = 0, indices = 0, counts = 0,
                shift = 0;
};

Inputs uploadInputs(const Problem &problem, DeviceBuffers &buffers,
                    Places &places, std::uint64_t seed, bool shifts) {
  const Trial &t = problem.trial;
  const QuantisedTrial &eight = problem.quantised;
  const auto rows =
      static_cast<std::size_t>(t.q.batch * t.q.heads * t.q.length);
  places.o = buffers.upload(t.o.buffer);
  places.lseHost.assign(rows, 0.0f);
  places.lse = buffers.upload(places.lseHost);
  places.tickets = buffers.upload(std::vector<std::int32_t>{0});
  Inputs inputs{buffers.upload(eight.q),
                buffers.upload(eight.k),
                buffers.upload(eight.v),
                buffers.upload(eight.vScale),
                buffers.upload(t.indices),
                buffers.upload(t.counts),
                /*shift=*/0};
  if (shifts) {
    std::mt19937_64 engine(seed + 7);
    std::normal_distribution<float> normal(0, 20);
    places.lseShift.resize(rows);
    for (float &shift : places.lseShift)
      shift = normal(engine);
    inputs.shift = buffers.upload(places.lseShift);
  }
  return inputs;
}

/// Of the launch that computes channels from part * value_dim on.
Arguments makeArguments(const Problem &problem, const Inputs &inputs,
                        const Places &places, std::int64_t part,
                        bool hasTickets) {
  const Trial &t = problem.trial;
  const QuantisedTrial &eight = problem.quantised;
  const std::int64_t b = t.q.batch, h = t.q.heads, kvHeads = t.k.heads,
                     d = t.q.dim, valueDim = eight.valueDim;
  const auto first = static_cast<DevicePointer>(part * valueDim);
  const std::int64_t imageBytes = b * kvHeads * eight.imageRows * 128;
  Argument o = describe(places.o, t.o);
  o.data += first * 2;
  o.sizes.back() = valueDim;
  Argument scale = describePacked(inputs.vScale, {b, kvHeads, d});
  scale.data += first * sizeof(float);
  scale.sizes.back() = valueDim;
  return {
      {{"q", describePacked(inputs.q, {b, h, t.q.length, d}, 1)},
       {"k", describePacked(inputs.k, {b, kvHeads, t.k.length, d}, 1)},
       {"v",
        describePacked(inputs.v + static_cast<DevicePointer>(part * imageBytes),
                       {b, kvHeads, eight.imageRows, 128}, 1)},
       {"v_scale", scale},
       {"o", o},
       {"indices",
        describePacked(inputs.indices, {b, h, t.qBlocks, t.capacity})},
       {"counts", describePacked(inputs.counts, {b, h, t.qBlocks})},
       {"lse", describePacked(part == 0 ? places.lse : 0, {b, h, t.q.length})},
       {"lse_shift", describePacked(inputs.shift, {b, h, t.q.length})},
       {"tickets", describePacked(hasTickets ? places.tickets : 0, {1})}},
      {{"softmax_scale", t.softmaxScale}}};
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
              float isLse, float lseShift, Outcome &outcome) {
  const Trial &t = problem.trial;
  ReferenceRow want = referenceRow(problem.quantised, b, h, row);
  want.lse +=
      static_cast<double>(lseShift) * static_cast<double>(t.softmaxScale);
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
               const Places &places, std::int64_t rowsPerHead,
               std::uint64_t seed, Outcome &outcome) {
  const HostTensor &q = problem.trial.q;
  std::mutex mutex;
  forAll(q.batch * q.heads, [&](std::int64_t head) {
    std::mt19937_64 engine(seed + 99 + static_cast<std::uint64_t>(head));
    Outcome own;
    for (std::int64_t row : sampleRows(q.length, rowsPerHead, engine)) {
      const auto place = static_cast<std::size_t>(head * q.length + row);
      checkRow(problem, head / q.heads, head % q.heads, row, got,
               places.lseHost[place],
               places.lseShift.empty() ? 0 : places.lseShift[place], own);
    }
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

bool runCase(CudaDriver &driver, const std::string &folder,
             const std::string &line, std::uint64_t seed) {
  Settings settings = Settings::parse(line);
  Variant variant = loadVariant(driver, folder, settings);
  const Problem &problem = problemOf(settings, variant.parameters, seed);
  const Trial &trial = problem.trial;
  if (variant.description["entry"] != "attention_fwd_fp8")
    return runQuantising(driver, variant, problem, settings, line);
  DeviceBuffers buffers(driver);
  Places places;
  const Inputs inputs = uploadInputs(problem, buffers, places, seed,
                                     settings.number("shift", 0) != 0);
  const std::int64_t parts = trial.q.dim / problem.quantised.valueDim;
  std::vector<Launch> launches(static_cast<std::size_t>(parts));
  for (std::int64_t part = 0; part < parts; ++part) {
    Launch &own = launches[static_cast<std::size_t>(part)];
    prepareLaunch(own, driver, variant,
                  makeArguments(problem, inputs, places, part,
                                settings.number("tickets", 1) != 0),
                  settings);
    if (part > 0)
      launches[static_cast<std::size_t>(part) - 1].next = &own;
  }
  Launch &launch = launches.front();
  Outcome outcome;
  std::vector<std::uint16_t> got =
      launchAll(driver, launch, trial.o.buffer.size(), places,
                settings.number("repeats", 1), outcome);
  const Written written = writtenOf(trial.o, got);
  outcome.unwritten += written.unwritten;
  outcome.outside += written.outside;
  checkRows(problem, got, places, settings.number("rows", 16), seed, outcome);
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
