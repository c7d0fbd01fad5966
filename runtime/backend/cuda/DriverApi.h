// SPDX-License-Identifier: Apache-2.0
//
// The part of the CUDA driver's interface that this library calls, declared by
// hand from its documentation (CUDA Driver API 13.0), so that a build needs no
// toolkit. Values and layouts are the driver's binary interface.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spargejit::cuda {

// CUresult, CUdevice, CUdeviceptr and the handles, which are pointers to
// structures that nobody sees.
using ResultCode = int;
using DeviceNumber = int;
using DeviceAddress = unsigned long long;
struct ContextTag;
struct ModuleTag;
struct FunctionTag;
struct StreamTag;
using ContextHandle = ContextTag *;
using ModuleHandle = ModuleTag *;
using FunctionHandle = FunctionTag *;
using StreamHandle = StreamTag *;

/// CUresult: those that are told apart.
namespace result {
inline constexpr ResultCode kSuccess = 0;
inline constexpr ResultCode kOutOfMemory = 2;
inline constexpr ResultCode kDeinitialized = 4;
inline constexpr ResultCode kNoDevice = 100;
inline constexpr ResultCode kInvalidImage = 200;
inline constexpr ResultCode kNoBinaryForGpu = 209;
inline constexpr ResultCode kEccUncorrectable = 214;
inline constexpr ResultCode kInvalidPtx = 218;
inline constexpr ResultCode kNvlinkUncorrectable = 220;
inline constexpr ResultCode kJitCompilerNotFound = 221;
inline constexpr ResultCode kUnsupportedPtxVersion = 222;
inline constexpr ResultCode kContained = 226;
inline constexpr ResultCode kIllegalAddress = 700;
inline constexpr ResultCode kLaunchOutOfResources = 701;
inline constexpr ResultCode kLaunchTimeout = 702;
inline constexpr ResultCode kAssert = 710;
inline constexpr ResultCode kHardwareStackError = 714;
inline constexpr ResultCode kIllegalInstruction = 715;
inline constexpr ResultCode kMisalignedAddress = 716;
inline constexpr ResultCode kInvalidAddressSpace = 717;
inline constexpr ResultCode kInvalidPc = 718;
inline constexpr ResultCode kLaunchFailed = 719;
inline constexpr ResultCode kStreamCaptureImplicit = 906;
} // namespace result

/// CUdevice_attribute.
namespace device_attribute {
inline constexpr int kMultiprocessorCount = 16;
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kMaxSharedBytesPerBlock = 97; // opt-in
} // namespace device_attribute

/// CUfunction_attribute.
namespace function_attribute {
inline constexpr int kMaxThreadsPerBlock = 0;
inline constexpr int kSharedBytes = 1;
inline constexpr int kLocalBytes = 3;
inline constexpr int kRegisters = 4;
inline constexpr int kMaxDynamicSharedBytes = 8;
} // namespace function_attribute

/// CUjit_option.
namespace jit_option {
inline constexpr int kInfoLog = 3;
inline constexpr int kInfoLogBytes = 4;
inline constexpr int kErrorLog = 5;
inline constexpr int kErrorLogBytes = 6;
inline constexpr int kOptimisationLevel = 7;
inline constexpr int kLogVerbose = 12;
} // namespace jit_option

/// CUstreamCaptureStatus and CUstreamCaptureMode.
inline constexpr int kCaptureNone = 0;
inline constexpr int kCaptureModeRelaxed = 2;

/// CU_STREAM_NON_BLOCKING: the stream and the legacy stream do not wait for
/// each other.
inline constexpr unsigned kStreamNonBlocking = 1;

/// CU_STREAM_PER_THREAD: another stream for each thread, behind one handle.
inline constexpr std::uintptr_t kStreamPerThread = 2;

/// CUtensorMap: 128 bytes that only the driver reads and writes.
struct alignas(64) TensorMapBits {
  std::uint64_t opaque[16];
};

/// The enumerations of cuTensorMapEncodeTiled.
namespace tensor_map {
inline constexpr int kUint8 = 0;
inline constexpr int kFloat16 = 6;
inline constexpr int kFloat32 = 7;
inline constexpr int kBFloat16 = 9;
inline constexpr int kInterleaveNone = 0;
inline constexpr int kSwizzleNone = 0;
inline constexpr int kSwizzle32 = 1;
inline constexpr int kSwizzle64 = 2;
inline constexpr int kSwizzle128 = 3;
inline constexpr int kPromotion256 = 3;
inline constexpr int kFillZeros = 0;
} // namespace tensor_map

/// CUlaunchAttribute: an identifier, and a value in 64 bytes.
struct LaunchAttribute {
  int id;
  alignas(8) int value[16];
};
static_assert(sizeof(LaunchAttribute) == 72);

/// CUlaunchAttributeID.
namespace launch_attribute {
inline constexpr int kProgrammaticSerialisation = 6;
inline constexpr int kSharedPercent = 14; ///< of what L1 and it share
} // namespace launch_attribute

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  StreamHandle stream;
  const LaunchAttribute *attributes;
  unsigned attributeCount;
};

