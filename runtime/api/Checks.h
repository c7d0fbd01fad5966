// SPDX-License-Identifier: Apache-2.0
//
// Checks of arguments, one property a line; the first that fails is kept with
// its message. Every call makes a hundred and more of them: where one holds, it
// costs a comparison in the caller; messages are formatted on failure only, out
// of the way.
#pragma once

#include "spargejit/status.h"
#include "spargejit/tensor.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

/// Data types in messages.
template <>
struct fmt::formatter<spargejit::DataType> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(spargejit::DataType type, Context &context) const {
    return fmt::formatter<std::string_view>::format(
        spargejit::dataTypeName(type), context);
  }
};

namespace spargejit::api {

class Checks {
public:
  /// InvalidArgument with this message unless `holds`.
  template <typename... Args>
  [[gnu::always_inline]] void
  that(bool holds, fmt::format_string<Args...> message, Args &&...args) {
    if (!holds) [[unlikely]]
      fail(ErrorCode::InvalidArgument, message, args...);
  }
  /// Unsupported with this message unless `holds`.
  template <typename... Args>
  [[gnu::always_inline]] void
  supported(bool holds, fmt::format_string<Args...> message, Args &&...args) {
    if (!holds) [[unlikely]]
      fail(ErrorCode::Unsupported, message, args...);
  }
  /// Keeps `other` when nothing has failed before.
  void also(Status other) {
    if (status_.ok())
      status_ = std::move(other);
  }

  bool ok() const { return status_.ok(); }
  Status status() && { return std::move(status_); }

private:
  template <typename... Args>
  [[gnu::cold, gnu::noinline]] void
  fail(ErrorCode code, fmt::string_view message, const Args &...args) {
    if (status_.ok())
      status_ =
          Status(code, fmt::vformat(message, fmt::make_format_args(args...)));
  }

  Status status_;
};

} // namespace spargejit::api
