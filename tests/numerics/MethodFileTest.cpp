// SPDX-License-Identifier: Apache-2.0
//
// A method is one file and no C++: a file of the user's works as the built-in
// ones do, and a mistake in it is reported where it stands.
#include "tests/numerics/harness/AttentionTrial.h"
#include "tests/numerics/harness/SelectionTrial.h"
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace spargejit::numerics {
namespace {

using reference::Random;

const std::string kMethodFile =
    std::string(SPARGEJIT_TEST_DATA_FOLDER) + "/topk_diagonal.mlir";

std::string readText(const std::string &path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A method file of its own for a test, removed afterwards.
class MethodFile : public BackendTest {
protected:
  MethodFile()
      : path_(testing::TempDir() + "/method_" + std::to_string(getpid()) +
              ".mlir") {}
  ~MethodFile() override { std::filesystem::remove(path_); }

  const std::string &write(const std::string &text) {
    std::ofstream(path_) << text;
    return path_;
  }
  /// The good text with one occurrence of `from` replaced.
  std::string changed(const std::string &from, const std::string &to) {
    std::string text = readText(kMethodFile);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
  Status run(const std::string &method) {
    Random random = randomForTest();
    AttentionTrial trial(backend(), {.qLen = 200, .kvLen = 300}, random);
    trial.config.method = method;
    return trial.run();
  }

private:
  std::string path_;
};
SPARGEJIT_ON_EVERY_BACKEND(MethodFile);

// Top-k with the diagonal block always kept, from a file: in every list stands
// the block with the last key that the query block's last row sees.
TEST_P(MethodFile, DiagonalBlockIsInEveryList) {
  SelectionTally tally;
  for (const bool causal : {false, true}) {
    for (const auto &[qLen, kvLen] :
         {std::pair{1000, 1000}, std::pair{500, 1300}, std::pair{900, 300}}) {
      Random random = randomForTest();
      SelectionTrial trial(backend(), {.qHeads = 2,
                                       .kvHeads = 2,
                                       .qLen = qLen,
                                       .kvLen = kvLen,
                                       .causal = causal});
      trial.q.fillNormal(random);
      trial.k.fillNormal(random);
      const SelectionRule rule = {kMethodFile, 0.1, 0};
      ASSERT_TRUE(trial.isRight(rule, tally));
      const Result<BlockLists> lists = trial.select(rule);
      ASSERT_TRUE(succeeded(lists.status()));
      for (std::int64_t row = 0; row < 2 * trial.shape.qBlocks(); ++row) {
        const std::int64_t block = row % trial.shape.qBlocks();
        const std::int64_t lastRow =
            std::min<std::int64_t>((block + 1) * 128, qLen) - 1;
        const std::int64_t lastKey = lastRow + kvLen - qLen;
        const auto diagonal = static_cast<std::int32_t>(
            std::clamp<std::int64_t>(lastKey, 0, kvLen - 1) / 64);
        const auto list = listOf(*lists, row);
        if (!causal || lastKey >= 0)
          EXPECT_TRUE(std::binary_search(list.begin(), list.end(), diagonal))
              << "row " << row << " lacks block " << diagonal;
      }
    }
  }
}

// What the file selects is what it attends to.
TEST_P(MethodFile, ResultIsThatOfItsLists) {
  Random random = randomForTest();
  for (const bool causal : {false, true}) {
    AttentionTrial trial(
        backend(), {.batch = 2, .qLen = 400, .kvLen = 600, .causal = causal},
        random);
    trial.config.method = kMethodFile;
    trial.config.topK = 0.2;
    ASSERT_TRUE(succeeded(trial.run()));
    const std::vector<std::byte> o = trial.o.bits();
    const Result<BlockLists> lists =
        selectBlocks(trial.q.view(), trial.k.view(), trial.config);
    ASSERT_TRUE(succeeded(lists.status()));
    trial.useLists(*lists);
    ASSERT_TRUE(trial.isRight(random));
    EXPECT_EQ(trial.o.bits(), o);
  }
}

// The same text as a built-in method, without the diagonal: the same lists.
TEST_P(MethodFile, FileWithoutTheDiagonalIsTopK) {
  Random random = randomForTest();
  const std::string path = write(changed(" {keep_diagonal}", ""));
  SelectionTrial trial(backend(), {.qLen = 1000, .kvLen = 2000});
  trial.q.fillNormal(random);
  trial.k.fillNormal(random);
  const Result<BlockLists> fromFile = trial.select({path, 0.2, 0});
  const Result<BlockLists> builtIn = trial.select({"topk", 0.2, 0});
  ASSERT_TRUE(succeeded(fromFile.status()));
  ASSERT_TRUE(succeeded(builtIn.status()));
  EXPECT_EQ(everyEntryOf(*fromFile), everyEntryOf(*builtIn));
}

// A file edited between two calls is read again.
TEST_P(MethodFile, EditedFileIsReadAgain) {
  Random random = randomForTest();
  SelectionTrial trial(backend(), {.qLen = 1000, .kvLen = 2000});
  trial.q.fillNormal(random);
  trial.k.fillNormal(random);
  const auto select = [&](const std::string &path) {
    const Result<BlockLists> lists = trial.select({path, 0.05, 0});
    EXPECT_TRUE(succeeded(lists.status()));
    return lists.ok() ? everyEntryOf(*lists) : std::vector<std::int32_t>{};
  };
  const auto withDiagonal = select(write(readText(kMethodFile)));
  const auto without = select(write(changed(" {keep_diagonal}", "")));
  EXPECT_NE(withDiagonal, without);
  EXPECT_EQ(select(write(readText(kMethodFile))), withDiagonal);
}

// Mistakes are reported as file:line:column, with the compiler's text; the
// lines are those of the good file.
// cases: 92
TEST_P(MethodFile, MistakesAreReportedWhereTheyStand) {
  const std::string good = readText(kMethodFile);
  struct Mistake {
    std::string from;
    std::string to;
    std::string at;   ///< text whose place must be named
    std::string says; ///< must be in the message
  };
  for (const Mistake &mistake : std::vector<Mistake>{
           {"sparge.pool %k", "sparge.pull %k", "sparge.pull", "sparge.pull"},
           {"%scores top_k", "%score top_k", "%score top_k", "undeclared"},
           {"sparge.pool %q :", "sparge.pool %v :",
            "%v : !sparge.tensor<query>", "%v"},
           {"!sparge.tensor<value>) {", "!sparge.tensor<values>) {", "values>)",
            "query, key, value, output"},
           // The parser points behind what it read last.
           {"sparge.block_scores %pooled_q, %pooled_k",
            "sparge.block_scores %pooled_q %pooled_k", " %pooled_k\n",
            "expected ','"},
       }) {
    const std::string text = changed(mistake.from, mistake.to);
    const std::size_t place = text.find(mistake.at);
    ASSERT_NE(place, std::string::npos) << mistake.at;
    const std::size_t lineStart = text.rfind('\n', place) + 1;
    const auto line = std::count(
        text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n');
    const std::string path = write(text);
    const std::string where = path + ":" + std::to_string(line + 1) + ":" +
                              std::to_string(place - lineStart + 1);
    EXPECT_TRUE(
        failedWith(run(path), ErrorCode::CompileFailed, {where, mistake.says}))
        << mistake.to;
  }
  // The process goes on.
  EXPECT_TRUE(succeeded(run(write(good))));
  EXPECT_TRUE(succeeded(run("topk")));
}

// Well-formed text that is no method, or not one method.
// cases: 92
TEST_P(MethodFile, TextsThatAreNoMethodAreRefused) {
  for (const std::string &text :
       {std::string(), std::string("// nothing\n"),
        std::string("module {\n}\n"), std::string("\0\1\2 not text", 12),
        readText(kMethodFile) + changed("@topk_diagonal", "@second"),
        std::string("func.func @f() {\n  return\n}\n")}) {
    const std::string path = write(text);
    EXPECT_TRUE(failedWith(run(path), ErrorCode::CompileFailed, {path}))
        << text;
  }
}

TEST_P(MethodFile, MissingFilesAndUnknownNamesAreNamed) {
  EXPECT_TRUE(failedWith(run("/nonexistent/folder/my.mlir"), ErrorCode::IoError,
                         {"/nonexistent/folder/my.mlir"}));
  EXPECT_TRUE(failedWith(
      run("sparge"), ErrorCode::InvalidArgument,
      {"sparge", "dense", "block_sparse", "topk", "topp", "spargeattention2"}));
  EXPECT_FALSE(run(testing::TempDir()).ok());
}

} // namespace
} // namespace spargejit::numerics
