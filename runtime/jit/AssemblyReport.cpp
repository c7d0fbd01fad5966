// SPDX-License-Identifier: Apache-2.0
//
// The lines looked for (ptxas 13.0, driver 580):
//
//   ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; …
//   ptxas info    : Function properties for attention_fwd
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 168 registers, used 16 barriers, 1024 bytes smem
//   ptxas warning : …
#include "runtime/jit/AssemblyReport.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace spargejit::jit {

namespace {

constexpr std::string_view kLoss = "(C75";
constexpr std::string_view kWarning = "warning";

/// The number that stands right before " `unit`" in the line.
std::optional<std::int64_t> numberBefore(std::string_view line,
                                         std::string_view unit) {
  std::size_t end = line.find(std::string(" ").append(unit));
  if (end == std::string_view::npos)
    return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
    --begin;
  std::int64_t number = 0;
  auto [last, failure] =
      std::from_chars(line.data() + begin, line.data() + end, number);
  if (failure != std::errc() || last != line.data() + end)
    return std::nullopt;
  return number;
}

/// Raises `field` to the line's number of `unit`; false when it has none.
template <typename Number>
bool raise(Number &field, std::string_view line, std::string_view unit) {
  auto number = numberBefore(line, unit);
  if (number)
    field = std::max(field, static_cast<Number>(*number));
  return number.has_value();
}

} // namespace

AssemblyReport parseAssemblerLog(std::string_view log) {
  AssemblyReport report;
  bool hasRegisters = false;
  bool hasSpills = false;
  while (!log.empty()) {
    std::size_t end = std::min(log.find('\n'), log.size());
    std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (std::size_t loss = line.find(kLoss); loss != std::string_view::npos) {
      report.losses.emplace_back(line.substr(loss));
      continue;
    }
    // Only as a mark before the colon: names may hold the word as well.
    if (line.substr(0, line.find(':')).find(kWarning) !=
        std::string_view::npos) {
      report.warnings.emplace_back(line);
      continue;
    }
    hasRegisters |= raise(report.registers, line, "registers");
    raise(report.barriers, line, "barriers");
    raise(report.staticSharedBytes, line, "bytes smem");
    raise(report.stackBytes, line, "bytes stack frame");
    raise(report.spillLoadBytes, line, "bytes spill loads");
    hasSpills |= raise(report.spillStoreBytes, line, "bytes spill stores");
  }
  report.complete = hasRegisters && hasSpills;
  return report;
}

std::vector<std::string> faultsOf(const AssemblyReport &report) {
  std::vector<std::string> faults;
  if (report.spillStoreBytes > 0 || report.spillLoadBytes > 0)
    faults.push_back(
        fmt::format("expected no spilled registers, got {} bytes of stores and "
                    "{} of loads",
                    report.spillStoreBytes, report.spillLoadBytes));
  else if (report.stackBytes > 0)
    faults.push_back(
        fmt::format("expected no stack, got {} bytes", report.stackBytes));
  faults.insert(faults.end(), report.losses.begin(), report.losses.end());
  return faults;
}

std::string describeReport(const AssemblyReport &report) {
  return fmt::format("{} registers, {} bytes of stack, {} bytes of spill "
                     "stores and {} of loads, {} barriers, {} bytes of static "
                     "shared memory",
                     report.registers, report.stackBytes,
                     report.spillStoreBytes, report.spillLoadBytes,
                     report.barriers, report.staticSharedBytes);
}

} // namespace spargejit::jit
