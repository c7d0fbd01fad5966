// SPDX-License-Identifier: Apache-2.0
//
// Safetensors files: what is written is read back, and no file that breaks the
// format is accepted or crashes the reader.
#include "runtime/tools/spargejit/files/Safetensors.h"

#include "tests/numerics/harness/TestSeed.h"
#include "tests/unit/runtime/tools/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cstring>

namespace spargejit::files {
namespace {

Tensor randomTensor(DataType dtype, const std::vector<std::int64_t> &shape,
                    reference::Random &random) {
  Tensor tensor = Tensor::allocate(dtype, shape).value();
  auto *bytes = tensor.data<unsigned char>();
  std::size_t count = static_cast<std::size_t>(tensor.view().elementCount()) *
                      dataTypeSize(dtype);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<unsigned char>(random.next());
  return tensor;
}

/// A file made of this header and these many bytes of data.
std::string fileBytes(const std::string &header, std::size_t dataBytes) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header + std::string(dataBytes, 'x');
}

/// The message of opening a file with these bytes; "" when it opens.
std::string openMessage(const TemporaryFolder &folder,
                        const std::string &bytes) {
  std::string path = folder.file("case.safetensors");
  writeBytes(path, bytes);
  return SafetensorsFile::open(path).status().message();
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  reference::Random random = numerics::randomForTest();
  TemporaryFolder folder;
  std::string path = folder.file("all.safetensors");
  std::vector<Tensor> tensors = {
      randomTensor(DataType::Float32, {2, 3, 4, 5}, random),
      randomTensor(DataType::BFloat16, {7, 8, 9}, random),
      randomTensor(DataType::Float16, {3, 5}, random),
      randomTensor(DataType::Int32, {11}, random),
      randomTensor(DataType::Bool, {0, 4}, random)};
  std::vector<std::pair<std::string, TensorView>> named;
  for (const Tensor &tensor : tensors)
    named.emplace_back("t" + std::to_string(named.size()), tensor.view());
  ASSERT_TRUE(writeSafetensors(path, named, {{"made", "by a test"}}).ok());
  EXPECT_EQ(folder.fileCount(), 1u);

  SafetensorsFile file = SafetensorsFile::open(path).value();
  EXPECT_EQ(file.entries().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Tensor read = file.read(named[i].first).value();
    const TensorView &expected = named[i].second;
    EXPECT_EQ(read.view().dtype, expected.dtype);
    EXPECT_EQ(read.view().rank, expected.rank);
    EXPECT_EQ(read.view().sizes, expected.sizes);
    EXPECT_EQ(std::memcmp(read.data<void>(), expected.data,
                          static_cast<std::size_t>(expected.elementCount()) *
                              dataTypeSize(expected.dtype)),
              0);
  }
}

TEST(Safetensors, RefusesEveryTruncation) {
  reference::Random random = numerics::randomForTest();
  TemporaryFolder folder;
  std::string path = folder.file("whole.safetensors");
  Tensor tensor = randomTensor(DataType::Float16, {4, 5}, random);
  ASSERT_TRUE(writeSafetensors(path, {{"q", tensor.view()}}).ok());
  std::string bytes = readBytes(path);
  ASSERT_EQ(openMessage(folder, bytes), "");
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_NE(openMessage(folder, bytes.substr(0, length)), "")
        << "cut at " << length;
}

TEST(Safetensors, SurvivesFlippedBytes) {
  reference::Random random = numerics::randomForTest();
  TemporaryFolder folder;
  std::string path = folder.file("whole.safetensors");
  Tensor q = randomTensor(DataType::Float32, {2, 3}, random);
  Tensor k = randomTensor(DataType::BFloat16, {2, 3}, random);
  ASSERT_TRUE(writeSafetensors(path, {{"q", q.view()}, {"k", k.view()}}).ok());
  const std::string bytes = readBytes(path);
  const std::size_t header = bytes.size() - 6 * 4 - 6 * 2;
  for (int i = 0; i < 500; ++i) {
    std::string changed = bytes;
    for (std::int64_t flips = 1 + random.below(3); flips > 0; --flips)
      changed[static_cast<std::size_t>(
          random.below(static_cast<std::int64_t>(header)))] =
          static_cast<char>(random.next());
    writeBytes(path, changed);
    Result<SafetensorsFile> file = SafetensorsFile::open(path);
    if (!file)
      continue;
    for (const SafetensorsEntry &entry : file->entries()) {
      EXPECT_LE(entry.firstByte + entry.byteCount, bytes.size());
      EXPECT_TRUE(file->read(entry.name).ok() || entry.shape.size() > 4 ||
                  entry.shape.empty() ||
                  (entry.dtype != "F32" && entry.dtype != "BF16"));
    }
  }
}

struct BadHeader {
  const char *header;
  const char *message;
};

TEST(Safetensors, SaysWhatIsWrongWithAHeader) {
  TemporaryFolder folder;
  const BadHeader cases[] = {
      {"", "does not start with '{'"},
      {"[1]", "does not start with '{'"},
      {"{\"q\":", "not a JSON object"},
      {R"({"q":{"dtype":"F32","shape":[NaN],"data_offsets":[0,4]}})",
       "not a JSON object"},
      {R"({"q":3})", "tensor q: expected an object, got 3"},
      {R"({"q":{"shape":[1],"data_offsets":[0,4]}})", "'dtype' is missing"},
      {R"({"q":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})",
       "unknown dtype \"F33\""},
      {R"({"q":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})",
       "unknown dtype 7"},
      {R"({"q":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
       "shape: expected non-negative integers"},
      {R"({"q":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})",
       "shape: expected non-negative integers"},
      {R"({"q":{"dtype":"F32","shape":[4294967296,4294967296],)"
       R"("data_offsets":[0,4]}})",
       "shape: too large"},
      {R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
       "expected 8 bytes for F32 [2], got 4"},
      {R"({"q":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
       "expected [begin, end]"},
      {R"({"q":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})",
       "expected [begin, end]"},
      {R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       "truncated"},
      {R"({"q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("k":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}})",
       "overlap"},
      {R"({"q":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}})",
       "2 bytes before tensor q belong to no tensor"},
      {R"({"q":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})",
       "2 bytes at the end belong to no tensor"},
      {R"({"q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "two tensors are named q"},
  };
  for (const BadHeader &bad : cases)
    EXPECT_PRED_FORMAT2(testing::IsSubstring, bad.message,
                        openMessage(folder, fileBytes(bad.header, 4)))
        << bad.header;
}

