// SPDX-License-Identifier: Apache-2.0
//
// The compiler's entry for methods: method text in, MethodPlan out.
#pragma once

#include "runtime/base/MethodPlan.h"
#include "spargejit/status.h"

#include <string>

namespace spargejit::compiler {

/// Parses `text` (MLIR, one sparge.method; `textName` is the file name used in
/// diagnostics), fuses scoring with selection, and orders the launches.
/// Errors: CompileFailed with every diagnostic as "file:line:column: text".
/// Thread-safe. Typically 2 ms.
Result<MethodPlan> planMethod(const std::string &text,
                              const std::string &textName);

} // namespace spargejit::compiler
