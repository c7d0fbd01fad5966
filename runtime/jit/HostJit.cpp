// SPDX-License-Identifier: Apache-2.0
//
// Step 7 of 9 in the life of a call (runtime/README.md): compile or find, then
// load.
#include "runtime/jit/HostJit.h"

#include "runtime/jit/HostObject.h"

namespace spargejit::jit {

Result<std::shared_ptr<const LoadedKernel>>
HostJit::load(const KernelSpec &spec, const KernelText &text) {
  using Outcome = Result<std::shared_ptr<const LoadedKernel>>;
  auto key = compiler_.keyOf(spec, text);
  return loaded_.get(key, [&]() -> Outcome {
    auto artifact = compiler_.artifact(key, spec, text);
    if (!artifact.ok())
      return artifact.status();
    auto code = loadHostObject(**artifact);
    // Code of another kind is linked by who made it.
    if (!code.ok() && code.status().code() == ErrorCode::Unsupported)
      code = generator_.loadHostKernel(**artifact);
    if (!code.ok())
      return Status(code.status())
          .withContext("while loading " + cache::describeSpec(spec));
    LoadedKernel kernel{(*artifact)->launch, (*code)->function(), *code};
    return std::make_shared<const LoadedKernel>(std::move(kernel));
  });
}

} // namespace spargejit::jit
