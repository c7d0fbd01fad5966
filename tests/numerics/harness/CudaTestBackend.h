// SPDX-License-Identifier: Apache-2.0
//
// A GPU as a back end under test.
#pragma once

#include "tests/numerics/harness/TestBackend.h"

namespace spargejit::numerics {

/// Device 0, or null where there is no driver, no device, or none with kernels.
TestBackend *cudaTestBackend();

} // namespace spargejit::numerics
