// SPDX-License-Identifier: Apache-2.0
//
// check_backward FOLDER CASE-LINE…: runs variants of the backward kernels that
// write_variants made on the GPU, compares sampled rows of their outputs with
// float64 references, looks for rows left unwritten and for writes outside,
// repeats, and times.
//
// A case line: variant=NAME and the settings of Trial.h, and rows=N (sampled
// rows a head), repeats=N (bitwise equal), time=N and sustained=MS as in
// CheckVariants.cpp, ctas=N, tickets=0, dlse=0 (delta without it). before=NAME
// and after=NAME are variants that run before and after it each time but when
// it is timed: attention_bwd_kv, which keeps ds for attention_bwd_q_kept, and
// attention_bwd_q, which does the rest. One line of results a case; status 1 if
// any case failed.
//
// passes=A,B,…/C,D,… in the place of a variant: whole backward passes, each the
// launches of these variants one after the other as the runtime makes them (all
// but the first may start early), with all that they write checked, and timed
// in turns. What starts with = is timed only: some of a pass's launches.
#include "tests/gpu/kernels/BackwardTrial.h"
#include "tests/gpu/kernels/VariantLaunch.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>

using namespace spargejit::gpu_trial;

namespace {

/// Relative L2 error of the sampled rows of a gradient: p and ds are rounded to
/// the inputs' type for the products, which gives 2.3e-3 to 2.9e-3 for bfloat16
/// (bench/results); of delta: float32 sums, relative to the terms.
constexpr double kLargestError = 4e-3, kLargestDeltaError = 1e-6;

/// An output: where it is, and what its elements should be.
struct Output {
  std::string name;
  const HostTensor *tensor = nullptr;
  std::function<std::vector<double>(std::int64_t, std::int64_t, std::int64_t)>
      reference;
};

struct DeviceBuffers {
  CudaDriver &driver;
  std::vector<DevicePointer> all;
  explicit DeviceBuffers(CudaDriver &d) : driver(d) {}
  ~DeviceBuffers() {
    for (DevicePointer pointer : all)
      driver.release(pointer);
  }
  DevicePointer upload(const void *data, std::size_t bytes) {
    all.push_back(driver.allocate(bytes));
    driver.toDevice(all.back(), data, bytes);
    return all.back();
  }
  template <typename T>
  DevicePointer upload(const std::vector<T> &values) {
    return upload(values.data(), values.size() * sizeof(T));
  }
};

/// Bytes of the blocks kept for all heads.
std::size_t keptBytes(const BackwardTrial &trial) {
  const Trial &t = trial.forward;
  return static_cast<std::size_t>(t.q.batch * t.q.heads * trial.keptBlocks *
                                  t.maskBlockQ * t.maskBlockKv * 2);
}

void addKept(const BackwardTrial &trial, DeviceBuffers &buffers,
             Arguments &arguments) {
  const Trial &t = trial.forward;
  const std::int64_t b = t.q.batch, h = t.q.heads;
  auto add = [&](const char *name, const std::vector<std::int32_t> &values,
                 std::vector<std::int64_t> sizes) {
    arguments.tensors[name] = describePacked(
        values.empty() ? 0 : buffers.upload(values), std::move(sizes));
  };
  add("places", trial.places, {b, h, t.kvBlocks(), trial.keyCapacity});
  add("row_places", trial.rowPlaces, {b, h, t.qBlocks});
  add("unkept", trial.unkept, {b, 1, h});
  arguments.indices["kept_room"] = trial.keptBlocks;
  DevicePointer kept = 0;
  if (trial.keptBlocks > 0)
    buffers.all.push_back(kept = buffers.driver.allocate(keptBytes(trial)));
  arguments.tensors["kept"] = describePacked(
      kept, {b * h, trial.keptBlocks, t.maskBlockQ * t.maskBlockKv});
}

Arguments makeArguments(const BackwardTrial &trial, DeviceBuffers &buffers,
                        const Settings &settings) {
  const Trial &t = trial.forward;
  std::int64_t b = t.q.batch, h = t.q.heads;
  Arguments arguments;
  auto &tensors = arguments.tensors;
  auto add = [&](const char *name, const HostTensor &tensor) {
    tensors[name] = describe(buffers.upload(tensor.buffer), tensor);
  };
  add("q", t.q), add("k", t.k), add("v", t.v), add("o", t.o);
  add("d_o", trial.dO), add("d_q", trial.dQ);
  add("d_k", trial.dK), add("d_v", trial.dV);
  tensors["indices"] =
      describePacked(t.indices.empty() ? 0 : buffers.upload(t.indices),
                     {b, h, t.qBlocks, t.capacity});
  tensors["counts"] = describePacked(
      t.counts.empty() ? 0 : buffers.upload(t.counts), {b, h, t.qBlocks});
  tensors["key_indices"] =
      describePacked(buffers.upload(trial.keyIndices),
                     {b, h, t.kvBlocks(), trial.keyCapacity});
  tensors["key_counts"] =
      describePacked(buffers.upload(trial.keyCounts), {b, h, t.kvBlocks()});
  std::vector<std::int64_t> rows{b, h, t.q.length};
  tensors["lse"] = describePacked(buffers.upload(trial.lse), rows);
  tensors["delta"] = describePacked(buffers.upload(trial.delta), rows);
  tensors["d_lse"] = describePacked(
      settings.number("dlse", 1) ? buffers.upload(trial.dLse) : 0, rows);
  std::int32_t none = 0;
  DevicePointer tickets = buffers.upload(&none, sizeof none);
  tensors["tickets"] =
      describePacked(settings.number("tickets", 1) ? tickets : 0, {1});
  DevicePointer keyTickets = buffers.upload(&none, sizeof none);
  tensors["key_tickets"] =
      describePacked(settings.number("tickets", 1) ? keyTickets : 0, {1});
  DevicePointer progress = buffers.upload(&none, sizeof none);
  tensors["progress"] =
      describePacked(settings.number("progress", 0) ? progress : 0, {1});
  arguments.scalars["softmax_scale"] = t.softmaxScale;
  addKept(trial, buffers, arguments);
  return arguments;
}

struct Outcome {
  double error = 0;
  std::int64_t unwritten = 0, outside = 0, wrongZeros = 0;
  std::string worst;
  bool passed(double most) const {
    return error < most && unwritten + outside + wrongZeros == 0;
  }
};

/// Rows to compare: those at edges of tiles and blocks, and random ones.
std::set<std::int64_t> sampleRows(std::int64_t length, std::int64_t count,
                                  std::mt19937_64 &engine) {
  std::set<std::int64_t> rows;
  for (std::int64_t row : {0, 1, 8, 15, 16, 63, 64, 127, 128, 200})
    rows.insert(std::min(row, length - 1));
  rows.insert({length - 1, std::max<std::int64_t>(length - 2, 0),
               (length - 1) / 64 * 64, (length - 1) / 128 * 128});
  for (std::int64_t i = 0; i < count; ++i)
    rows.insert(static_cast<std::int64_t>(engine() %
                                          static_cast<std::uint64_t>(length)));
  return rows;
}

void checkRows(const Output &output, const std::vector<std::uint16_t> &got,
               bool isBfloat16, std::int64_t rowsPerHead, std::uint64_t seed,
               Outcome &outcome) {
  const HostTensor &tensor = *output.tensor;
  std::mutex mutex;
  double difference = 0, norm = 0, worst = -1;
  forAll(tensor.batch * tensor.heads, [&](std::int64_t head) {
    std::int64_t b = head / tensor.heads, h = head % tensor.heads;
    std::mt19937_64 engine(seed + 99 + static_cast<std::uint64_t>(head));
    for (std::int64_t row : sampleRows(tensor.length, rowsPerHead, engine)) {
      std::vector<double> want = output.reference(b, h, row);
      double rowDifference = 0, rowNorm = 0;
      for (std::int64_t c = 0; c < tensor.dim; ++c) {
        double is =
            toFloat(got[static_cast<std::size_t>(tensor.at(b, h, row) + c)],
                    isBfloat16);
        double should = want[static_cast<std::size_t>(c)];
        rowDifference += (is - should) * (is - should);
        rowNorm += should * should;
      }
      std::lock_guard lock(mutex);
      difference += rowDifference, norm += rowNorm;
      // What sees nothing has a gradient of exactly 0.
      outcome.wrongZeros += rowNorm == 0 && rowDifference != 0;
      double relative = std::sqrt(rowDifference / std::max(rowNorm, 1e-30));
      if (!(relative <= worst)) {
        worst = relative;
        char text[96];
        std::snprintf(text, sizeof text, "b%d h%d row %d: %.2e",
                      static_cast<int>(b), static_cast<int>(h),
                      static_cast<int>(row), relative);
        outcome.worst = text;
      }
    }
  });
  outcome.error =
      norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

std::vector<Output> outputsOf(const std::string &kernel,
                              const BackwardTrial &trial) {
  if (kernel == "attention_bwd_q" || kernel == "attention_bwd_q_kept")
    return {{"d_q", &trial.dQ, [&](auto b, auto h, auto row) {
               return referenceDq(trial, b, h, row);
             }}};
  if (kernel == "attention_bwd_kv")
    return {{"d_k", &trial.dK,
             [&](auto b, auto h, auto row) {
               return referenceKey(trial, b, h, row).dk;
             }},
            {"d_v", &trial.dV, [&](auto b, auto h, auto row) {
               return referenceKey(trial, b, h, row).dv;
             }}};
  return {};
}

/// Every row of delta, which holds NaN before.
double checkDelta(CudaDriver &driver, const BackwardTrial &trial,
                  DevicePointer delta, bool hasDLse) {
  std::vector<float> got(trial.delta.size());
  driver.toHost(got.data(), delta, got.size() * sizeof(float));
  const HostTensor &q = trial.forward.q;
  std::vector<double> most(static_cast<std::size_t>(q.batch * q.heads));
  forAll(q.batch * q.heads, [&](std::int64_t head) {
    double &worst = most[static_cast<std::size_t>(head)];
    for (std::int64_t row = 0; row < q.length; ++row) {
      std::int64_t b = head / q.heads, h = head % q.heads;
      auto [should, magnitude] = referenceDelta(trial, b, h, row);
      auto at = trial.statistic(b, h, row);
      if (!hasDLse)
        should += static_cast<double>(trial.dLse[at]);
      double error =
          std::fabs(static_cast<double>(got[at]) - should) / magnitude;
      if (!(error <= worst))
        worst = std::isnan(error) ? HUGE_VAL : error;
    }
  });
  return *std::max_element(most.begin(), most.end());
}

/// What follows poisons and checks outputs that are not 16-bit tensors.
void poisonOther(CudaDriver &driver, const BackwardTrial &trial,
                 Arguments &arguments) {
  driver.fill(arguments.tensors["delta"].data, 0xFF, trial.delta.size() * 4);
  driver.fill(arguments.tensors["key_indices"].data, 0xFF,
              trial.keyIndices.size() * 4);
  driver.fill(arguments.tensors["key_counts"].data, 0xFF,
              trial.keyCounts.size() * 4);
  for (auto [name, values] : {std::pair("places", &trial.places),
                              std::pair("row_places", &trial.rowPlaces),
                              std::pair("unkept", &trial.unkept)})
    driver.fill(arguments.tensors[name].data, 0xEE, values->size() * 4);
}

/// Places that are not as they should be; those behind the end of a list are
/// nobody's business.
std::int64_t countWrongPlaces(CudaDriver &driver, const BackwardTrial &trial,
                              Arguments &arguments) {
  std::int64_t wrong = 0;
  for (auto [name, values] : {std::pair("places", &trial.places),
                              std::pair("row_places", &trial.rowPlaces),
                              std::pair("unkept", &trial.unkept)}) {
    std::vector<std::int32_t> got(values->size());
    driver.toHost(got.data(), arguments.tensors[name].data, got.size() * 4);
    const auto capacity = static_cast<std::size_t>(trial.keyCapacity);
    for (std::size_t i = 0; i < got.size(); ++i)
      wrong += got[i] != (*values)[i] &&
               (values != &trial.places ||
                i % capacity <
                    static_cast<std::size_t>(trial.keyCounts[i / capacity]));
  }
  return wrong;
}

/// Key blocks whose inverted list is not as it should be.
std::int64_t countWrongLists(CudaDriver &driver, const BackwardTrial &trial,
                             Arguments &arguments) {
  std::vector<std::int32_t> indices(trial.keyIndices.size());
  std::vector<std::int32_t> counts(trial.keyCounts.size());
  driver.toHost(indices.data(), arguments.tensors["key_indices"].data,
                indices.size() * 4);
  driver.toHost(counts.data(), arguments.tensors["key_counts"].data,
                counts.size() * 4);
  std::int64_t wrong = 0;
  auto capacity = static_cast<std::ptrdiff_t>(trial.keyCapacity);
  for (std::size_t list = 0; list < counts.size(); ++list) {
    auto first = capacity * static_cast<std::ptrdiff_t>(list);
    wrong += counts[list] != trial.keyCounts[list] ||
             !std::equal(indices.begin() + first,
                         indices.begin() + first + counts[list],
                         trial.keyIndices.begin() + first);
  }
  return wrong;
}

/// Runs and checks attention_bwd_delta or invert_blocks.
bool checkOther(CudaDriver &driver, const std::string &kernel,
                const BackwardTrial &trial, Arguments &arguments,
                const Settings &settings, Launch &launch, std::string &report) {
  poisonOther(driver, trial, arguments);
  Launch::run(&launch);
  driver.synchronise();
  char text[64];
  if (kernel == "invert_blocks") {
    std::int64_t wrong = countWrongLists(driver, trial, arguments);
    if (launch.keeps)
      wrong += countWrongPlaces(driver, trial, arguments);
    std::snprintf(text, sizeof text, " wrong lists %lld;",
                  static_cast<long long>(wrong));
    report += text;
    return wrong == 0;
  }
  double error = checkDelta(driver, trial, arguments.tensors["delta"].data,
                            settings.number("dlse", 1) != 0);
  std::snprintf(text, sizeof text, " delta %.1e;", error);
  report += text;
  return error < kLargestDeltaError;
}

/// Of the products that the kernel's gradient needs: three of five for dq, or
/// one from what is kept, four for dk and dv.
double operationsOf(const std::string &kernel, const Trial &trial) {
  double product =
      2.0 * trial.visitedPairs() * static_cast<double>(trial.q.dim);
  if (!trial.hasLists && trial.causal)
    product /= 2;
  return kernel == "attention_bwd_q"        ? 3 * product
         : kernel == "attention_bwd_q_kept" ? product
                                            : 4 * product;
}

/// The case's settings for the variant that runs before or after its own.
Settings settingsOf(const Settings &settings, const std::string &variant) {
  Settings other = settings;
  other.words["variant"] = variant;
  other.words.erase("ctas");
  return other;
}

/// What the variants of a case are made for, all together.
Settings parametersOf(CudaDriver &driver, const std::string &folder,
                      const Variant &variant, const Settings &settings) {
  Settings parameters = variant.parameters;
  if (std::string before = settings.text("before", ""); !before.empty())
    parameters.words.merge(
        loadVariant(driver, folder, settingsOf(settings, before))
            .parameters.words);
  return parameters;
}

void prepareOthers(std::map<std::string, Launch> &others, CudaDriver &driver,
                   const std::string &folder, const Arguments &arguments,
                   const Settings &settings) {
  for (const char *when : {"before", "after"})
    if (std::string name = settings.text(when, ""); !name.empty()) {
      Settings other = settingsOf(settings, name);
      prepareLaunch(others[when], driver, loadVariant(driver, folder, other),
                    arguments, other);
    }
}

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// The launches of a whole backward pass.
struct Pass {
  std::string names;
  std::vector<std::string> kernels;
  std::deque<Launch> launches;
  bool keeps = false, isChecked = true;
};

void preparePass(Pass &pass, CudaDriver &driver, const std::string &folder,
                 const Arguments &arguments, const Settings &settings) {
  for (const std::string &name : split(pass.names, ',')) {
    const Settings own = settingsOf(settings, name);
    const Variant variant = loadVariant(driver, folder, own);
    pass.kernels.push_back(variant.description["entry"]);
    Launch *before = pass.launches.empty() ? nullptr : &pass.launches.back();
    Launch &launch = pass.launches.emplace_back();
    prepareLaunch(launch, driver, variant, arguments, own);
    launch.isEarly = before != nullptr;
    if (before)
      before->next = &launch;
    pass.keeps |= launch.keeps;
  }
}

/// What the first of all repeats left in the outputs, and how many outputs of
/// the others differ from it.
struct Repeated {
  std::vector<std::vector<std::uint16_t>> first;
  std::int64_t unequal = 0;
};

/// Runs with poisoned outputs, each time all of them.
Repeated repeat(CudaDriver &driver, const Arguments &arguments,
                const std::vector<Output> &outputs, std::int64_t count,
                const std::function<void()> &run) {
  auto start = [&](const Output &output) {
    return arguments.tensors.at(output.name).data -
           static_cast<DevicePointer>(output.tensor->first) * 2;
  };
  Repeated result;
  result.first.resize(outputs.size());
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Output &output : outputs)
      driver.fill(start(output), 0xFF, output.tensor->buffer.size() * 2);
    run();
    driver.synchronise();
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      std::vector<std::uint16_t> got(outputs[o].tensor->buffer.size());
      driver.toHost(got.data(), start(outputs[o]), got.size() * 2);
      if (i == 0)
        result.first[o] = got;
      result.unequal += got != result.first[o];
    }
  }
  return result;
}

