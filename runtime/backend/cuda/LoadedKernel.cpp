// SPDX-License-Identifier: Apache-2.0
//
// Step 8 of 9 in the life of a call (runtime/README.md): modules and launches.
#include "runtime/backend/cuda/LoadedKernel.h"

#include "runtime/backend/cuda/TensorMaps.h"
#include "runtime/base/AlignedMemory.h"
#include "runtime/base/Log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>

namespace spargejit::cuda {

namespace {

/// Room for the assembler's messages; a report of one kernel takes some 500
/// bytes, and what does not fit is cut off by the driver.
constexpr std::size_t kLogBytes = 64 << 10;

/// A descriptor that this thread has made, and what of. Calls in a loop have
/// the same tensors again, and the driver takes its time for each.
struct EncodedMap {
  std::uint64_t kernel = 0;
  std::array<std::int64_t, 1 + 2 * TensorView::kMaxRank> slots{};
  TensorMapBits bits;
};
/// Kernels that have a row of them: those of a pass and of the pass back.
constexpr std::size_t kEncodedRows = 4;

std::uint64_t nextSerial() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

/// The version that PTX text says it needs, "8.6", or "".
std::string ptxVersionOf(const std::string &image) {
  constexpr const char *kDirective = ".version ";
  std::size_t at = image.find(kDirective);
  if (at == std::string::npos)
    return "";
  at += std::strlen(kDirective);
  return image.substr(at, image.find_first_not_of("0123456789.", at) - at);
}

/// Why an image did not load.
Status loadFailure(const Driver &driver, ResultCode code,
                   const std::string &image, const std::string &errors) {
  std::string text = driver.errorText(code);
  if (!errors.empty())
    text += "\n" + errors;
  switch (code) {
  case result::kUnsupportedPtxVersion:
    return Status(ErrorCode::Unsupported,
                  fmt::format("expected a driver that knows PTX {}, got one of "
                              "CUDA {} ({}): install a newer driver, or let "
                              "SPARGEJIT_PTXAS name a ptxas program. {}",
                              ptxVersionOf(image), driver.versionText(),
                              driver.path(), text));
  case result::kJitCompilerNotFound:
    return Status(ErrorCode::Unsupported,
                  "the driver came without its assembler "
                  "(libnvidia-ptxjitcompiler): install it, or let "
                  "SPARGEJIT_PTXAS name a ptxas program. " +
                      text);
  case result::kInvalidImage:
  case result::kNoBinaryForGpu:
  case result::kInvalidPtx:
    return Status(ErrorCode::CompileFailed,
                  "cuModuleLoadDataEx refused the code: " + text);
  default:
    return driver.check(code, "cuModuleLoadDataEx");
  }
}

} // namespace

LoadedKernel::LoadedKernel(const DeviceContext &device, const LaunchInfo &info)
    : device_(device), serial_(info.tensorMaps.empty() ? 0 : nextSerial()),
      info_(info), sharesMultiprocessors_(
                       std::any_of(info.arguments.begin(), info.arguments.end(),
                                   [](const KernelArgument &argument) {
                                     return argument.name == "progress";
                                   })) {}

Result<std::shared_ptr<const LoadedKernel>>
LoadedKernel::load(const DeviceContext &device, const LaunchInfo &info,
                   const std::string &image, std::string *log) {
  if (info.tensorMaps.size() > kMaxTensorMaps)
    return Status(ErrorCode::Internal,
                  fmt::format("{}: expected at most {} tensor maps, got {}",
                              info.entryName, kMaxTensorMaps,
                              info.tensorMaps.size()));
  CurrentContext current(device);
  if (!current.status().ok())
    return current.status();
  RelaxedCapture relaxed(device.driver());
  std::shared_ptr<LoadedKernel> kernel(new LoadedKernel(device, info));
  Status status = kernel->loadModule(image, log);
  if (status.ok())
    status = kernel->findEntry();
  if (status.ok())
    status = kernel->checkParameters();
  if (status.ok())
    status = kernel->readResources();
  if (!status.ok())
    return status;
  return std::shared_ptr<const LoadedKernel>(std::move(kernel));
}

LoadedKernel::~LoadedKernel() {
  if (!module_)
    return;
  CurrentContext current(device_);
  RelaxedCapture relaxed(device_.driver());
  ResultCode code = device_.driver().functions().moduleUnload(module_);
  // At the end of a process the driver may have gone first.
  if (code != result::kSuccess && code != result::kDeinitialized)
    logFormatted(LogLevel::Warning, "{}: cuModuleUnload: {}", info_.entryName,
                 device_.driver().errorText(code));
}

Status LoadedKernel::loadModule(const std::string &image, std::string *log) {
  std::string messages(kLogBytes, '\0');
  std::string errors(kLogBytes, '\0');
  std::array options{jit_option::kInfoLog,           jit_option::kInfoLogBytes,
                     jit_option::kErrorLog,          jit_option::kErrorLogBytes,
                     jit_option::kOptimisationLevel, jit_option::kLogVerbose};
  const auto level = static_cast<std::uintptr_t>(info_.assemblerLevel);
  // Numbers are passed in the place of pointers.
  auto number = [](std::uintptr_t value) {
    return std::bit_cast<void *>(value);
  };
  std::array<void *, options.size()> values{messages.data(), number(kLogBytes),
                                            errors.data(),   number(kLogBytes),
                                            number(level),   number(1)};
  const Driver &driver = device_.driver();
  ResultCode code = driver.functions().moduleLoad(
      &module_, image.c_str(), static_cast<unsigned>(options.size()),
      options.data(), values.data());
  if (code != result::kSuccess) {
    module_ = nullptr;
    return loadFailure(driver, code, image, errors.c_str());
  }
  if (log)
    *log = messages.c_str();
  return Status();
}

Status LoadedKernel::findEntry() {
  const Driver &driver = device_.driver();
  const DriverFunctions &functions = driver.functions();
  Status status = driver.check(
      functions.moduleFunction(&function_, module_, info_.entryName.c_str()),
      "cuModuleGetFunction");
  if (!status.ok())
    return std::move(status).withContext("entry " + info_.entryName);
  // Since CUDA 11.7 a function may be loaded only when it is first launched,
  // which a captured launch must not do.
  return functions.functionLoad
             ? driver.check(functions.functionLoad(function_), "cuFuncLoad")
             : Status();
}

Status LoadedKernel::checkParameters() const {
  const DriverFunctions &functions = device_.driver().functions();
  if (!functions.functionParameter)
    return Status();
  std::vector<std::size_t> expected{
      sizeof(std::int64_t) * static_cast<std::size_t>(info_.slotCount())};
  expected.resize(1 + info_.tensorMaps.size(), sizeof(TensorMapBits));
  std::vector<std::size_t> found;
  std::size_t offset = 0;
  std::size_t size = 0;
  // One more than there should be, which must fail.
  for (std::size_t i = 0; i <= expected.size(); ++i)
    if (functions.functionParameter(function_, i, &offset, &size) ==
        result::kSuccess)
      found.push_back(size);
  if (found == expected)
    return Status();
  return Status(ErrorCode::Internal,
                fmt::format("{}: expected parameters of [{}] bytes in the "
                            "code, got [{}]",
                            info_.entryName, fmt::join(expected, ", "),
                            fmt::join(found, ", ")));
}

Status LoadedKernel::readResources() {
  const Driver &driver = device_.driver();
  const DriverFunctions &functions = driver.functions();
  for (auto [attribute, value] :
       {std::pair(function_attribute::kRegisters, &resources_.registers),
        std::pair(function_attribute::kLocalBytes, &resources_.localBytes),
        std::pair(function_attribute::kSharedBytes, &resources_.sharedBytes)})
    if (Status status = driver.check(
            functions.functionAttribute(value, attribute, function_),
            "cuFuncGetAttribute");
        !status)
      return status;
  if (info_.sharedBytes + resources_.sharedBytes > device_.sharedBytes())
    return Status(ErrorCode::OutOfResources,
                  fmt::format("{}: expected at most {} bytes of shared memory "
                              "a CTA on {}, got {} dynamic and {} static",
                              info_.entryName, device_.sharedBytes(),
                              device_.name(), info_.sharedBytes,
                              resources_.sharedBytes));
  // What follows from a call may be as much as there is.
  const std::int64_t most =
      info_.dynamicScratch.empty()
          ? info_.sharedBytes
          : device_.sharedBytes() - resources_.sharedBytes;
  if (Status status = driver.check(
          functions.functionSetAttribute(
              function_, function_attribute::kMaxDynamicSharedBytes,
              static_cast<int>(most)),
          "cuFuncSetAttribute");
      !status)
    return status;
  if (Status status =
          driver.check(functions.occupancy(
                           &resources_.residentCtas, function_, info_.threads,
                           static_cast<std::size_t>(info_.sharedBytes)),
                       "cuOccupancyMaxActiveBlocksPerMultiprocessor");
      !status)
    return status;
  if (resources_.residentCtas > 0)
    return Status();
  return Status(ErrorCode::OutOfResources,
                fmt::format("{}: a CTA of {} threads with {} registers each "
                            "and {} bytes of shared memory does not fit a "
                            "multiprocessor of {}",
                            info_.entryName, info_.threads,
                            resources_.registers, info_.sharedBytes,
                            device_.name()));
}

/// A multiprocessor divides its memory into L1 and shared memory anew only
/// while nothing runs on it, so that launches that share one want the same
/// division: 164 of 228 KiB, which leaves room for the loads under way, and
/// all where two CTAs of one of them need it: 1 077 for 1 292 us at 40 x 75 600
/// and key blocks of 16 (bench/results/2026-11-30-h200-selection.md).
static bool needsAllShared(unsigned sharedBytes) {
  constexpr unsigned kUsualBytes = 164 << 10, kReservedBytes = 1 << 10;
  return 2 * (sharedBytes + kReservedBytes) > kUsualBytes;
}

bool LoadedKernel::wantsAllShared(const std::int64_t *slots) const {
  auto shared = sharedBytes(slots);
  return sharesMultiprocessors_ && shared.ok() && needsAllShared(*shared);
}

Result<unsigned> LoadedKernel::gridSize(const std::int64_t *slots) const {
  const std::int64_t *sizes =
      slots +
      info_.arguments[static_cast<std::size_t>(info_.gridArgument)].firstSlot +
      1;
  std::int64_t programs = sizes[2] / info_.gridTile;
  programs += sizes[2] % info_.gridTile != 0;
  bool fits = !__builtin_mul_overflow(programs, sizes[1], &programs) &&
              !__builtin_mul_overflow(programs, sizes[0], &programs) &&
              !__builtin_mul_overflow(programs, info_.members, &programs) &&
              programs <= std::numeric_limits<std::int32_t>::max();
  if (!fits)
    return Status(ErrorCode::Unsupported,
                  fmt::format("{}: expected fewer than 2^31 tiles of {} rows, "
                              "got sizes [{}, {}, {}]",
                              info_.entryName, info_.gridTile, sizes[0],
                              sizes[1], sizes[2]));
  if (info_.persistent) {
    std::int64_t ctas = resources_.residentCtas;
    if (info_.ctasPerMultiprocessor > 0)
      ctas = std::min<std::int64_t>(ctas, info_.ctasPerMultiprocessor);
    programs = std::min(programs, ctas * device_.multiprocessors());
  }
  return static_cast<unsigned>(programs);
}

/// The fixed part and what follows from the sizes of tensors.
Result<unsigned> LoadedKernel::sharedBytes(const std::int64_t *slots) const {
  const std::int64_t limit = device_.sharedBytes() - resources_.sharedBytes;
  std::int64_t bytes = info_.sharedBytes;
  for (const DynamicScratch &scratch : info_.dynamicScratch) {
    // The columns are a tensor's size, which a kernel counts in 32 bits.
    const std::int64_t columns =
        alignUp(slots[scratch.columnsSlot], scratch.columnsMultiple);
    std::int64_t wanted = alignUp(scratch.bytesPerColumn * columns);
    if (bytes + wanted > limit)
      wanted = alignUp(scratch.bytesPerColumn / scratch.shares * columns);
    bytes += wanted;
  }
  if (bytes <= limit)
    return static_cast<unsigned>(bytes);
  return Status(ErrorCode::Unsupported,
                fmt::format("{}: expected at most {} bytes of shared memory a "
                            "CTA on {}, got {} for {} columns",
                            info_.entryName, limit, device_.name(), bytes,
                            slots[info_.dynamicScratch.back().columnsSlot]));
}

Status LoadedKernel::run(const std::int64_t *slots, StreamHandle stream,
                         LaunchOrder order, bool allShared) const {
  auto grid = gridSize(slots);
  if (!grid.ok())
    return grid.status();
  auto shared = sharedBytes(slots);
  if (!shared.ok())
    return shared.status();
  if (*grid == 0)
    return Status();
  CurrentContext current(device_);
  if (!current.status().ok())
    return current.status();
  static thread_local std::array<std::array<EncodedMap, kMaxTensorMaps>,
                                 kEncodedRows>
      encoded;
  std::array<void *, 1 + kMaxTensorMaps> parameters{
      const_cast<std::int64_t *>(slots)};
  for (std::size_t i = 0; i < info_.tensorMaps.size(); ++i) {
    const TensorMap &map = info_.tensorMaps[i];
    const auto &argument =
        info_.arguments[static_cast<std::size_t>(map.argument)];
    const std::int64_t *first = slots + argument.firstSlot;
    const std::int64_t *end = first + 1 + 2 * argument.rank;
    EncodedMap &mine = encoded[serial_ % kEncodedRows][i];
    if (mine.kernel != serial_ || !std::equal(first, end, mine.slots.begin())) {
      mine.kernel = 0;
      Status status =
          encodeTensorMap(device_.driver(), map, argument, first, mine.bits);
      if (!status.ok())
        return status;
      std::copy(first, end, mine.slots.begin());
      mine.kernel = serial_;
    }
    parameters[1 + i] = &mine.bits;
  }
  std::array<LaunchAttribute, 2> attributes{};
  LaunchConfig config{*grid,   1, 1,       static_cast<unsigned>(info_.threads),
                      1,       1, *shared, stream,
                      nullptr, 0};
  config.attributes = attributes.data();
  if (order == LaunchOrder::Early)
    attributes[config.attributeCount++] = {
        launch_attribute::kProgrammaticSerialisation, {1}};
  constexpr int kUsualPercent = 72, kAll = 100;
  if (sharesMultiprocessors_)
    attributes[config.attributeCount++] = {
        launch_attribute::kSharedPercent,
        {allShared || needsAllShared(*shared) ? kAll : kUsualPercent}};
  Status status = device_.driver().check(
      device_.driver().functions().launch(&config, function_, parameters.data(),
                                          nullptr),
      "cuLaunchKernelEx");
  if (!status.ok())
    return std::move(status).withContext(info_.entryName);
  return status;
}

} // namespace spargejit::cuda
