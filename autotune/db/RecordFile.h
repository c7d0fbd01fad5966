// SPDX-License-Identifier: Apache-2.0
//
// Files of tuning records: JSON Lines, a header and then one record a line.
// Made to be appended to, merged and read by people.
#pragma once

#include "autotune/db/TuningRecord.h"

#include <string>
#include <vector>

namespace spargejit::autotune {

struct RecordFile {
  std::vector<TuningRecord> records;
  /// "file:line: reason" of each line that was skipped.
  std::vector<std::string> skipped;
};

/// Reads a file; lines that are no records are skipped and reported. IoError
/// for one that cannot be read, InvalidArgument for one without the header.
Result<RecordFile> readRecords(const std::string &path);
/// The same of a text, with `name` for messages.
Result<RecordFile> parseRecords(const std::string &text,
                                const std::string &name);

/// Adds records to a file by one write each, so that writers at the same time
/// do not mix theirs; makes the file with its header. A line that an earlier
/// writer left unfinished is ended first. IoError.
Status appendRecords(const std::string &path,
                     const std::vector<TuningRecord> &records);
/// Writes a whole file in place of an earlier one. IoError.
Status writeRecords(const std::string &path,
                    const std::vector<TuningRecord> &records);

/// One record of each trial: the latest by date.
std::vector<TuningRecord> mergeRecords(std::vector<TuningRecord> records);
/// For each kernel, problem and environment the fastest: the winner where one
/// is marked, else the default, else the fastest that was measured.
std::vector<TuningRecord> bestRecords(const std::vector<TuningRecord> &records);

} // namespace spargejit::autotune