TEST(Safetensors, RefusesDeepNestingWithoutRecursion) {
  TemporaryFolder folder;
  constexpr std::size_t kDepth = 500'000;
  std::string header =
      "{\"q\":" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}";
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "nested too deeply",
                      openMessage(folder, fileBytes(header, 0)));
}

TEST(Safetensors, RefusesHeaderLengthsBeyondTheFile) {
  TemporaryFolder folder;
  for (char last : {'\x01', '\x7f', '\xff'}) {
    std::string bytes = fileBytes("{}", 0);
    bytes[7] = last;
    EXPECT_PRED_FORMAT2(testing::IsSubstring, "header length: expected at most",
                        openMessage(folder, bytes));
  }
}

TEST(Safetensors, NamesTheTensorsThereAre) {
  reference::Random random = numerics::randomForTest();
  TemporaryFolder folder;
  std::string path = folder.file("two.safetensors");
  Tensor tensor = randomTensor(DataType::Float32, {2}, random);
  ASSERT_TRUE(
      writeSafetensors(path, {{"q", tensor.view()}, {"k", tensor.view()}})
          .ok());
  Result<Tensor> missing = SafetensorsFile::open(path).value().read("v");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), ErrorCode::InvalidArgument);
  EXPECT_PRED_FORMAT2(testing::IsSubstring,
                      "tensor v: not found, the file has: k, q",
                      missing.status().message());
}

TEST(Safetensors, LeavesNoHalfFileBehind) {
  TemporaryFolder folder;
  Tensor tensor = Tensor::allocate(DataType::Float32, {4}).value();
  Status status = writeSafetensors(folder.file("no/such/folder.safetensors"),
                                   {{"q", tensor.view()}});
  EXPECT_EQ(status.code(), ErrorCode::IoError);
  EXPECT_EQ(folder.fileCount(), 0u);
}

} // namespace
} // namespace spargejit::files
