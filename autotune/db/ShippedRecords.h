// SPDX-License-Identifier: Apache-2.0
//
// The records of autotune/records, compiled into the library, and where else
// records come from.
#pragma once

#include "autotune/db/TuningRecord.h"
#include "runtime/base/Environment.h"

#include <string>
#include <vector>

namespace spargejit::autotune {

/// Records that ship with the library. A line that is none fails a test, not a
/// call.
const std::vector<TuningRecord> &shippedRecords();

/// The file that keeps what this user's calls measured (AttentionConfig::tune),
/// or an empty path where there is no cache folder.
std::string keptRecordsFile(const Environment &settings);

/// All records that calls look at, the preferred first: the files of
/// SPARGEJIT_RECORDS, this user's, the shipped ones. A file that cannot be
/// read, and a line that is no record, is a warning.
std::vector<TuningRecord> knownRecords(const Environment &settings);

} // namespace spargejit::autotune
