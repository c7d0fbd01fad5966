// SPDX-License-Identifier: Apache-2.0
//
// SystemProbe.h. Libraries are opened and asked for their version; no CUDA
// context is made.
#include "runtime/tools/spargejit/SystemProbe.h"

#include "runtime/backend/cuda/Driver.h"
#include "runtime/base/Environment.h"
#include "runtime/jit/Nvrtc.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <thread>

namespace spargejit::tool {

namespace {

constexpr std::array<const char *, 16> kFeatures = {
    "avx",         "fma",         "f16c",        "avx2",
    "avx_vnni",    "avx512f",     "avx512bw",    "avx512vl",
    "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
    "amx_bf16",    "amx_int8",    "asimd",       "sve"};

} // namespace

ProcessorInfo probeProcessor() {
  ProcessorInfo info;
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    std::size_t colon = line.find(':');
    if (colon == std::string::npos)
      continue;
    std::string key =
        line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    std::string value =
        colon + 2 <= line.size() ? line.substr(colon + 2) : std::string();
    if (key == "model name" && info.name.empty())
      info.name = value;
    if ((key == "flags" || key == "Features") && info.features.empty()) {
      std::istringstream words(value);
      for (std::string word; words >> word;)
        if (std::find(kFeatures.begin(), kFeatures.end(), word) !=
            kFeatures.end())
          info.features.push_back(word);
    }
  }
  return info;
}

int processorCount() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return CPU_COUNT(&set);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

LibraryInfo probeCudaDriver() {
  LibraryInfo info;
  info.name = "libcuda";
  const Result<Environment> &settings = environment();
  if (!settings) {
    info.sought = false;
    info.reason = "not looked for, since a setting is invalid";
    return info;
  }
  auto driver = cuda::Driver::open(settings->cudaDriver);
  if (!driver) {
    info.reason = driver.status().message();
    return info;
  }
  info.found = true;
  info.path = (*driver)->path();
  int devices = (*driver)->deviceCount();
  info.version = fmt::format("CUDA {}, {} device{}", (*driver)->versionText(),
                             devices, devices == 1 ? "" : "s");
  return info;
}

LibraryInfo probeNvrtc() {
  LibraryInfo info;
  info.name = "libnvrtc";
  const Result<Environment> &settings = environment();
  if (!settings) {
    info.sought = false;
    info.reason = "not looked for, since a setting is invalid";
    return info;
  }
  auto nvrtc = jit::Nvrtc::open(*settings);
  if (!nvrtc) {
    info.reason = nvrtc.status().message();
    return info;
  }
  info.found = true;
  info.path = (*nvrtc)->path();
  info.version = "version " + (*nvrtc)->version();
  return info;
}

} // namespace spargejit::tool
