// SPDX-License-Identifier: Apache-2.0
//
// Whole-number expressions of named values, as tuning spaces are written in:
//   tile_q / 64 * (tile_kv + 1) <= 4096 && has_lists
// Operators as in C, by rising precedence: ?: || && == != < <= > >= + - * / %
// and the unary - !. Functions: min, max, gcd, ceil_div of two numbers.
#pragma once

#include "spargejit/status.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace spargejit::autotune {

/// Names and their values.
using Values = std::map<std::string, std::int64_t>;

class Expression {
public:
  /// InvalidArgument, with the place, for what is no expression.
  static Result<Expression> parse(std::string_view text);

  /// Truth is 1 or 0. Both sides of && and || and the branch of ?: that is not
  /// taken are left alone once the result is known.
  /// InvalidArgument for a name without a value, a division by zero, and a
  /// result beyond 64 bits.
  Result<std::int64_t> evaluate(const Values &values) const;

  const std::string &text() const { return text_; }

  struct Node;

private:
  explicit Expression(std::string text, std::shared_ptr<const Node> root)
      : text_(std::move(text)), root_(std::move(root)) {}

  std::string text_;
  std::shared_ptr<const Node> root_;
};

} // namespace spargejit::autotune
