// SPDX-License-Identifier: Apache-2.0
//
// libcuda by dlopen. Types and numbers as in the driver API of CUDA 12 and 13.
#include "tests/gpu/kernels/CudaDriver.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace spargejit::gpu_trial {

namespace {

constexpr int kAttributeMultiprocessors = 16;
constexpr int kFunctionMaxDynamicShared = 8;
constexpr int kProgrammaticSerialisation = 6;
constexpr int kJitInfoBuffer = 3, kJitInfoBytes = 4, kJitErrorBuffer = 5,
              kJitErrorBytes = 6, kJitLogVerbose = 12;
constexpr int kTypeBytes = 0, kTypeFloat16 = 6, kTypeBfloat16 = 9;
constexpr int kPromotion256 = 3;

[[noreturn]] void stop(const std::string &message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

} // namespace

void *CudaDriver::symbol(const char *name) {
  void *found = dlsym(library_, name);
  if (!found)
    stop(std::string("libcuda has no ") + name);
  return found;
}

void CudaDriver::check(int result, const char *call) {
  if (result == 0)
    return;
  const char *text = nullptr;
  auto describe =
      reinterpret_cast<int (*)(int, const char **)>(symbol("cuGetErrorString"));
  describe(result, &text);
  stop(std::string(call) + ": " + (text ? text : "unknown error") + " (" +
       std::to_string(result) + ")");
}

CudaDriver::CudaDriver() {
  library_ = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library_)
    stop("libcuda.so.1 cannot be opened");
  check(reinterpret_cast<int (*)(unsigned)>(symbol("cuInit"))(0), "cuInit");
  reinterpret_cast<int (*)(int *)>(symbol("cuDriverGetVersion"))(
      &driverVersion_);
  int device = 0;
  check(
      reinterpret_cast<int (*)(int *, int)>(symbol("cuDeviceGet"))(&device, 0),
      "cuDeviceGet");
  char name[128] = "";
  reinterpret_cast<int (*)(char *, int, int)>(symbol("cuDeviceGetName"))(
      name, sizeof name, device);
  deviceName_ = name;
  check(reinterpret_cast<int (*)(int *, int, int)>(
            symbol("cuDeviceGetAttribute"))(&multiprocessors_,
                                            kAttributeMultiprocessors, device),
        "cuDeviceGetAttribute");
  void *context = nullptr;
  check(reinterpret_cast<int (*)(void **, int)>(
            symbol("cuDevicePrimaryCtxRetain"))(&context, device),
        "cuDevicePrimaryCtxRetain");
  check(reinterpret_cast<int (*)(void *)>(symbol("cuCtxSetCurrent"))(context),
        "cuCtxSetCurrent");
}

DevicePointer CudaDriver::allocate(std::size_t bytes) {
  DevicePointer pointer = 0;
  check(reinterpret_cast<int (*)(DevicePointer *, std::size_t)>(
            symbol("cuMemAlloc_v2"))(&pointer, bytes),
        "cuMemAlloc");
  return pointer;
}

void CudaDriver::release(DevicePointer pointer) {
  check(
      reinterpret_cast<int (*)(DevicePointer)>(symbol("cuMemFree_v2"))(pointer),
      "cuMemFree");
}

void CudaDriver::toDevice(DevicePointer to, const void *from,
                          std::size_t bytes) {
  check(reinterpret_cast<int (*)(DevicePointer, const void *, std::size_t)>(
            symbol("cuMemcpyHtoD_v2"))(to, from, bytes),
        "cuMemcpyHtoD");
}

void CudaDriver::toHost(void *to, DevicePointer from, std::size_t bytes) {
  check(reinterpret_cast<int (*)(void *, DevicePointer, std::size_t)>(
            symbol("cuMemcpyDtoH_v2"))(to, from, bytes),
        "cuMemcpyDtoH");
}

void CudaDriver::fill(DevicePointer pointer, unsigned char byte,
                      std::size_t bytes) {
  check(reinterpret_cast<int (*)(DevicePointer, unsigned char, std::size_t)>(
            symbol("cuMemsetD8_v2"))(pointer, byte, bytes),
        "cuMemsetD8");
}

