// SPDX-License-Identifier: Apache-2.0
//
// Checks of option values: each returns "" or "expected ..., got ...", before
// which CLI11 puts the option's name.
#pragma once

#include "spargejit/attention.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace spargejit::tool {

/// Rows and columns of a mask block.
struct MaskBlock {
  std::int64_t q = 128;
  std::int64_t kv = 64;
};

/// A finite number from `least` to `most`.
CLI::Validator numberBetween(double least, double most);
/// Any finite number.
CLI::Validator finiteNumber();
/// A whole number from `least` to `most`.
CLI::Validator
integerBetween(std::int64_t least,
               std::int64_t most = std::numeric_limits<std::int64_t>::max());
/// One of the words.
CLI::Validator oneOf(const std::vector<std::string> &words);
/// "QxKV" with Q in {64, 128} and KV in {16, 32, 64, 128}.
CLI::Validator maskBlockText();
/// A multiple of 8 from 8 to 256.
CLI::Validator headDimension();

/// What --precision takes and means.
inline constexpr const char *kPrecisionText =
    "In what attention computes: inputs, or eight bits: fp8_exact, "
    "fp8_balanced, "
    "fp8_fast (docs/eight_bits.md)";
inline constexpr const char *kDefaultPrecision = "inputs";
std::vector<std::string> precisionNames();
/// The precision of one of these names.
Precision precisionNamed(const std::string &name);

/// "cpu", "cuda" or "cuda:N".
CLI::Validator deviceName();

/// The device of a text that deviceName() accepts; "cuda" is cuda:0.
Device deviceNamed(const std::string &text);
/// "cpu" or "cuda:N".
std::string deviceText(Device device);

/// The value of a text that maskBlockText() accepts.
MaskBlock parseMaskBlock(const std::string &text);

/// Throws the usage error "option: message".
[[noreturn]] void failUsage(const std::string &option,
                            const std::string &message);

} // namespace spargejit::tool
