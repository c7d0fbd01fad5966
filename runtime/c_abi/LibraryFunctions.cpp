// SPDX-License-Identifier: Apache-2.0
//
// The functions of spargejit/c.h about the library as a whole, and the defaults
// of a config.
#include "runtime/c_abi/Conversions.h"
#include "runtime/c_abi/Errors.h"
#include "spargejit/library.h"

#include <algorithm>
#include <cstring>
#include <string>

using namespace spargejit;
using namespace spargejit::c_abi;

namespace {

SpargejitConfig defaults() {
  const AttentionConfig config;
  SpargejitConfig result{};
  result.structSize = sizeof result;
  result.topK = config.topK;
  result.topP = config.topP;
  result.maskBlockQ = config.maskBlockQ;
  result.maskBlockKv = config.maskBlockKv;
  return result;
}

} // namespace

std::int32_t spargejit_abi_version(void) { return SPARGEJIT_ABI_VERSION; }

const char *spargejit_version(void) { return version(); }

std::int32_t spargejit_has_compiler(void) { return hasCompiler() ? 1 : 0; }

SpargejitStatus spargejit_get_counters(SpargejitCounters *to) {
  return guarded([&] {
    const Counters now = counters();
    const SpargejitCounters known{
        sizeof(SpargejitCounters), now.kernelsCompiled, now.kernelCacheHits,
        now.kernelsFromDisk,       now.plansMade,       now.bytesAllocated,
        now.compileMilliseconds};
    return writeVersioned("counters", &known, to, sizeof known);
  });
}

void spargejit_set_log_callback(void (*callback)(void *, std::int32_t,
                                                 const char *),
                                void *user) {
  if (!callback)
    return setLogCallback({});
  setLogCallback([callback, user](LogLevel level, const std::string &line) {
    callback(user, static_cast<std::int32_t>(level), line.c_str());
  });
}

SpargejitStatus spargejit_init_config(SpargejitConfig *config, size_t size) {
  return guarded([&]() -> Status {
    constexpr StructSizes sizes = kSizesOf<SpargejitConfig>;
    if (!config)
      return {ErrorCode::InvalidArgument,
              "config: expected a struct, got null"};
    if (size < sizes.first || size > kMaxStructSize)
      return {ErrorCode::InvalidArgument, "size: expected sizeof the struct, " +
                                              std::to_string(sizes.first) +
                                              " or more, got " +
                                              std::to_string(size)};
    // What a later version's struct has more is not given.
    std::memset(static_cast<void *>(config), 0, size);
    const SpargejitConfig known = defaults();
    std::memcpy(static_cast<void *>(config), &known,
                std::min(size, sizes.known));
    config->structSize = size;
    return {};
  });
}

SpargejitStatus spargejit_synchronise(std::int32_t deviceKind,
                                      std::int32_t deviceOrdinal) {
  return guarded([&]() -> Status {
    if (deviceKind != SpargejitCpu && deviceKind != SpargejitCuda)
      return {ErrorCode::InvalidArgument,
              "deviceKind: expected 0 for the CPU or 1 for CUDA, got " +
                  std::to_string(deviceKind)};
    return synchronise({static_cast<DeviceKind>(deviceKind), deviceOrdinal});
  });
}
