// SPDX-License-Identifier: Apache-2.0
//
// OptionChecks.h.
#include "runtime/tools/spargejit/options/OptionChecks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace spargejit::tool {

namespace {

constexpr std::string_view kCudaPrefix = "cuda:";

/// The whole of `text` as a number, or nothing.
template <typename Number>
std::optional<Number> parseNumber(const std::string &text) {
  Number value{};
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Help shows a validator's name; the descriptions say what it would.
CLI::Validator
unnamed(const std::function<std::string(const std::string &)> &check) {
  return CLI::Validator([check](std::string &text) { return check(text); }, "");
}

} // namespace

CLI::Validator numberBetween(double least, double most) {
  return unnamed([=](const std::string &text) -> std::string {
    std::optional<double> value = parseNumber<double>(text);
    if (value && *value >= least && *value <= most)
      return "";
    return fmt::format("expected a number from {} to {}, got {}", least, most,
                       text);
  });
}

CLI::Validator finiteNumber() {
  return unnamed([](const std::string &text) -> std::string {
    std::optional<double> value = parseNumber<double>(text);
    if (value && std::isfinite(*value))
      return "";
    return fmt::format("expected a finite number, got {}", text);
  });
}

CLI::Validator integerBetween(std::int64_t least, std::int64_t most) {
  return unnamed([=](const std::string &text) -> std::string {
    std::optional<std::int64_t> value = parseNumber<std::int64_t>(text);
    if (value && *value >= least && *value <= most)
      return "";
    if (most == std::numeric_limits<std::int64_t>::max())
      return fmt::format("expected a whole number, at least {}, got {}", least,
                         text);
    return fmt::format("expected a whole number from {} to {}, got {}", least,
                       most, text);
  });
}

CLI::Validator oneOf(const std::vector<std::string> &words) {
  return unnamed([words](const std::string &text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end())
      return "";
    return fmt::format("expected one of {}, got {}", fmt::join(words, ", "),
                       text);
  });
}

namespace {

constexpr std::array kPrecisions = {Precision::Inputs, Precision::Fp8Exact,
                                    Precision::Fp8Balanced, Precision::Fp8Fast};

} // namespace

std::vector<std::string> precisionNames() {
  std::vector<std::string> names;
  for (Precision precision : kPrecisions)
    names.emplace_back(precisionName(precision));
  return names;
}

Precision precisionNamed(const std::string &name) {
  for (Precision precision : kPrecisions)
    if (name == precisionName(precision))
      return precision;
  return Precision::Inputs;
}

CLI::Validator deviceName() {
  return unnamed([](const std::string &text) -> std::string {
    if (text == "cpu" || text == "cuda")
      return "";
    auto ordinal = text.starts_with(kCudaPrefix)
                       ? parseNumber<int>(text.substr(kCudaPrefix.size()))
                       : std::nullopt;
    if (ordinal && *ordinal >= 0)
      return "";
    return fmt::format("expected cpu, cuda or cuda:N, got {}", text);
  });
}

Device deviceNamed(const std::string &text) {
  if (text == "cpu")
    return {};
  auto ordinal = text.starts_with(kCudaPrefix)
                     ? parseNumber<int>(text.substr(kCudaPrefix.size()))
                     : std::nullopt;
  return {DeviceKind::Cuda, ordinal.value_or(0)};
}

std::string deviceText(Device device) {
  return device.kind == DeviceKind::Cpu
             ? "cpu"
             : fmt::format("{}{}", kCudaPrefix, device.ordinal);
}

CLI::Validator maskBlockText() {
  return unnamed([](const std::string &text) -> std::string {
    std::size_t x = text.find('x');
    if (x != std::string::npos) {
      auto q = parseNumber<std::int64_t>(text.substr(0, x));
      auto kv = parseNumber<std::int64_t>(text.substr(x + 1));
      if (q && kv && (*q == 64 || *q == 128) &&
          (*kv == 16 || *kv == 32 || *kv == 64 || *kv == 128))
        return "";
    }
    return fmt::format("expected QxKV with Q in {{64,128}} and KV in "
                       "{{16,32,64,128}}, got {}",
                       text);
  });
}

CLI::Validator headDimension() {
  return unnamed([](const std::string &text) -> std::string {
    auto value = parseNumber<std::int64_t>(text);
    if (value && *value >= 8 && *value <= 256 && *value % 8 == 0)
      return "";
    return fmt::format("expected a multiple of 8 from 8 to 256, got {}", text);
  });
}

MaskBlock parseMaskBlock(const std::string &text) {
  std::size_t x = text.find('x');
  return {*parseNumber<std::int64_t>(text.substr(0, x)),
          *parseNumber<std::int64_t>(text.substr(x + 1))};
}

void failUsage(const std::string &option, const std::string &message) {
  throw CLI::ValidationError(option, message);
}

} // namespace spargejit::tool
