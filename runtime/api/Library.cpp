// SPDX-License-Identifier: Apache-2.0
//
// What build this is.
#include "spargejit/library.h"

#include "runtime/jit/CodeGenerator.h"

namespace spargejit {

// The build defines it from the project's version.
const char *version() { return SPARGEJIT_VERSION; }

bool hasCompiler() { return jit::hasBuiltInCompiler(); }

} // namespace spargejit
