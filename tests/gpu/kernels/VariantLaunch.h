// SPDX-License-Identifier: Apache-2.0
//
// A kernel variant that write_variants made, loaded, given its arguments by
// name, launched and timed.
#pragma once

#include "tests/gpu/kernels/CudaDriver.h"
#include "tests/gpu/kernels/Trial.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace spargejit::gpu_trial {

struct Variant {
  nlohmann::json description;
  Settings parameters;
  void *function = nullptr;
  std::string log;
};

/// Settings: variant=NAME in `folder`, image=ptx to let the driver assemble.
Variant loadVariant(CudaDriver &driver, const std::string &folder,
                    const Settings &settings);

/// A tensor argument; absent where `data` is 0.
struct Argument {
  DevicePointer data = 0;
  std::vector<std::int64_t> sizes, strides; // elements
  int elementBytes = 2; // as far as a tensor map asks: 2, or 1
};
/// `base` + the tensor's place in its buffer.
Argument describe(DevicePointer base, const HostTensor &tensor);
/// Elements of `sizes` one after the other.
Argument describePacked(DevicePointer data, std::vector<std::int64_t> sizes,
                        int elementBytes = 2);

struct Arguments {
  std::map<std::string, Argument> tensors;
  std::map<std::string, float> scalars;
  std::map<std::string, std::int64_t> indices{};
};

/// Everything one launch needs.
struct Launch {
  CudaDriver *driver = nullptr;
  void *function = nullptr;
  unsigned ctas = 0, threads = 0;
  std::size_t sharedBytes = 0;
  std::vector<std::int64_t> slots; // as in runtime/base/KernelSpec.h
  std::vector<TensorMapData> maps;
  std::vector<void *> parameters;
  bool keeps = false;     ///< the variant's parameter has_places
  Launch *next = nullptr; // launched right after
  bool isEarly = false;   // may start while the one before it runs

  Launch() = default;
  Launch(const Launch &) = delete;
  Launch &operator=(const Launch &) = delete;
  static void run(void *self);
};

/// Settings: ctas=N of a persistent kernel (else as many as a multiprocessor
/// takes at once, on each).
void prepareLaunch(Launch &launch, CudaDriver &driver, const Variant &variant,
                   const Arguments &arguments, const Settings &settings);

/// Bursts of about 4 ms with rests of 50 ms between them, which leave the card
/// at its full clock, until `count` launches have been timed; then, with
/// `sustained`, as many after that many milliseconds without a rest.
std::string timeLaunches(Launch &launch, double operations, int count,
                         int sustained);

/// Bursts of several launches in turns, each as above: a line for each.
std::vector<std::string> timeInTurns(const std::vector<Launch *> &launches,
                                     double operations, int count,
                                     int sustained);

/// main() of a program FOLDER CASE-LINE...: runs `runCase`, which says whether
/// one passed, on each line, with the seed of SPARGEJIT_TEST_SEED or a new one.
int runCases(const char *program, int argc, char **argv,
             bool (*runCase)(CudaDriver &driver, const std::string &folder,
                             const std::string &line, std::uint64_t seed));

} // namespace spargejit::gpu_trial