/// Compares outputs with the reference; a report, and `passed` false where one
/// is wrong.
std::string checkOutputs(const std::vector<Output> &outputs,
                         const Repeated &repeated, const BackwardTrial &trial,
                         const Settings &settings, std::uint64_t seed,
                         bool &passed) {
  std::string report;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Outcome outcome;
    const Written written = writtenOf(*outputs[i].tensor, repeated.first[i]);
    outcome.unwritten += written.unwritten;
    outcome.outside += written.outside;
    checkRows(outputs[i], repeated.first[i], trial.forward.isBfloat16,
              settings.number("rows", 8), seed, outcome);
    passed &= outcome.passed(kLargestError);
    char text[256];
    std::snprintf(text, sizeof text,
                  " %s %.2e unwritten %lld outside %lld zeros %lld, worst %s;",
                  outputs[i].name.c_str(), outcome.error,
                  static_cast<long long>(outcome.unwritten),
                  static_cast<long long>(outcome.outside),
                  static_cast<long long>(outcome.wrongZeros),
                  outcome.worst.c_str());
    report += text;
  }
  return report;
}

/// Runs a pass and checks all that it writes; a report.
std::string checkPass(CudaDriver &driver, const BackwardTrial &trial,
                      Arguments &arguments, const Settings &settings,
                      std::uint64_t seed, Pass &pass, bool &passed) {
  std::vector<Output> outputs = outputsOf("attention_bwd_q", trial);
  for (Output &output : outputsOf("attention_bwd_kv", trial))
    outputs.push_back(output);
  const Repeated repeated =
      repeat(driver, arguments, outputs, settings.number("repeats", 1), [&] {
        poisonOther(driver, trial, arguments);
        if (pass.keeps)
          driver.fill(arguments.tensors["kept"].data, 0xFF, keptBytes(trial));
        Launch::run(&pass.launches.front());
      });
  std::string report =
      checkOutputs(outputs, repeated, trial, settings, seed, passed);
  char text[256];
  const double error =
      checkDelta(driver, trial, arguments.tensors["delta"].data,
                 settings.number("dlse", 1) != 0);
  std::int64_t wrong = 0;
  if (trial.forward.hasLists)
    wrong = countWrongLists(driver, trial, arguments);
  if (pass.keeps)
    wrong += countWrongPlaces(driver, trial, arguments);
  passed &= error < kLargestDeltaError && wrong == 0 && repeated.unequal == 0;
  std::snprintf(
      text, sizeof text, " delta %.1e; wrong lists %lld; unequal %lld |", error,
      static_cast<long long>(wrong), static_cast<long long>(repeated.unequal));
  return report + text;
}

