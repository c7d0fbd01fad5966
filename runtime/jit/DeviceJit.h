// SPDX-License-Identifier: Apache-2.0
//
// Step 7 of 9 in the life of a call (runtime/README.md): from a KernelSpec to
// code that a GPU of one architecture can load, and a judgement on what its
// assembler made of it. Knows no device.
#pragma once

#include "runtime/jit/AssemblyReport.h"
#include "runtime/jit/CustomJit.h"
#include "runtime/jit/DeviceCode.h"
#include "runtime/jit/KernelCompiler.h"

#include <memory>
#include <string>
#include <vector>

namespace spargejit::jit {

/// Thread-safe.
class DeviceJit {
public:
  /// `generator` and `texts` must outlive this object. `target` is a GPU.
  DeviceJit(CodeGenerator &generator,
            const std::vector<kernels_ir::EmbeddedText> &texts,
            const Environment &settings, const Target &target)
      : settings_(settings), compiler_(generator, texts, settings, target),
        custom_(settings, target) {}

  const Target &target() const { return compiler_.target(); }

  /// As KernelCompiler::text.
  Result<std::shared_ptr<const KernelText>> text(const std::string &kernel) {
    return compiler_.text(kernel);
  }
  cache::KernelKey keyOf(const KernelSpec &spec, const KernelText &text) const {
    return compiler_.keyOf(spec, text);
  }

  /// The code of `spec`, compiled from `text` where this process has not done
  /// so, and assembled where SPARGEJIT_PTXAS names a program. Both are kept on
  /// disk, each under what determines it.
  /// Errors: those of KernelCompiler::artifact and of assembling; CompileFailed
  /// for code that judge() refuses.
  Result<std::shared_ptr<const DeviceCode>> code(const KernelSpec &spec,
                                                 const KernelText &text);

  /// The way of kernels with stages in CUDA C++.
  CustomJit &custom() { return custom_; }

  /// What the assembler that loaded `code` (`assembler`, in words) said of it:
  /// `log` as by `ptxas -v`, and the bytes of memory that a thread has beside
  /// its registers, which is all there is to go by where the log is empty.
  /// CompileFailed for a kernel with spilled registers, a stack, serialised
  /// products or an ignored setmaxnreg: with the stage, the reasons, where the
  /// PTX is, the assembler and its text.
  Status judge(const DeviceCode &code, const std::string &assembler,
               const std::string &log, std::int64_t localBytes) const;

private:
  Result<std::shared_ptr<const DeviceCode>> make(const cache::KernelKey &key,
                                                 const KernelSpec &spec,
                                                 const KernelText &text);
  /// The code as it leaves the compiler, or as the store has it.
  Result<std::shared_ptr<const DeviceCode>> compile(const cache::KernelKey &key,
                                                    const KernelSpec &spec,
                                                    const KernelText &text);
  /// Machine code in the store; null when there is none.
  std::shared_ptr<const DeviceCode> findAssembled(const cache::KernelKey &key,
                                                  const KernelSpec &spec) const;
  Status assemble(DeviceCode &code, const std::string &program) const;

  const Environment settings_;
  KernelCompiler compiler_;
  SingleFlight<cache::KernelKey, DeviceCode, cache::KernelKeyHash> codes_;
  CustomJit custom_;
};

/// A failure of the stage "assemble": "while assembling <what>: <reason>; PTX:
/// <where>; assembler: <assembler>", and the log from the next line on.
Status assemblyFailure(const DeviceCode &code, const std::string &reason,
                       const std::string &assembler, const std::string &log);

} // namespace spargejit::jit
