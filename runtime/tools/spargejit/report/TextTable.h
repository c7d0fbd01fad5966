// SPDX-License-Identifier: Apache-2.0
//
// Aligned rows of label, number, unit and note for people to read.
#pragma once

#include <string>
#include <vector>

namespace spargejit::report {

class TextTable {
public:
  /// A row of a label and free text.
  void text(const std::string &label, const std::string &value);
  /// A row of a label, a right-aligned value, its unit and a note.
  void value(const std::string &label, const std::string &value,
             const std::string &unit = "", const std::string &note = "");
  /// An empty line.
  void gap();

  /// All rows, each ended by a line feed.
  std::string str() const;

private:
  struct Row {
    std::string label, value, unit, note;
    bool isText = false;
  };
  std::vector<Row> rows_;
};

/// Text in a grid: the widest cell of a column sets its width; two spaces
/// between columns, none at the end of a line.
std::string formatGrid(const std::vector<std::vector<std::string>> &rows);

/// A time with four significant digits, in milliseconds: "0.01234", "12.34".
std::string formatMilliseconds(double milliseconds);

/// A ratio with four decimals, or three digits when it is below 0.001.
std::string formatRatio(double ratio);

} // namespace spargejit::report
