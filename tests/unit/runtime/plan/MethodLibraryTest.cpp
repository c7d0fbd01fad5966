// SPDX-License-Identifier: Apache-2.0
//
// Methods by name and by path.
#include "runtime/plan/MethodLibrary.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace spargejit::plan {
namespace {

const std::vector<kernels_ir::EmbeddedText> kTexts = {
    {"backward/block_sparse.mlir", "text of its backward pass"},
    {"kernels/portable/pool.mlir", "a kernel"},
    {"methods/dense.mlir", "text of dense"},
    {"methods/topk.mlir", "text of topk"},
    {"methods/topk.txt", "no method"},
};

class MethodLibraryOfFiles : public testing::Test {
protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("method_library_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string &name, const std::string &text) {
    std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::filesystem::path folder_;
  MethodLibrary library_{kTexts};
};

TEST(MethodLibrary, KnowsItsBuiltInMethods) {
  MethodLibrary library(kTexts);
  EXPECT_EQ(library.names(), (std::vector<std::string>{"dense", "topk"}));
  auto method = library.find("topk");
  ASSERT_TRUE(method.ok());
  EXPECT_EQ((*method)->name, "topk");
  EXPECT_EQ((*method)->fileName, "methods/topk.mlir");
  EXPECT_EQ((*method)->text, "text of topk");
  EXPECT_EQ((*method)->digest, hashText("text of topk"));
}

TEST(MethodLibrary, KeepsBackwardPassesApart) {
  MethodLibrary library(kTexts);
  auto backward = library.findBackward(MethodLibrary::Backward::BlockSparse);
  ASSERT_TRUE(backward.ok());
  EXPECT_EQ((*backward)->fileName, "backward/block_sparse.mlir");
  EXPECT_EQ((*backward)->text, "text of its backward pass");
  EXPECT_EQ(library.find("backward/block_sparse").value(), *backward);
  EXPECT_EQ(
      library.findBackward(MethodLibrary::Backward::Dense).status().code(),
      ErrorCode::Internal);
  EXPECT_FALSE(library.find("block_sparse").ok()) << "as a method";
  EXPECT_TRUE(
      MethodLibrary().findBackward(MethodLibrary::Backward::Dense).ok());
}

TEST(MethodLibrary, ListsTheNamesWhenOneIsUnknown) {
  MethodLibrary library(kTexts);
  auto method = library.find("densest");
  ASSERT_FALSE(method.ok());
  EXPECT_EQ(method.status().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(method.status().message(),
            "config.method: expected one of \"dense\", \"topk\", or the path "
            "of a method file (ends in .mlir), got \"densest\"");
}

TEST(MethodLibrary, HasTheMethodsThatTheHeaderPromises) {
  MethodLibrary library;
  for (const char *name :
       {"dense", "block_sparse", "topk", "topp", "spargeattention2"})
    EXPECT_TRUE(library.find(name).ok()) << name;
}

TEST_F(MethodLibraryOfFiles, ReadsAFile) {
  std::string text("sparge.method @mine\0 and more", 29);
  std::string path = write("mine.mlir", text);
  auto method = library_.find(path);
  ASSERT_TRUE(method.ok()) << method.status().message();
  EXPECT_EQ((*method)->text, text);
  EXPECT_EQ((*method)->fileName, path);
}

TEST_F(MethodLibraryOfFiles, ReadsAnUnchangedFileOnce) {
  std::string path = write("mine.mlir", "one");
  auto first = library_.find(path), second = library_.find(path);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST_F(MethodLibraryOfFiles, ReadsAChangedFileAgain) {
  std::string path = write("mine.mlir", "one");
  ASSERT_TRUE(library_.find(path).ok());
  write("mine.mlir", "three");
  auto method = library_.find(path);
  ASSERT_TRUE(method.ok());
  EXPECT_EQ((*method)->text, "three");
}

TEST_F(MethodLibraryOfFiles, ReadsAnEmptyFile) {
  auto method = library_.find(write("empty.mlir", ""));
  ASSERT_TRUE(method.ok()) << method.status().message();
  EXPECT_EQ((*method)->text, "");
}

TEST_F(MethodLibraryOfFiles, TellsWhyAFileCannotBeRead) {
  std::string path = folder_ / "absent.mlir";
  auto absent = library_.find(path);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.status().code(), ErrorCode::IoError);
  EXPECT_EQ(absent.status().message(), "config.method: cannot read " + path +
                                           ": No such file or directory");
  std::filesystem::create_directory(folder_ / "folder.mlir");
  auto folder = library_.find(folder_ / "folder.mlir");
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.status().message().find("not a regular file"),
            std::string::npos);
  // A terabyte of nothing: no disk, and no memory that would hold it.
  path = write("large.mlir", "");
  std::filesystem::resize_file(path, 1ULL << 40);
  auto large = library_.find(path);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.status().code(), ErrorCode::IoError);
  EXPECT_EQ(large.status().message(),
            "config.method: cannot read " + path +
                ": expected at most 1048576 bytes, got 1099511627776");
}

} // namespace
} // namespace spargejit::plan
