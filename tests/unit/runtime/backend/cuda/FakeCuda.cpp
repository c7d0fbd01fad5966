// SPDX-License-Identifier: Apache-2.0
//
// The fake driver's functions. Each counts its calls and gives back a failure
// that the test has ordered; those that need a context fail without one.
#include "tests/unit/runtime/backend/cuda/FakeCuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

namespace {

using namespace spargejit::cuda;
using spargejit::unit::FakeCuda;
using spargejit::unit::FakeLaunch;
using spargejit::unit::FakeTensorMap;

constexpr int kInvalidValue = 1;
constexpr int kInvalidContext = 201;
constexpr int kNotFound = 500;
constexpr int kCaptureUnsupported = 900;

FakeCuda &state() {
  static FakeCuda theState;
  return theState;
}

char contexts[4]; // devices 0 to 2, and one that is nobody's

thread_local std::vector<void *> contextStack;
thread_local int captureMode = 0;

struct FakeFunction {
  std::string entry;
  std::vector<std::size_t> parameters;
};
struct FakeModule {
  std::map<std::string, std::unique_ptr<FakeFunction>> functions;
};

/// Counts the call; the result that was ordered for it, or success.
int begin(const char *symbol) {
  std::lock_guard lock(state().mutex);
  ++state().calls[symbol];
  auto &failures = state().failures[symbol];
  if (failures.empty())
    return result::kSuccess;
  int code = failures.front();
  failures.pop_front();
  return code;
}

int beginInContext(const char *symbol) {
  int code = begin(symbol);
  return code == result::kSuccess && contextStack.empty() ? kInvalidContext
                                                          : code;
}

/// Such calls break any capture, unless the thread has said otherwise.
int breakCaptures() {
  std::lock_guard lock(state().mutex);
  if (state().capturing.empty() || captureMode == kCaptureModeRelaxed)
    return result::kSuccess;
  state().captureBroken = true;
  return kCaptureUnsupported;
}

/// Of PTX: `.visible .entry NAME(`, then a line `.param ... name[BYTES]` each.
bool parsePtxLine(const std::string &line, FakeModule &module,
                  FakeFunction *&function) {
  constexpr std::string_view kEntry = ".visible .entry ";
  if (line.starts_with(kEntry)) {
    auto made = std::make_unique<FakeFunction>();
    made->entry = line.substr(kEntry.size());
    made->entry.resize(made->entry.find('('));
    function = made.get();
    module.functions[made->entry] = std::move(made);
    return true;
  }
  if (line.starts_with(")"))
    function = nullptr;
  const auto bracket = line.rfind('[');
  if (!function || !line.starts_with("\t.param ") ||
      bracket == std::string::npos)
    return false;
  function->parameters.push_back(std::stoul(line.substr(bracket + 1)));
  return true;
}

std::unique_ptr<FakeModule> parseModule(const std::string &image) {
  auto module = std::make_unique<FakeModule>();
  std::istringstream lines(image);
  FakeFunction *ptxFunction = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (parsePtxLine(line, *module, ptxFunction))
      continue;
    std::istringstream words(line);
    std::string mark, kind;
    auto function = std::make_unique<FakeFunction>();
    if (!(words >> mark >> kind >> function->entry) || mark != "//" ||
        kind != "entry")
      continue;
    for (std::size_t bytes = 0; words >> bytes;)
      function->parameters.push_back(bytes);
    module->functions[function->entry] = std::move(function);
  }
  return module;
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default"))) int

extern "C" __attribute__((visibility("default"))) FakeCuda *fakeCudaState() {
  return &state();
}
extern "C" __attribute__((visibility("default"))) void *
fakeCudaContext(int number) {
  return &contexts[number];
}

EXPORTED cuInit(unsigned) { return begin("cuInit"); }
EXPORTED cuDriverGetVersion(int *version) {
  *version = state().version;
  return begin("cuDriverGetVersion");
}
EXPORTED cuGetErrorName(int code, const char **name) {
  *name = code == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == 100 ? "CUDA_ERROR_NO_DEVICE"
          : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == 999 ? "CUDA_ERROR_UNKNOWN"
                        : nullptr;
  return *name ? result::kSuccess : kInvalidValue;
}
EXPORTED cuGetErrorString(int code, const char **text) {
  *text = code == 2     ? "out of memory"
          : code == 100 ? "no CUDA-capable device is detected"
          : code == 700 ? "an illegal memory access was encountered"
          : code == 999 ? "unknown error"
                        : nullptr;
  return *text ? result::kSuccess : kInvalidValue;
}
EXPORTED cuDeviceGetCount(int *count) {
  *count = state().deviceCount;
  return begin("cuDeviceGetCount");
}
EXPORTED cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return begin("cuDeviceGet");
}
EXPORTED cuDeviceGetName(char *name, int bytes, int device) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "Fake GPU %d", device);
  return begin("cuDeviceGetName");
}
EXPORTED cuDeviceGetAttribute(int *value, int attribute, int) {
  switch (attribute) {
  case device_attribute::kMultiprocessorCount:
    *value = state().multiprocessors;
    break;
  case device_attribute::kComputeCapabilityMajor:
    *value = state().capability / 10;
    break;
  case device_attribute::kComputeCapabilityMinor:
    *value = state().capability % 10;
    break;
  case device_attribute::kMaxSharedBytesPerBlock:
    *value = state().sharedBytes;
    break;
  default:
    return kInvalidValue;
  }
  return begin("cuDeviceGetAttribute");
}

