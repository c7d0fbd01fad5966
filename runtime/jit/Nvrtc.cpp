// SPDX-License-Identifier: Apache-2.0
//
// The one file that knows NVRTC's interface: the functions, types and numbers
// of nvrtc.h (CUDA 12.0 and later) that are used here.
#include "runtime/jit/Nvrtc.h"

#include <fmt/format.h>

#include <algorithm>
#include <dlfcn.h>
#include <link.h>

namespace spargejit::jit {

namespace {

/// nvrtcResult.
enum ResultCode : int {
  kSuccess = 0,
  kOutOfMemory = 1,
  kInvalidOption = 5,
  kCompilation = 6,
  kBuiltInOperation = 7,
};

using ProgramHandle = void *;

constexpr const char *kStandardNames[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                          "/usr/local/cuda/lib64/libnvrtc.so"};

/// What to do without it.
constexpr const char *kRemedy =
    "a stage in CUDA C++ is compiled by NVRTC: install it (cuda-nvrtc of the "
    "CUDA toolkit, libnvrtc12 of Debian, or the Python package "
    "nvidia-cuda-nvrtc), or let SPARGEJIT_NVRTC name the library";

/// The file behind a handle of dlopen; `name` where the loader does not say.
std::string fileOf(void *library, const std::string &name) {
  link_map *map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name[0])
    return name;
  return map->l_name;
}

} // namespace

struct Nvrtc::Functions {
  int (*version)(int *, int *);
  const char *(*errorText)(int);
  int (*create)(ProgramHandle *, const char *, const char *, int,
                const char *const *, const char *const *);
  int (*destroy)(ProgramHandle *);
  int (*compile)(ProgramHandle, int, const char *const *);
  int (*logSize)(ProgramHandle, std::size_t *);
  int (*log)(ProgramHandle, char *);
  int (*cubinSize)(ProgramHandle, std::size_t *);
  int (*cubin)(ProgramHandle, char *);
  int (*ptxSize)(ProgramHandle, std::size_t *);
  int (*ptx)(ProgramHandle, char *);

  /// The first name that the library lacks, or null.
  const char *lookUp(void *library) {
    const char *missing = nullptr;
    auto find = [&](auto &member, const char *name) {
      member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(
          dlsym(library, name));
      if (!member && !missing)
        missing = name;
    };
    find(version, "nvrtcVersion");
    find(errorText, "nvrtcGetErrorString");
    find(create, "nvrtcCreateProgram");
    find(destroy, "nvrtcDestroyProgram");
    find(compile, "nvrtcCompileProgram");
    find(logSize, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
    find(cubinSize, "nvrtcGetCUBINSize");
    find(cubin, "nvrtcGetCUBIN");
    find(ptxSize, "nvrtcGetPTXSize");
    find(ptx, "nvrtcGetPTX");
    return missing;
  }
};

/// A program while it is compiled.
class Nvrtc::Program {
public:
  explicit Program(const Nvrtc &nvrtc) : nvrtc_(nvrtc) {}
  ~Program() {
    if (handle_)
      nvrtc_.functions_->destroy(&handle_);
  }
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  Status create(const NvrtcText &unit, const std::vector<NvrtcText> &headers) {
    std::vector<const char *> texts;
    std::vector<const char *> names;
    for (const NvrtcText &header : headers) {
      texts.push_back(header.text.c_str());
      names.push_back(header.name.c_str());
    }
    return nvrtc_.describe(nvrtc_.functions_->create(
                               &handle_, unit.text.c_str(), unit.name.c_str(),
                               static_cast<int>(headers.size()), texts.data(),
                               names.data()),
                           "nvrtcCreateProgram");
  }
  int compile(const std::vector<std::string> &options) {
    std::vector<const char *> pointers;
    for (const std::string &option : options)
      pointers.push_back(option.c_str());
    return nvrtc_.functions_->compile(
        handle_, static_cast<int>(pointers.size()), pointers.data());
  }
  /// Reads a result by the function that gives its size and the one that gives
  /// it.
  Status read(int (*sizeOf)(ProgramHandle, std::size_t *),
              int (*contentOf)(ProgramHandle, char *), const char *call,
              std::string &content) {
    std::size_t size = 0;
    int code = sizeOf(handle_, &size);
    content.assign(size, '\0');
    if (code == kSuccess && size > 0)
      code = contentOf(handle_, content.data());
    return nvrtc_.describe(code, call);
  }

private:
  const Nvrtc &nvrtc_;
  ProgramHandle handle_ = nullptr;
};

Result<std::unique_ptr<Nvrtc>> Nvrtc::open(const Environment &settings) {
  if (!settings.nvrtc.empty())
    return openLibrary(settings.nvrtc);
  std::string reasons;
  for (const char *name : kStandardNames) {
    auto nvrtc = openLibrary(name);
    if (nvrtc.ok())
      return nvrtc;
    reasons = nvrtc.status().message();
  }
  return Status(ErrorCode::Unsupported,
                fmt::format("none of {} can be opened; {}",
                            fmt::join(kStandardNames, ", "),
                            reasons.substr(reasons.find("a stage in CUDA"))));
}

Result<std::unique_ptr<Nvrtc>> Nvrtc::openLibrary(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return Status(ErrorCode::Unsupported,
                  fmt::format("NVRTC cannot be opened as {} ({}); {}", path,
                              reason ? reason : "no reason given", kRemedy));
  }
  auto functions = std::make_shared<Functions>();
  if (const char *missing = functions->lookUp(library))
    return Status(ErrorCode::Unsupported,
                  fmt::format("{}: expected NVRTC of CUDA 12.0 or later, got a "
                              "library without {}; {}",
                              path, missing, kRemedy));
  std::unique_ptr<Nvrtc> nvrtc(new Nvrtc(fileOf(library, path), functions));
  int major = 0;
  int minor = 0;
  if (Status status =
          nvrtc->describe(functions->version(&major, &minor), "nvrtcVersion");
      !status)
    return status;
  nvrtc->version_ = fmt::format("{}.{}", major, minor);
  return nvrtc;
}

