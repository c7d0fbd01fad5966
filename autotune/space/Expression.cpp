// SPDX-License-Identifier: Apache-2.0
//
// Expressions: a parser by recursive descent and a walk over its tree.
#include "autotune/space/Expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace spargejit::autotune {

struct Expression::Node {
  /// "number", "name", an operator, or a function's name.
  std::string kind;
  std::int64_t number = 0;
  std::string name;
  std::vector<std::shared_ptr<const Node>> parts;
};

namespace {

using Node = Expression::Node;
using NodePointer = std::shared_ptr<const Node>;

/// Operators of two sides, by rising precedence.
const std::vector<std::vector<std::string>> kLevels = {
    {"||"},
    {"&&"},
    {"==", "!=", "<=", ">=", "<", ">"},
    {"+", "-"},
    {"*", "/", "%"}};
constexpr std::array<const char *, 4> kFunctions = {"min", "max", "gcd",
                                                    "ceil_div"};
/// Nested deeper than any real expression; keeps the stack from running out.
constexpr int kMostDepth = 100;

NodePointer makeNode(std::string kind, std::vector<NodePointer> parts) {
  auto node = std::make_shared<Node>();
  node->kind = std::move(kind);
  node->parts = std::move(parts);
  return node;
}

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<NodePointer> parse() {
    NodePointer root = conditional();
    skipBlanks();
    if (!failure_ && at_ != text_.size())
      fail("expected an operator or the end");
    if (failure_)
      return Status(ErrorCode::InvalidArgument,
                    fmt::format("\"{}\", column {}: {}", text_, failedAt_ + 1,
                                *failure_));
    return root;
  }

private:
  void skipBlanks() {
    while (at_ < text_.size() &&
           std::isspace(static_cast<unsigned char>(text_[at_])) != 0)
      ++at_;
  }
  bool take(std::string_view token) {
    skipBlanks();
    if (!text_.substr(at_).starts_with(token))
      return false;
    at_ += token.size();
    return true;
  }
  NodePointer fail(std::string reason) {
    if (!failure_) {
      failure_ = std::move(reason);
      failedAt_ = at_;
    }
    return makeNode("number", {});
  }

  NodePointer conditional() {
    if (++depth_ > kMostDepth)
      return fail("nested too deeply");
    NodePointer node = binary(0);
    if (!failure_ && take("?")) {
      NodePointer yes = conditional();
      if (!failure_ && !take(":"))
        return fail("expected ':'");
      node = makeNode("?", {node, yes, conditional()});
    }
    --depth_;
    return node;
  }

  NodePointer binary(std::size_t level) {
    if (level == kLevels.size())
      return unary();
    NodePointer node = binary(level + 1);
    while (!failure_) {
      const std::string *taken = nullptr;
      for (const std::string &token : kLevels[level])
        if (take(token)) {
          taken = &token;
          break;
        }
      if (!taken)
        break;
      node = makeNode(*taken, {node, binary(level + 1)});
    }
    return node;
  }

  NodePointer unary() {
    for (const char *token : {"-", "!"})
      if (take(token)) {
        if (++depth_ > kMostDepth)
          return fail("nested too deeply");
        NodePointer node =
            makeNode(token[0] == '-' ? "negate" : "!", {unary()});
        --depth_;
        return node;
      }
    return primary();
  }

  NodePointer primary() {
    if (failure_)
      return fail("");
    if (take("(")) {
      NodePointer node = conditional();
      return take(")") || failure_ ? node : fail("expected ')'");
    }
    skipBlanks();
    const char *begin = text_.data() + at_;
    const char *end = text_.data() + text_.size();
    auto node = std::make_shared<Node>();
    auto [last, error] = std::from_chars(begin, end, node->number);
    if (error == std::errc() && *begin != '-') {
      at_ += static_cast<std::size_t>(last - begin);
      node->kind = "number";
      return node;
    }
    std::size_t length = 0;
    while (at_ + length < text_.size() && isNameLetter(text_[at_ + length]))
      ++length;
    if (length == 0)
      return fail("expected a number or a name");
    node->name = std::string(text_.substr(at_, length));
    at_ += length;
    if (take("("))
      return call(node->name);
    node->kind = "name";
    return node;
  }