void *CudaDriver::load(const std::string &image, const std::string &entry,
                       std::size_t sharedBytes, std::string &log) {
  std::vector<char> info(8192, 0), error(8192, 0);
  int options[] = {kJitInfoBuffer, kJitInfoBytes, kJitErrorBuffer,
                   kJitErrorBytes, kJitLogVerbose};
  void *values[] = {info.data(), reinterpret_cast<void *>(info.size()),
                    error.data(), reinterpret_cast<void *>(error.size()),
                    reinterpret_cast<void *>(1)};
  void *module = nullptr, *function = nullptr;
  int result = reinterpret_cast<int (*)(void **, const void *, unsigned, int *,
                                        void **)>(symbol("cuModuleLoadDataEx"))(
      &module, image.c_str(), 5, options, values);
  if (result != 0)
    std::fprintf(stderr, "%s\n", error.data());
  log = info.data();
  check(result, "cuModuleLoadDataEx");
  check(reinterpret_cast<int (*)(void **, void *, const char *)>(
            symbol("cuModuleGetFunction"))(&function, module, entry.c_str()),
        "cuModuleGetFunction");
  check(
      reinterpret_cast<int (*)(void *, int, int)>(symbol("cuFuncSetAttribute"))(
          function, kFunctionMaxDynamicShared, static_cast<int>(sharedBytes)),
      "cuFuncSetAttribute");
  return function;
}

TensorMapData CudaDriver::encode(const TensorMapRequest &request) {
  using Encode =
      int (*)(void *, int, std::uint32_t, void *, const std::uint64_t *,
              const std::uint64_t *, const std::uint32_t *,
              const std::uint32_t *, int, int, int, int);
  TensorMapData map{};
  std::vector<std::uint32_t> ones(request.sizes.size(), 1);
  int swizzle = request.swizzleBytes == 128  ? 3
                : request.swizzleBytes == 64 ? 2
                : request.swizzleBytes == 32 ? 1
                                             : 0;
  check(reinterpret_cast<Encode>(symbol("cuTensorMapEncodeTiled"))(
            &map,
            request.isBytes      ? kTypeBytes
            : request.isBfloat16 ? kTypeBfloat16
                                 : kTypeFloat16,
            static_cast<std::uint32_t>(request.sizes.size()),
            reinterpret_cast<void *>(request.data), request.sizes.data(),
            request.strideBytes.data(), request.box.data(), ones.data(),
            /*interleave=*/0, swizzle, kPromotion256, /*fill=*/0),
        "cuTensorMapEncodeTiled");
  return map;
}

void CudaDriver::launch(void *function, unsigned ctas, unsigned threads,
                        std::size_t sharedBytes,
                        std::vector<void *> &parameters, bool isEarly) {
  struct Attribute {
    int id;
    char padding[4];
    union {
      char bytes[64];
      int value;
    };
  } early{kProgrammaticSerialisation, {}, {}};
  early.value = 1;
  struct Config {
    unsigned ctas[3], threads[3], sharedBytes;
    void *stream;
    Attribute *attributes;
    unsigned attributeCount;
  } config{{ctas, 1, 1}, {threads, 1, 1}, static_cast<unsigned>(sharedBytes),
           nullptr,      &early,          isEarly ? 1U : 0U};
  using Launch = int (*)(const Config *, void *, void **, void **);
  check(reinterpret_cast<Launch>(symbol("cuLaunchKernelEx"))(
            &config, function, parameters.data(), nullptr),
        "cuLaunchKernelEx");
}

int CudaDriver::residentCtas(void *function, unsigned threads,
                             std::size_t sharedBytes) {
  int ctas = 0;
  check(reinterpret_cast<int (*)(int *, void *, int, std::size_t)>(
            symbol("cuOccupancyMaxActiveBlocksPerMultiprocessor"))(
            &ctas, function, static_cast<int>(threads), sharedBytes),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return ctas;
}

void CudaDriver::synchronise() {
  check(reinterpret_cast<int (*)()>(symbol("cuCtxSynchronize"))(),
        "cuCtxSynchronize");
}

std::vector<float> CudaDriver::time(int count, void (*run)(void *),
                                    void *context) {
  auto create =
      reinterpret_cast<int (*)(void **, unsigned)>(symbol("cuEventCreate"));
  auto record =
      reinterpret_cast<int (*)(void *, void *)>(symbol("cuEventRecord"));
  auto elapsed = reinterpret_cast<int (*)(float *, void *, void *)>(
      symbol("cuEventElapsedTime"));
  std::vector<void *> events(static_cast<std::size_t>(count) + 1);
  for (void *&event : events)
    check(create(&event, 0), "cuEventCreate");
  record(events[0], nullptr);
  for (int i = 0; i < count; ++i) {
    run(context);
    record(events[static_cast<std::size_t>(i) + 1], nullptr);
  }
  synchronise();
  std::vector<float> times(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < times.size(); ++i)
    check(elapsed(&times[i], events[i], events[i + 1]), "cuEventElapsedTime");
  return times;
}

} // namespace spargejit::gpu_trial