bool runPasses(CudaDriver &driver, const std::string &folder,
               const std::string &line, const Settings &settings,
               std::uint64_t seed) {
  std::deque<Pass> passes;
  Settings parameters;
  for (const std::string &names : split(settings.text("passes", ""), '/')) {
    Pass &pass = passes.emplace_back();
    pass.isChecked = !names.starts_with('=');
    pass.names = names.substr(pass.isChecked ? 0 : 1);
    for (const std::string &name : split(pass.names, ','))
      parameters.words.merge(
          loadVariant(driver, folder, settingsOf(settings, name))
              .parameters.words);
  }
  const BackwardTrial trial = makeBackwardTrial(settings, parameters, seed);
  DeviceBuffers buffers(driver);
  Arguments arguments = makeArguments(trial, buffers, settings);
  std::printf("# %s\n", line.c_str());
  std::vector<Launch *> launches;
  bool allPassed = true;
  for (Pass &pass : passes) {
    preparePass(pass, driver, folder, arguments, settings);
    launches.push_back(&pass.launches.front());
    if (!pass.isChecked)
      continue;
    bool passed = true;
    std::string report =
        checkPass(driver, trial, arguments, settings, seed, pass, passed);
    std::printf("%s %s |%s\n", passed ? "ok  " : "FAIL", pass.names.c_str(),
                report.c_str());
    std::fflush(stdout);
    allPassed &= passed;
  }
  const int count = static_cast<int>(settings.number("time", 0));
  if (count == 0)
    return allPassed;
  const double operations = 10 * trial.forward.visitedPairs() *
                            static_cast<double>(trial.forward.q.dim);
  std::vector<std::string> times =
      timeInTurns(launches, operations, count,
                  static_cast<int>(settings.number("sustained", 0)));
  for (std::size_t i = 0; i < times.size(); ++i)
    std::printf("time %s |%s\n", passes[i].names.c_str(), times[i].c_str());
  std::fflush(stdout);
  return allPassed;
}

