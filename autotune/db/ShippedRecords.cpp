// SPDX-License-Identifier: Apache-2.0
//
// Where records come from; the shipped ones are written by EmbedTexts.cmake.
#include "autotune/db/ShippedRecords.h"

#include "autotune/db/RecordFile.h"
#include "runtime/base/Log.h"

#include <iterator>
#include <unistd.h>
#include <utility>

namespace spargejit::autotune {

namespace {

struct ShippedFile {
  const char *path;
  const char *text;
};
const ShippedFile kFiles[] = {
#include "ShippedRecordsData.inc"
};

void addFile(std::vector<TuningRecord> &records, Result<RecordFile> file) {
  if (!file.ok()) {
    warnOnce("tuning records: " + file.status().message());
    return;
  }
  for (const std::string &line : file->skipped)
    warnOnce("tuning records: skipped " + line);
  records.insert(records.end(), std::make_move_iterator(file->records.begin()),
                 std::make_move_iterator(file->records.end()));
}

} // namespace

const std::vector<TuningRecord> &shippedRecords() {
  static const std::vector<TuningRecord> kRecords = [] {
    std::vector<TuningRecord> records;
    for (const auto &[path, text] : kFiles)
      addFile(records,
              parseRecords(text, std::string("autotune/records/") + path));
    return records;
  }();
  return kRecords;
}

std::string keptRecordsFile(const Environment &settings) {
  return settings.cacheFolder.empty() ? std::string()
                                      : settings.cacheFolder + "/tuned.jsonl";
}

std::vector<TuningRecord> knownRecords(const Environment &settings) {
  std::vector<TuningRecord> records;
  if (!settings.usesRecords)
    return records;
  for (const std::string &path : settings.recordFiles)
    addFile(records, readRecords(path));
  const std::string kept = keptRecordsFile(settings);
  if (!kept.empty() && ::access(kept.c_str(), F_OK) == 0)
    addFile(records, readRecords(kept));
  records.insert(records.end(), shippedRecords().begin(),
                 shippedRecords().end());
  return records;
}

} // namespace spargejit::autotune
