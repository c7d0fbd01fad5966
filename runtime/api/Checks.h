// SPDX-License-Identifier: Apache-2.0
//
// Checks of arguments, one property a line; the first that fails is kept with
// its message. Messages are only formatted on failure.
#pragma once

#include "spargejit/status.h"

#include <fmt/format.h>

#include <utility>

namespace spargejit::api {

class Checks {
public:
  /// InvalidArgument with this message unless `holds`.
  template <typename... Args>
  void that(bool holds, fmt::format_string<Args...> message, Args &&...args) {
    if (!holds && status_.ok())
      status_ = Status(ErrorCode::InvalidArgument,
                       fmt::format(message, std::forward<Args>(args)...));
  }
  /// Unsupported with this message unless `holds`.
  template <typename... Args>
  void supported(bool holds, fmt::format_string<Args...> message,
                 Args &&...args) {
    if (!holds && status_.ok())
      status_ = Status(ErrorCode::Unsupported,
                       fmt::format(message, std::forward<Args>(args)...));
  }
  /// Keeps `other` when nothing has failed before.
  void also(Status other) {
    if (status_.ok())
      status_ = std::move(other);
  }

  bool ok() const { return status_.ok(); }
  Status status() && { return std::move(status_); }

private:
  Status status_;
};

} // namespace spargejit::api
