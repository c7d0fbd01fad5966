// SPDX-License-Identifier: Apache-2.0
//
// A kernel's tuning space, declared in a file beside the kernel
// (kernels_ir/kernels/**/<kernel>.tuning, so that a change of the space is none
// of the kernel, whose text is part of every key):
//
//   # a comment
//   tune tile_kv = 64, 128, 192
//   derive boxes = tile_kv / key_box
//   require shared_bytes <= 232448 : a CTA has 227 KiB of shared memory
//   shared_bytes = kv_stages * 2 * tile_kv * head_dim * elem_bytes
//   cost = 100 * ceil_div(visited_keys, tile_kv) + 20 * boxes
//
// A free parameter has values; a derived one follows from others and from the
// problem. A configuration is right where every requirement holds; `cost` ranks
// configurations before any is measured (lower is better, no unit). What the
// problem gives: FACTS in autotune/README.md.
#pragma once

#include "autotune/space/Expression.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spargejit::autotune {

/// Values of the free and the derived parameters.
using Config = Values;

struct Candidate {
  Config config;
  std::int64_t cost = 0;
  std::int64_t sharedBytes = 0;
};

struct Enumeration {
  /// Those that every requirement holds for, the cheapest first.
  std::vector<Candidate> candidates;
  /// How many were turned down by each requirement's reason, the first that
  /// fails counting.
  std::vector<std::pair<std::string, std::int64_t>> rejected;
  std::int64_t total = 0;
};

class ConfigSpace {
public:
  /// The space that a text declares. InvalidArgument, with the line, for one
  /// that cannot be read, and for a text that declares no free parameter.
  static Result<ConfigSpace> parse(std::string_view text);

  struct Parameter {
    std::string name;
    std::vector<std::int64_t> values;
  };
  const std::vector<Parameter> &parameters() const { return parameters_; }

  /// Every configuration for the facts of a problem. InvalidArgument for an
  /// expression that cannot be evaluated, and a space of more than 2^20.
  Result<Enumeration> enumerate(const Values &facts) const;

  /// Why the configuration of these free parameters is not right for the
  /// facts; none where it is.
  Result<std::optional<std::string>> whyNot(const Values &facts,
                                            const Values &freeParameters) const;

private:
  struct Derived {
    std::string name;
    Expression value;
  };
  struct Requirement {
    Expression holds;
    std::string reason;
  };

  Status readLine(std::string_view line);
  /// Adds derived values and shared_bytes to facts and free parameters.
  Status derive(Values &values) const;
  /// The reason of the first requirement that does not hold.
  Result<std::optional<std::string>> firstFailure(const Values &values) const;

  std::vector<Parameter> parameters_;
  std::vector<Derived> derived_;
  std::vector<Requirement> requirements_;
  std::optional<Expression> sharedBytes_;
  std::optional<Expression> cost_;
};

} // namespace spargejit::autotune
