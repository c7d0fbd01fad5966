// SPDX-License-Identifier: Apache-2.0
//
// Names of the error codes.
#include "spargejit/status.h"

namespace spargejit {

const char *errorCodeName(ErrorCode code) {
  switch (code) {
  case ErrorCode::InvalidArgument:
    return "InvalidArgument";
  case ErrorCode::Unsupported:
    return "Unsupported";
  case ErrorCode::CompileFailed:
    return "CompileFailed";
  case ErrorCode::ArtifactMissing:
    return "ArtifactMissing";
  case ErrorCode::OutOfResources:
    return "OutOfResources";
  case ErrorCode::DriverError:
    return "DriverError";
  case ErrorCode::IoError:
    return "IoError";
  case ErrorCode::Internal:
    return "Internal";
  }
  return "an error code out of range";
}

} // namespace spargejit