EXPORTED cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = &contexts[device];
  return begin("cuDevicePrimaryCtxRetain");
}
EXPORTED cuCtxGetCurrent(void **context) {
  *context = contextStack.empty() ? nullptr : contextStack.back();
  return begin("cuCtxGetCurrent");
}
EXPORTED cuCtxPushCurrent_v2(void *context) {
  int code = begin("cuCtxPushCurrent_v2");
  if (code == result::kSuccess)
    contextStack.push_back(context);
  return code;
}
EXPORTED cuCtxPopCurrent_v2(void **context) {
  int code = beginInContext("cuCtxPopCurrent_v2");
  if (contextStack.empty())
    return code;
  *context = contextStack.back();
  contextStack.pop_back();
  return code;
}
EXPORTED cuCtxSynchronize() { return beginInContext("cuCtxSynchronize"); }

EXPORTED cuModuleLoadDataEx(void **module, const void *image, unsigned count,
                            int *options, void **values) {
  int code = beginInContext("cuModuleLoadDataEx");
  if (code == result::kSuccess)
    code = breakCaptures();
  std::lock_guard lock(state().mutex);
  state().lastImage = static_cast<const char *>(image);
  for (unsigned i = 0; i < count; ++i) {
    const std::string *log =
        options[i] == jit_option::kInfoLog    ? &state().infoLog
        : options[i] == jit_option::kErrorLog ? &state().errorLog
                                              : nullptr;
    if (log)
      std::strcpy(static_cast<char *>(values[i]), log->c_str());
    if (options[i] == jit_option::kOptimisationLevel)
      state().assemblerLevel =
          static_cast<int>(reinterpret_cast<std::uintptr_t>(values[i]));
  }
  if (code != result::kSuccess)
    return code;
  *module = parseModule(state().lastImage).release();
  ++state().modules;
  return code;
}
EXPORTED cuModuleUnload(void *module) {
  int code = beginInContext("cuModuleUnload");
  if (code == result::kSuccess)
    code = breakCaptures();
  std::lock_guard lock(state().mutex);
  delete static_cast<FakeModule *>(module);
  --state().modules;
  return code;
}
EXPORTED cuModuleGetFunction(void **function, void *module, const char *name) {
  int code = beginInContext("cuModuleGetFunction");
  auto &functions = static_cast<FakeModule *>(module)->functions;
  auto it = functions.find(name);
  if (code == result::kSuccess && it == functions.end())
    return kNotFound;
  if (code == result::kSuccess)
    *function = it->second.get();
  return code;
}
EXPORTED cuFuncGetAttribute(int *value, int attribute, void *) {
  switch (attribute) {
  case function_attribute::kRegisters:
    *value = state().registers;
    break;
  case function_attribute::kLocalBytes:
    *value = state().localBytes;
    break;
  case function_attribute::kSharedBytes:
    *value = state().staticSharedBytes;
    break;
  default:
    return kInvalidValue;
  }
  return beginInContext("cuFuncGetAttribute");
}
EXPORTED cuFuncSetAttribute(void *, int attribute, int value) {
  if (attribute != function_attribute::kMaxDynamicSharedBytes)
    return kInvalidValue;
  state().dynamicSharedBytes = value;
  return beginInContext("cuFuncSetAttribute");
}
EXPORTED cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *, int,
                                                     std::size_t) {
  *blocks = state().residentCtas;
  return beginInContext("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

EXPORTED cuLaunchKernelEx(const LaunchConfig *config, void *function,
                          void **parameters, void **extra) {
  int code = beginInContext("cuLaunchKernelEx");
  if (code != result::kSuccess)
    return code;
  bool isEarly = false;
  int sharedPercent = -1;
  for (unsigned i = 0; i < config->attributeCount; ++i) {
    const LaunchAttribute &attribute = config->attributes[i];
    if (attribute.id == launch_attribute::kSharedPercent)
      sharedPercent = attribute.value[0];
    else if (attribute.id == launch_attribute::kProgrammaticSerialisation &&
             attribute.value[0] == 1)
      isEarly = true;
    else
      return kInvalidValue;
  }
  if (extra)
    return kInvalidValue;
  const auto &callee = *static_cast<FakeFunction *>(function);
  FakeLaunch launch{callee.entry,
                    {config->gridX, config->gridY, config->gridZ},
                    {config->blockX, config->blockY, config->blockZ},
                    config->sharedBytes,
                    config->stream,
                    contextStack.back(),
                    {},
                    isEarly,
                    sharedPercent};
  for (std::size_t i = 0; i < callee.parameters.size(); ++i) {
    const auto *bytes = static_cast<const std::byte *>(parameters[i]);
    launch.parameters.emplace_back(bytes, bytes + callee.parameters[i]);
  }
  std::function<void(const FakeLaunch &)> onLaunch;
  {
    std::lock_guard lock(state().mutex);
    state().launches.push_back(launch);
    onLaunch = state().onLaunch;
  }
  if (onLaunch)
    onLaunch(launch);
  return code;
}

EXPORTED cuStreamIsCapturing(void *stream, int *status) {
  int code = beginInContext("cuStreamIsCapturing");
  std::lock_guard lock(state().mutex);
  // The legacy stream cannot be asked while another one is captured.
  if (code == result::kSuccess && !stream && !state().capturing.empty())
    return result::kStreamCaptureImplicit;
  *status = state().capturing.count(stream) ? 1 : kCaptureNone;
  return code;
}
EXPORTED cuStreamCreate(void **stream, unsigned flags) {
  int code = beginInContext("cuStreamCreate");
  if (code == result::kSuccess && flags != kStreamNonBlocking)
    return kInvalidValue;
  // Of no test's own streams.
  *stream = reinterpret_cast<void *>(std::uintptr_t{0xfa4e0000});
  return code;
}
EXPORTED cuStreamDestroy_v2(void *) {
  return beginInContext("cuStreamDestroy_v2");
}
EXPORTED cuStreamSynchronize(void *) {
  return beginInContext("cuStreamSynchronize");
}

EXPORTED cuMemAlloc_v2(DeviceAddress *address, std::size_t bytes) {
  int code = beginInContext("cuMemAlloc_v2");
  if (code == result::kSuccess)
    code = breakCaptures();
  if (code != result::kSuccess)
    return code;
  if (bytes == 0)
    return kInvalidValue;
  if (bytes > (std::size_t{1} << 40))
    return result::kOutOfMemory;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xff, bytes);
  std::lock_guard lock(state().mutex);
  state().allocations[memory] = bytes;
  *address = reinterpret_cast<std::uintptr_t>(memory);
  return code;
}
EXPORTED cuMemFree_v2(DeviceAddress address) {
  int code = beginInContext("cuMemFree_v2");
  if (code == result::kSuccess)
    code = breakCaptures();
  auto *memory = reinterpret_cast<void *>(static_cast<std::uintptr_t>(address));
  std::lock_guard lock(state().mutex);
  if (state().allocations.erase(memory) == 0)
    return kInvalidValue;
  std::free(memory);
  return code;
}
EXPORTED cuMemcpyHtoDAsync_v2(DeviceAddress to, const void *from,
                              std::size_t bytes, void *) {
  int code = beginInContext("cuMemcpyHtoDAsync_v2");
  if (code == result::kSuccess)
    std::memcpy(reinterpret_cast<void *>(static_cast<std::uintptr_t>(to)), from,
                bytes);
  return code;
}
EXPORTED cuMemcpyDtoHAsync_v2(void *to, DeviceAddress from, std::size_t bytes,
                              void *) {
  int code = beginInContext("cuMemcpyDtoHAsync_v2");
  if (code == result::kSuccess)
    std::memcpy(to, reinterpret_cast<void *>(static_cast<std::uintptr_t>(from)),
                bytes);
  return code;
}
EXPORTED cuMemsetD2D32Async(DeviceAddress to, std::size_t pitch, unsigned value,
                            std::size_t width, std::size_t height, void *) {
  int code = beginInContext("cuMemsetD2D32Async");
  if (code != result::kSuccess || (height > 1 && pitch < 4 * width))
    return code == result::kSuccess ? kInvalidValue : code;
  for (std::size_t row = 0; row < height; ++row)
    std::fill_n(reinterpret_cast<unsigned *>(
                    static_cast<std::uintptr_t>(to + row * pitch)),
                width, value);
  return code;
}
EXPORTED cuMemsetD2D8Async(DeviceAddress to, std::size_t pitch,
                           unsigned char value, std::size_t width,
                           std::size_t height, void *) {
  int code = beginInContext("cuMemsetD2D8Async");
  if (code != result::kSuccess || (height > 1 && pitch < width))
    return code == result::kSuccess ? kInvalidValue : code;
  for (std::size_t row = 0; row < height; ++row)
    std::memset(
        reinterpret_cast<void *>(static_cast<std::uintptr_t>(to + row * pitch)),
        value, width);
  return code;
}
EXPORTED cuMemsetD32Async(DeviceAddress to, unsigned value, std::size_t count,
                          void *stream) {
  int code = beginInContext("cuMemsetD32Async");
  {
    std::lock_guard lock(state().mutex);
    state().capturedFills += static_cast<int>(state().capturing.count(stream));
  }
  if (code == result::kSuccess)
    std::fill_n(reinterpret_cast<unsigned *>(static_cast<std::uintptr_t>(to)),
                count, value);
  return code;
}
EXPORTED cuThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(*mode, captureMode);
  return begin("cuThreadExchangeStreamCaptureMode");
}

