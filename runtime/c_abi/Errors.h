// SPDX-License-Identifier: Apache-2.0
//
// How failures leave the library through C: a code, and a message that the
// thread keeps.
#pragma once

#include "spargejit/c.h"
#include "spargejit/status.h"

#include <new>

namespace spargejit::c_abi {

/// The code of a Status; a failure's message becomes the thread's last error.
SpargejitStatus report(const Status &status);

/// What `call` returns, reported; what it throws too.
template <typename Call>
SpargejitStatus guarded(Call call) {
  try {
    return report(call());
  } catch (const std::bad_alloc &) {
    return report(Status(ErrorCode::OutOfResources, "no memory"));
  } catch (const std::exception &error) {
    return report(Status(ErrorCode::Internal, error.what()));
  }
}

} // namespace spargejit::c_abi
