// SPDX-License-Identifier: Apache-2.0
//
// Tuning spaces.
#include "autotune/space/ConfigSpace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

namespace spargejit::autotune {

namespace {

constexpr std::int64_t kMostConfigs = std::int64_t{1} << 20;

std::string_view trimmed(std::string_view text) {
  auto isBlank = [](char letter) { return letter == ' ' || letter == '\t'; };
  while (!text.empty() && isBlank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && (isBlank(text.back()) || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

Status invalid(std::string what) {
  return Status(ErrorCode::InvalidArgument, std::move(what));
}

/// "name = rest" taken apart.
Result<std::pair<std::string, std::string_view>>
splitAssignment(std::string_view text) {
  std::size_t equals = text.find('=');
  std::string_view name =
      equals == std::string_view::npos ? "" : trimmed(text.substr(0, equals));
  if (name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") !=
          std::string_view::npos)
    return invalid(fmt::format("expected name = value, got \"{}\"", text));
  return std::pair(std::string(name), trimmed(text.substr(equals + 1)));
}

Result<std::vector<std::int64_t>> readValues(std::string_view text) {
  std::vector<std::int64_t> values;
  while (true) {
    std::size_t comma = std::min(text.find(','), text.size());
    std::string_view word = trimmed(text.substr(0, comma));
    std::int64_t value = 0;
    auto [end, failure] =
        std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc() || end != word.data() + word.size())
      return invalid(fmt::format("expected a whole number, got \"{}\"", word));
    values.push_back(value);
    if (comma == text.size())
      return values;
    text.remove_prefix(comma + 1);
  }
}

} // namespace

Result<ConfigSpace> ConfigSpace::parse(std::string_view text) {
  ConfigSpace space;
  for (int line = 1; !text.empty(); ++line) {
    std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view declaration = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (declaration.empty() || declaration.starts_with('#'))
      continue;
    Status status = space.readLine(declaration);
    if (!status.ok())
      return std::move(status).withContext(fmt::format("line {}", line));
  }
  if (space.parameters_.empty())
    return invalid("expected a tuning space, found no line of tune");
  return space;
}

Status ConfigSpace::readLine(std::string_view line) {
  std::size_t blank = std::min(line.find(' '), line.size());
  std::string_view word = line.substr(0, blank);
  std::string_view rest = trimmed(line.substr(blank));
  if (word == "require") {
    std::size_t colon = rest.rfind(" : ");
    if (colon == std::string_view::npos)
      return invalid("require: expected \" : \" and a reason at the end");
    auto holds = Expression::parse(trimmed(rest.substr(0, colon)));
    if (!holds.ok())
      return holds.status();
    requirements_.push_back(
        {*std::move(holds), std::string(trimmed(rest.substr(colon + 3)))});
    return Status();
  }
  auto assignment =
      splitAssignment(word == "tune" || word == "derive" ? rest : line);
  if (!assignment.ok())
    return assignment.status();
  const auto &[name, text] = *assignment;
  if (word == "tune") {
    auto values = readValues(text);
    if (!values.ok())
      return Status(values.status()).withContext("tune " + name);
    parameters_.push_back({name, *std::move(values)});
    return Status();
  }
  auto value = Expression::parse(text);
  if (!value.ok())
    return value.status();
  if (word == "derive")
    derived_.push_back({name, *std::move(value)});
  else if (name == "shared_bytes")
    sharedBytes_ = *std::move(value);
  else if (name == "cost")
    cost_ = *std::move(value);
  else
    return invalid(fmt::format("expected tune, derive, require, shared_bytes "
                               "or cost, got \"{}\"",
                               word));
  return Status();
}

Status ConfigSpace::derive(Values &values) const {
  for (const Derived &derived : derived_) {
    auto value = derived.value.evaluate(values);
    if (!value.ok())
      return value.status();
    values[derived.name] = *value;
  }
  if (sharedBytes_) {
    auto bytes = sharedBytes_->evaluate(values);
    if (!bytes.ok())
      return bytes.status();
    values["shared_bytes"] = *bytes;
  }
  return Status();
}

Result<std::optional<std::string>>
ConfigSpace::firstFailure(const Values &values) const {
  for (const Requirement &requirement : requirements_) {
    auto holds = requirement.holds.evaluate(values);
    if (!holds.ok())
      return holds.status();
    if (*holds == 0)
      return std::optional<std::string>(requirement.reason);
  }
  return std::optional<std::string>();
}

Result<std::optional<std::string>>
ConfigSpace::whyNot(const Values &facts, const Values &freeParameters) const {
  Values values = facts;
  for (const Parameter &parameter : parameters_) {
    auto given = freeParameters.find(parameter.name);
    if (given == freeParameters.end())
      return std::optional<std::string>(parameter.name + " has no value");
    if (std::find(parameter.values.begin(), parameter.values.end(),
                  given->second) == parameter.values.end())
      return std::optional<std::string>(fmt::format(
          "{}={} is not among its values", parameter.name, given->second));
    values[parameter.name] = given->second;
  }
  if (Status status = derive(values); !status)
    return status;
  return firstFailure(values);
}

Result<Enumeration> ConfigSpace::enumerate(const Values &facts) const {
  Enumeration found;
  found.total = 1;
  for (const Parameter &parameter : parameters_)
    if (__builtin_mul_overflow(
            found.total, static_cast<std::int64_t>(parameter.values.size()),
            &found.total) ||
        found.total > kMostConfigs)
      return invalid(
          fmt::format("expected at most {} configurations", kMostConfigs));
  for (std::int64_t number = 0; number < found.total; ++number) {
    Values values = facts;
    std::int64_t rest = number;
    for (const Parameter &parameter : parameters_) {
      auto count = static_cast<std::int64_t>(parameter.values.size());
      values[parameter.name] =
          parameter.values[static_cast<std::size_t>(rest % count)];
      rest /= count;
    }
    if (Status status = derive(values); !status)
      return status;
    auto failure = firstFailure(values);
    if (!failure.ok())
      return failure.status();
    if (*failure) {
      auto it = std::find_if(
          found.rejected.begin(), found.rejected.end(),
          [&](const auto &entry) { return entry.first == **failure; });
      if (it == found.rejected.end())
        it = found.rejected.insert(it, {**failure, 0});
      ++it->second;
      continue;
    }
    Candidate candidate;
    if (cost_) {
      auto cost = cost_->evaluate(values);
      if (!cost.ok())
        return cost.status();
      candidate.cost = *cost;
    }
    if (sharedBytes_)
      candidate.sharedBytes = values["shared_bytes"];
    for (const Parameter &parameter : parameters_)
      candidate.config[parameter.name] = values[parameter.name];
    for (const Derived &derived : derived_)
      candidate.config[derived.name] = values[derived.name];
    found.candidates.push_back(std::move(candidate));
  }
  std::sort(found.candidates.begin(), found.candidates.end(),
            [](const Candidate &a, const Candidate &b) {
              return std::tie(a.cost, a.config) < std::tie(b.cost, b.config);
            });
  return found;
}

} // namespace spargejit::autotune
