// SPDX-License-Identifier: Apache-2.0
//
// The records that ship with the library, and where others come from.
#include "autotune/db/ShippedRecords.h"

#include "autotune/db/RecordFile.h"
#include "autotune/search/ProblemFacts.h"
#include "autotune/space/ConfigSpace.h"
#include "kernels_ir/embed/EmbeddedTexts.h"
#include "tests/unit/autotune/RecordTrial.h"
#include "tests/unit/runtime/tools/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace spargejit::autotune {
namespace {

/// The lines of all files of autotune/records.
std::vector<std::string> shippedLines() {
  std::vector<std::string> lines;
  for (const auto &entry :
       std::filesystem::directory_iterator(SPARGEJIT_RECORDS_FOLDER)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      lines.push_back(line);
  }
  return lines;
}

TEST(ShippedRecords, AreAllRecordsButForTheHeaders) {
  std::size_t headers = 0;
  const std::vector<std::string> lines = shippedLines();
  for (const std::string &line : lines)
    headers += line.starts_with("{\"spargejit_tuning_records\"");
  EXPECT_GT(headers, 0u);
  EXPECT_EQ(shippedRecords().size(), lines.size() - headers);
}

/// A configuration that a requirement rules out may not even compile.
TEST(ShippedRecords, AreInTheirKernelsSpaces) {
  for (const TuningRecord &record : shippedRecords()) {
    EXPECT_TRUE(record.isMeasured());
    const std::string folder =
        record.environment.target == "host" ? "portable" : "sm90";
    const auto *text = kernels_ir::findEmbeddedText("kernels/" + folder + "/" +
                                                    record.kernel + ".tuning");
    ASSERT_NE(text, nullptr) << record.kernel;
    auto space = ConfigSpace::parse(text->text);
    ASSERT_TRUE(space.ok());
    auto reason = space->whyNot(factsOf(record.problem), record.config);
    ASSERT_TRUE(reason.ok()) << reason.status().message();
    EXPECT_FALSE(*reason) << record.problem.name << ": " << **reason;
  }
}

TEST(KnownRecords, AreThoseOfFilesThenTheUsersThenTheShipped) {
  files::TemporaryFolder folder;
  auto random = numerics::randomForTest();
  std::vector<TuningRecord> written;
  for (int i = 0; i < 2; ++i)
    written.push_back(unit::randomRecord(random));
  Environment settings;
  settings.recordFiles = {folder.file("given.jsonl"),
                          folder.file("not there.jsonl")};
  settings.cacheFolder = folder.file("");
  ASSERT_TRUE(appendRecords(settings.recordFiles[0], {written[0]}).ok());
  ASSERT_TRUE(appendRecords(keptRecordsFile(settings), {written[1]}).ok());
  auto known = knownRecords(settings);
  ASSERT_EQ(known.size(), 2 + shippedRecords().size());
  EXPECT_EQ(recordLine(known[0]), recordLine(written[0]));
  EXPECT_EQ(recordLine(known[1]), recordLine(written[1]));
  settings.usesRecords = false;
  EXPECT_TRUE(knownRecords(settings).empty());
  settings = Environment();
  EXPECT_EQ(known.size() - 2, knownRecords(settings).size());
  EXPECT_EQ(keptRecordsFile(settings), "");
}

} // namespace
} // namespace spargejit::autotune
