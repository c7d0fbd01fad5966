// SPDX-License-Identifier: Apache-2.0
//
// NVRTC, NVIDIA's compiler of CUDA C++, opened at run time: for stages that
// users write. Nothing of CUDA is linked, and no toolkit header is needed.
#pragma once

#include "runtime/base/Environment.h"
#include "spargejit/status.h"

#include <memory>
#include <string>
#include <vector>

namespace spargejit::jit {

/// A text and the name that it has in #include and in messages.
struct NvrtcText {
  std::string name;
  std::string text;
};

struct NvrtcOutcome {
  /// False when the text has mistakes; then `log` says which, and there is no
  /// code.
  bool compiled = false;
  /// Machine code for one architecture: an ELF file.
  std::string cubin;
  /// What the machine code was assembled from.
  std::string ptx;
  /// Errors and warnings with file and line, and what the assembler says.
  std::string log;
};

/// Thread-safe. The library stays open until the process ends.
class Nvrtc {
public:
  /// The library that SPARGEJIT_NVRTC names, or the first of libnvrtc.so.13 and
  /// libnvrtc.so.12 that the loader finds, or the toolkit's in its usual place.
  /// Unsupported, with what to install, when there is none or it is not NVRTC.
  static Result<std::unique_ptr<Nvrtc>> open(const Environment &settings);

  /// Compiles `unit` to a cubin; `headers` are what it may include.
  /// Errors: Unsupported for options that this NVRTC does not know, or when its
  /// built-in functions (libnvrtc-builtins) are not beside it; OutOfResources;
  /// Internal.
  Result<NvrtcOutcome> compile(const NvrtcText &unit,
                               const std::vector<NvrtcText> &headers,
                               const std::vector<std::string> &options) const;

  /// "13.0".
  const std::string &version() const { return version_; }
  /// The file that it was loaded from.
  const std::string &path() const { return path_; }

private:
  struct Functions;
  class Program;

  Nvrtc(std::string path, std::shared_ptr<const Functions> functions)
      : path_(std::move(path)), functions_(std::move(functions)) {}
  static Result<std::unique_ptr<Nvrtc>> openLibrary(const std::string &path);
  Status describe(int code, const char *call) const;

  std::string path_;
  std::string version_;
  std::shared_ptr<const Functions> functions_;
};

} // namespace spargejit::jit