/// Every function that is looked up: X(member, symbol, parameters).
#define SPARGEJIT_CUDA_FUNCTIONS(X)                                            \
  X(init, "cuInit", (unsigned flags))                                          \
  X(driverVersion, "cuDriverGetVersion", (int *version))                       \
  X(errorName, "cuGetErrorName", (ResultCode code, const char **name))         \
  X(errorText, "cuGetErrorString", (ResultCode code, const char **text))       \
  X(deviceCount, "cuDeviceGetCount", (int *count))                             \
  X(deviceGet, "cuDeviceGet", (DeviceNumber * device, int ordinal))            \
  X(deviceName, "cuDeviceGetName",                                             \
    (char *name, int bytes, DeviceNumber device))                              \
  X(deviceAttribute, "cuDeviceGetAttribute",                                   \
    (int *value, int attribute, DeviceNumber device))                          \
  X(primaryContextRetain, "cuDevicePrimaryCtxRetain",                          \
    (ContextHandle * context, DeviceNumber device))                            \
  X(contextCurrent, "cuCtxGetCurrent", (ContextHandle * context))              \
  X(contextPush, "cuCtxPushCurrent_v2", (ContextHandle context))               \
  X(contextPop, "cuCtxPopCurrent_v2", (ContextHandle * context))               \
  X(contextSynchronize, "cuCtxSynchronize", ())                                \
  X(moduleLoad, "cuModuleLoadDataEx",                                          \
    (ModuleHandle * module, const void *image, unsigned optionCount,           \
     int *options, void **values))                                             \
  X(moduleUnload, "cuModuleUnload", (ModuleHandle module))                     \
  X(moduleFunction, "cuModuleGetFunction",                                     \
    (FunctionHandle * function, ModuleHandle module, const char *name))        \
  X(functionAttribute, "cuFuncGetAttribute",                                   \
    (int *value, int attribute, FunctionHandle function))                      \
  X(functionSetAttribute, "cuFuncSetAttribute",                                \
    (FunctionHandle function, int attribute, int value))                       \
  X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                  \
    (int *blocks, FunctionHandle function, int threads,                        \
     std::size_t sharedBytes))                                                 \
  X(launch, "cuLaunchKernelEx",                                                \
    (const LaunchConfig *config, FunctionHandle function, void **parameters,   \
     void **extra))                                                            \
  X(streamCreate, "cuStreamCreate", (StreamHandle * stream, unsigned flags))   \
  X(streamDestroy, "cuStreamDestroy_v2", (StreamHandle stream))                \
  X(streamIsCapturing, "cuStreamIsCapturing",                                  \
    (StreamHandle stream, int *status))                                        \
  X(streamId, "cuStreamGetId", (StreamHandle stream, unsigned long long *id))  \
  X(streamSynchronize, "cuStreamSynchronize", (StreamHandle stream))           \
  X(exchangeCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *mode))     \
  X(memoryAllocate, "cuMemAlloc_v2",                                           \
    (DeviceAddress * address, std::size_t bytes))                              \
  X(memoryFree, "cuMemFree_v2", (DeviceAddress address))                       \
  X(copyToHost, "cuMemcpyDtoHAsync_v2",                                        \
    (void *to, DeviceAddress from, std::size_t bytes, StreamHandle stream))    \
  X(copyFromHost, "cuMemcpyHtoDAsync_v2",                                      \
    (DeviceAddress to, const void *from, std::size_t bytes,                    \
     StreamHandle stream))                                                     \
  X(fillWords, "cuMemsetD32Async",                                             \
    (DeviceAddress to, unsigned value, std::size_t count,                      \
     StreamHandle stream))                                                     \
  X(fillWordRows, "cuMemsetD2D32Async",                                        \
    (DeviceAddress to, std::size_t pitch, unsigned value, std::size_t width,   \
     std::size_t height, StreamHandle stream))                                 \
  X(fillByteRows, "cuMemsetD2D8Async",                                         \
    (DeviceAddress to, std::size_t pitch, unsigned char value,                 \
     std::size_t width, std::size_t height, StreamHandle stream))              \
  X(encodeTensorMap, "cuTensorMapEncodeTiled",                                 \
    (TensorMapBits * map, int elementType, std::uint32_t rank, void *address,  \
     const std::uint64_t *sizes, const std::uint64_t *strides,                 \
     const std::uint32_t *box, const std::uint32_t *elementStrides,            \
     int interleave, int swizzle, int promotion, int fill))

/// Those that older drivers lack; null there.
#define SPARGEJIT_CUDA_OPTIONAL_FUNCTIONS(X)                                   \
  X(functionLoad, "cuFuncLoad", (FunctionHandle function))                     \
  X(functionParameter, "cuFuncGetParamInfo",                                   \
    (FunctionHandle function, std::size_t index, std::size_t *offset,          \
     std::size_t *size))

/// The driver's functions, null until Driver::open() has filled them.
struct DriverFunctions {
#define SPARGEJIT_DECLARE(member, symbol, parameters)                          \
  ResultCode(*member) parameters = nullptr;
  SPARGEJIT_CUDA_FUNCTIONS(SPARGEJIT_DECLARE)
  SPARGEJIT_CUDA_OPTIONAL_FUNCTIONS(SPARGEJIT_DECLARE)
#undef SPARGEJIT_DECLARE
};

} // namespace spargejit::cuda