  NodePointer call(const std::string &name) {
    if (std::find(kFunctions.begin(), kFunctions.end(), name) ==
        kFunctions.end())
      return fail(fmt::format("there is no function {}", name));
    NodePointer left = conditional();
    if (!failure_ && !take(","))
      return fail("expected ','");
    NodePointer right = conditional();
    if (!failure_ && !take(")"))
      return fail("expected ')'");
    return makeNode(name, {left, right});
  }

  static bool isNameLetter(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
           letter == '_';
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::optional<std::string> failure_;
  std::size_t failedAt_ = 0;
};

Status invalid(std::string what) {
  return Status(ErrorCode::InvalidArgument, std::move(what));
}

Result<std::int64_t> divide(const std::string &kind, std::int64_t a,
                            std::int64_t b) {
  if (b == 0)
    return invalid("a division by zero");
  if (b == -1 && a == std::numeric_limits<std::int64_t>::min())
    return invalid("a result beyond 64 bits");
  if (kind == "ceil_div")
    return a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
  return kind == "/" ? a / b : a % b;
}

Result<std::int64_t> combine(const std::string &kind, std::int64_t a,
                             std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  if (kind == "+")
    overflows = __builtin_add_overflow(a, b, &result);
  else if (kind == "-")
    overflows = __builtin_sub_overflow(a, b, &result);
  else if (kind == "*")
    overflows = __builtin_mul_overflow(a, b, &result);
  else if (kind == "/" || kind == "%" || kind == "ceil_div")
    return divide(kind, a, b);
  else if (kind == "min")
    result = std::min(a, b);
  else if (kind == "max")
    result = std::max(a, b);
  else if (kind == "gcd") {
    if (a == std::numeric_limits<std::int64_t>::min() ||
        b == std::numeric_limits<std::int64_t>::min())
      return invalid("a result beyond 64 bits");
    result = std::gcd(a, b);
  } else
    result = kind == "=="   ? a == b
             : kind == "!=" ? a != b
             : kind == "<"  ? a < b
             : kind == "<=" ? a <= b
             : kind == ">"  ? a > b
                            : a >= b;
  if (overflows)
    return invalid("a result beyond 64 bits");
  return result;
}

Result<std::int64_t> evaluateNode(const Node &node, const Values &values) {
  if (node.kind == "number")
    return node.number;
  if (node.kind == "name") {
    auto it = values.find(node.name);
    if (it == values.end())
      return invalid(fmt::format("{} has no value", node.name));
    return it->second;
  }
  auto first = evaluateNode(*node.parts[0], values);
  if (!first.ok())
    return first;
  if (node.kind == "!")
    return std::int64_t{*first == 0};
  if (node.kind == "negate")
    return combine("-", 0, *first);
  if (node.kind == "?")
    return evaluateNode(*node.parts[*first != 0 ? 1 : 2], values);
  if (node.kind == "&&" || node.kind == "||") {
    if ((*first != 0) == (node.kind == "||"))
      return std::int64_t{*first != 0};
    auto second = evaluateNode(*node.parts[1], values);
    if (!second.ok())
      return second;
    return std::int64_t{*second != 0};
  }
  auto second = evaluateNode(*node.parts[1], values);
  if (!second.ok())
    return second;
  return combine(node.kind, *first, *second);
}

} // namespace

Result<Expression> Expression::parse(std::string_view text) {
  auto root = Parser(text).parse();
  if (!root.ok())
    return root.status();
  return Expression(std::string(text), *root);
}

Result<std::int64_t> Expression::evaluate(const Values &values) const {
  auto result = evaluateNode(*root_, values);
  if (!result.ok())
    return Status(result.status()).withContext(fmt::format("\"{}\"", text_));
  return result;
}

} // namespace spargejit::autotune
