// SPDX-License-Identifier: Apache-2.0
//
// TextTable.h.
#include "runtime/tools/spargejit/report/TextTable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace spargejit::report {

namespace {

std::string trimmedLine(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

} // namespace

void TextTable::text(const std::string &label, const std::string &value) {
  rows_.push_back({label, value, "", "", true});
}

void TextTable::value(const std::string &label, const std::string &value,
                      const std::string &unit, const std::string &note) {
  rows_.push_back({label, value, unit, note, false});
}

void TextTable::gap() { rows_.emplace_back(); }

std::string TextTable::str() const {
  std::size_t label = 0;
  std::size_t value = 0;
  std::size_t unit = 0;
  for (const Row &row : rows_) {
    label = std::max(label, row.label.size());
    if (row.isText)
      continue;
    value = std::max(value, row.value.size());
    unit = std::max(unit, row.unit.size());
  }
  std::string result;
  for (const Row &row : rows_)
    result += trimmedLine(
        row.isText ? fmt::format("{:<{}}  {}", row.label, label, row.value)
                   : fmt::format("{:<{}}  {:>{}} {:<{}}  {}", row.label, label,
                                 row.value, value, row.unit, unit, row.note));
  return result;
}

std::string formatGrid(const std::vector<std::vector<std::string>> &rows) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string> &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string result;
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}  ", row[i], widths[i]);
    result += trimmedLine(line);
  }
  return result;
}

std::string formatMilliseconds(double milliseconds) {
  if (!(milliseconds > 0))
    return "0";
  int digitsBefore = static_cast<int>(std::floor(std::log10(milliseconds))) + 1;
  return fmt::format("{:.{}f}", milliseconds,
                     std::clamp(4 - digitsBefore, 0, 5));
}

std::string formatRatio(double ratio) {
  bool small = std::abs(ratio) < 0.001 && ratio != 0;
  return small ? fmt::format("{:.2e}", ratio) : fmt::format("{:.4f}", ratio);
}

} // namespace spargejit::report