// An old driver has none of the following.
#ifndef SPARGEJIT_OLD_FAKE_CUDA
EXPORTED cuStreamGetId(void *stream, unsigned long long *id) {
  int code = beginInContext("cuStreamGetId");
  std::lock_guard lock(state().mutex);
  if (code == result::kSuccess && state().capturing.count(stream)) {
    state().captureBroken = true;
    return kCaptureUnsupported;
  }
  auto it = state().streamIds.find(stream);
  *id = it != state().streamIds.end()
            ? it->second
            : 1 + reinterpret_cast<std::uintptr_t>(stream);
  return code;
}
EXPORTED cuFuncLoad(void *) { return beginInContext("cuFuncLoad"); }
EXPORTED cuFuncGetParamInfo(void *function, std::size_t index, std::size_t *,
                            std::size_t *size) {
  const auto &parameters = static_cast<FakeFunction *>(function)->parameters;
  if (index >= parameters.size())
    return kInvalidValue;
  *size = parameters[index];
  return beginInContext("cuFuncGetParamInfo");
}
EXPORTED
cuTensorMapEncodeTiled(TensorMapBits *map, int elementType, std::uint32_t rank,
                       void *address, const std::uint64_t *sizes,
                       const std::uint64_t *strides, const std::uint32_t *box,
                       const std::uint32_t *elementStrides, int interleave,
                       int swizzle, int promotion, int fill) {
  int code = begin("cuTensorMapEncodeTiled");
  if (code != result::kSuccess)
    return code;
  FakeTensorMap content{};
  content.address = reinterpret_cast<std::uintptr_t>(address);
  bool good = content.address % 16 == 0 && rank >= 1 && rank <= 4 &&
              interleave == 0 && fill == 0;
  for (std::uint32_t i = 0; i < rank; ++i) {
    content.sizes[i] = sizes[i];
    good &= sizes[i] > 0 && sizes[i] <= std::uint64_t{1} << 32;
    good &= box[i] > 0 && box[i] <= 256 && elementStrides[i] == 1;
    if (i + 1 == rank)
      continue;
    content.strides[i] = strides[i];
    good &= strides[i] % 16 == 0 && strides[i] < std::uint64_t{1} << 40;
  }
  if (!good)
    return kInvalidValue;
  content.boxColumns = static_cast<std::uint16_t>(box[0]);
  content.boxRows = static_cast<std::uint16_t>(rank > 1 ? box[1] : 1);
  content.boxHeads = static_cast<std::uint16_t>(rank > 2 ? box[2] : 1);
  content.boxBatch = static_cast<std::uint16_t>(rank > 3 ? box[3] : 1);
  content.elementType = static_cast<std::uint8_t>(elementType);
  content.rank = static_cast<std::uint8_t>(rank);
  content.swizzle = static_cast<std::uint8_t>(swizzle);
  content.promotion = static_cast<std::uint8_t>(promotion);
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, &content, sizeof content);
  return code;
}
#endif
