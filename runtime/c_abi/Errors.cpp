// SPDX-License-Identifier: Apache-2.0
//
// Errors.h, and the functions that tell of them.
#include "runtime/c_abi/Errors.h"

#include <string>

namespace spargejit::c_abi {

namespace {

thread_local std::string lastError;

static_assert(SpargejitInvalidArgument ==
              static_cast<int>(ErrorCode::InvalidArgument) + 1);
static_assert(SpargejitInternal == static_cast<int>(ErrorCode::Internal) + 1);

} // namespace

SpargejitStatus report(const Status &status) {
  if (status.ok())
    return SpargejitOk;
  lastError = status.message();
  return static_cast<SpargejitStatus>(status.code()) + 1;
}

} // namespace spargejit::c_abi

using namespace spargejit;

const char *spargejit_last_error(void) { return c_abi::lastError.c_str(); }

const char *spargejit_status_name(SpargejitStatus status) {
  return status == SpargejitOk
             ? "Ok"
             : errorCodeName(static_cast<ErrorCode>(status - 1));
}