bool runCase(CudaDriver &driver, const std::string &folder,
             const std::string &line, std::uint64_t seed) {
  Settings settings = Settings::parse(line);
  if (settings.words.contains("passes"))
    return runPasses(driver, folder, line, settings, seed);
  Variant variant = loadVariant(driver, folder, settings);
  std::string kernel = variant.description["entry"];
  Settings parameters = parametersOf(driver, folder, variant, settings);
  BackwardTrial trial = makeBackwardTrial(settings, parameters, seed);
  DeviceBuffers buffers(driver);
  Arguments arguments = makeArguments(trial, buffers, settings);
  Launch launch;
  prepareLaunch(launch, driver, variant, arguments, settings);
  std::map<std::string, Launch> others;
  prepareOthers(others, driver, folder, arguments, settings);
  auto runAll = [&] {
    if (trial.keptBlocks > 0)
      driver.fill(arguments.tensors["kept"].data, 0xFF, keptBytes(trial));
    if (others.contains("before"))
      Launch::run(&others["before"]);
    Launch::run(&launch);
    if (others.contains("after"))
      Launch::run(&others["after"]);
  };
  bool passed = true;
  const std::vector<Output> outputs = outputsOf(kernel, trial);
  const Repeated repeated =
      repeat(driver, arguments, outputs,
             outputs.empty() ? 0 : settings.number("repeats", 1), runAll);
  std::string report =
      checkOutputs(outputs, repeated, trial, settings, seed, passed);
  if (outputs.empty())
    passed =
        checkOther(driver, kernel, trial, arguments, settings, launch, report);
  std::string timing;
  if (int count = static_cast<int>(settings.number("time", 0)))
    timing = timeLaunches(launch, operationsOf(kernel, trial.forward), count,
                          static_cast<int>(settings.number("sustained", 0)));
  passed &= repeated.unequal == 0;
  std::printf("%s %s |%s unequal %lld |%s\n", passed ? "ok  " : "FAIL",
              line.c_str(), report.c_str(),
              static_cast<long long>(repeated.unequal), timing.c_str());
  std::fflush(stdout);
  return passed;
}

} // namespace

int main(int argc, char **argv) {
  return runCases("check_backward", argc, argv, runCase);
}
