// SPDX-License-Identifier: Apache-2.0
//
// Status and Result<T>: how every call of the library reports failure. Usable
// without exceptions (test the object) and with them (`value()` throws Error).
// Compiled with -fno-exceptions, value() and throwIfFailed() do not exist.
#pragma once

#include "spargejit/export.h"

#include <cassert>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace spargejit {

/// Who has to act when a call fails.
enum class ErrorCode {
  /// The caller passed something that no back end accepts; the message names
  /// the argument, what was expected and what was found.
  InvalidArgument,
  /// Well-formed, but this build, device or method does not implement it.
  Unsupported,
  /// A kernel or method did not compile; the message holds the diagnostics.
  CompileFailed,
  /// Compiling is switched off and no artifact was found; the message has the
  /// command that makes it.
  ArtifactMissing,
  /// Memory, shared memory or registers were not enough.
  OutOfResources,
  /// The GPU driver failed; the message has its code and text.
  DriverError,
  /// A file could not be read or written; the message has the path.
  IoError,
  /// A broken invariant of this library: please report it.
  Internal,
};

/// The enumerator's name, for example "InvalidArgument".
SPARGEJIT_API const char *errorCodeName(ErrorCode code);

/// What `Result<T>::value()` and `Status::throwIfFailed()` throw.
class SPARGEJIT_API Error : public std::exception {
public:
  Error(ErrorCode code, std::string message)
      : code_(code), message_(std::move(message)) {}
  ErrorCode code() const { return code_; }
  const char *what() const noexcept override { return message_.c_str(); }

private:
  ErrorCode code_;
  std::string message_;
};

/// Success, or an error code with a one-line message.
class [[nodiscard]] Status {
public:
  /// Success.
  Status() = default;
  Status(ErrorCode code, std::string message)
      : failure_(Failure{code, std::move(message)}) {}

  bool ok() const { return !failure_.has_value(); }
  explicit operator bool() const { return ok(); }

  /// Precondition: !ok().
  ErrorCode code() const {
    assert(failure_ && "code() of a successful Status");
    return failure_->code;
  }
  /// Empty on success.
  const std::string &message() const {
    static const std::string kNone;
    return failure_ ? failure_->message : kNone;
  }
  /// The same failure with "context: " put before its message; success stays
  /// success.
  Status withContext(const std::string &context) && {
    if (failure_)
      failure_->message = context + ": " + failure_->message;
    return std::move(*this);
  }
#ifdef __cpp_exceptions
  /// Throws Error on failure.
  void throwIfFailed() const {
    if (failure_)
      throw Error(failure_->code, failure_->message);
  }
#endif

private:
  struct Failure {
    ErrorCode code;
    std::string message;
  };
  std::optional<Failure> failure_;
};

/// A value or a failed Status.
template <typename T>
class [[nodiscard]] Result {
public:
  // NOLINTNEXTLINE(google-explicit-constructor): `return value;` must work
  Result(T value) : value_(std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): `return status;` must work
  Result(Status status) : status_(std::move(status)) {
    assert(!status_.ok() && "a Result without a value needs a failure");
  }

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }

  const Status &status() const { return status_; }

#ifdef __cpp_exceptions
  /// The value; throws Error when there is none.
  T &value() & {
    status_.throwIfFailed();
    return *value_;
  }
  const T &value() const & {
    status_.throwIfFailed();
    return *value_;
  }
  T &&value() && {
    status_.throwIfFailed();
    return std::move(*value_);
  }
#endif

  /// Precondition: ok().
  T &operator*() & {
    assert(ok() && "dereferenced a failed Result");
    return *value_;
  }
  const T &operator*() const & {
    assert(ok() && "dereferenced a failed Result");
    return *value_;
  }
  T &&operator*() && {
    assert(ok() && "dereferenced a failed Result");
    return std::move(*value_);
  }
  T *operator->() { return &**this; }
  const T *operator->() const { return &**this; }

private:
  std::optional<T> value_;
  Status status_;
};

} // namespace spargejit