Result<NvrtcOutcome>
Nvrtc::compile(const NvrtcText &unit, const std::vector<NvrtcText> &headers,
               const std::vector<std::string> &options) const {
  Program program(*this);
  if (Status status = program.create(unit, headers); !status)
    return status;
  const int code = program.compile(options);
  NvrtcOutcome outcome;
  Status status = program.read(functions_->logSize, functions_->log,
                               "nvrtcGetProgramLog", outcome.log);
  // The size counts the end of the string.
  outcome.log.erase(std::find(outcome.log.begin(), outcome.log.end(), '\0'),
                    outcome.log.end());
  if (code == kCompilation && status.ok())
    return outcome;
  if (Status failed = describe(code, "nvrtcCompileProgram"); !failed)
    return outcome.log.empty()
               ? failed
               : Status(failed.code(), failed.message() + "\n" + outcome.log);
  if (status.ok())
    status = program.read(functions_->cubinSize, functions_->cubin,
                          "nvrtcGetCUBIN", outcome.cubin);
  if (status.ok())
    status = program.read(functions_->ptxSize, functions_->ptx, "nvrtcGetPTX",
                          outcome.ptx);
  if (!status.ok())
    return status;
  outcome.ptx.erase(std::find(outcome.ptx.begin(), outcome.ptx.end(), '\0'),
                    outcome.ptx.end());
  outcome.compiled = true;
  return outcome;
}

Status Nvrtc::describe(int code, const char *call) const {
  if (code == kSuccess)
    return Status();
  const char *text = functions_->errorText(code);
  std::string message = fmt::format("{} of {} (NVRTC {}) failed: {} ({})", call,
                                    path_, version_, text ? text : "", code);
  switch (code) {
  case kOutOfMemory:
    return Status(ErrorCode::OutOfResources, message);
  case kInvalidOption:
    return Status(ErrorCode::Unsupported,
                  message + ": expected an NVRTC that knows this GPU");
  case kBuiltInOperation:
    return Status(ErrorCode::Unsupported,
                  message + ": expected libnvrtc-builtins beside it");
  default:
    return Status(ErrorCode::Internal, message);
  }
}

} // namespace spargejit::jit
