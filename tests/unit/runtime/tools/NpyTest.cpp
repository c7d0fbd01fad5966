// SPDX-License-Identifier: Apache-2.0
//
// .npy files: round trips, NumPy's variants of the header, and refusals.
#include "runtime/tools/spargejit/files/Npy.h"

#include "tests/numerics/harness/TestSeed.h"
#include "tests/unit/runtime/tools/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cstring>

namespace spargejit::files {
namespace {

/// A file of version `major` with this dictionary and data.
std::string fileBytes(int major, std::string header, const std::string &data) {
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

std::string readMessage(const TemporaryFolder &folder,
                        const std::string &bytes) {
  std::string path = folder.file("case.npy");
  writeBytes(path, bytes);
  return readNpy(path).status().message();
}

TEST(Npy, ReadsBackWhatItWrote) {
  reference::Random random = numerics::randomForTest();
  TemporaryFolder folder;
  for (DataType dtype : {DataType::Float32, DataType::Float16, DataType::Bool})
    for (const std::vector<std::int64_t> &shape : {std::vector<std::int64_t>{5},
                                                   {3, 4},
                                                   {2, 3, 4},
                                                   {2, 1, 3, 5},
                                                   {0, 7}}) {
      Tensor tensor = Tensor::allocate(dtype, shape).value();
      std::size_t bytes =
          static_cast<std::size_t>(tensor.view().elementCount()) *
          dataTypeSize(dtype);
      for (std::size_t i = 0; i < bytes; ++i)
        tensor.data<unsigned char>()[i] =
            static_cast<unsigned char>(random.next());
      std::string path = folder.file("case.npy");
      ASSERT_TRUE(writeNpy(path, tensor.view()).ok());
      Tensor read = readNpy(path).value();
      EXPECT_EQ(read.view().dtype, dtype);
      EXPECT_EQ(read.view().rank, tensor.view().rank);
      EXPECT_EQ(read.view().sizes, tensor.view().sizes);
      EXPECT_EQ(std::memcmp(read.data<void>(), tensor.data<void>(), bytes), 0);
      // NumPy wants the data to begin at a multiple of 64.
      EXPECT_EQ((readBytes(path).size() - bytes) % 64, 0u);
    }
  EXPECT_EQ(folder.fileCount(), 1u);
}

TEST(Npy, AcceptsTheVariantsOfTheHeader) {
  TemporaryFolder folder;
  const std::string data(12, 'a');
  for (int major : {1, 2})
    for (const char *header :
         {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }   ",
          "{\"shape\": (3,), \"descr\": \"<f4\", \"fortran_order\": False}",
          "{'fortran_order':False,'shape':(1,3),'descr':'<f4'}",
          "{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 3 , 1 ) "
          "}"})
      EXPECT_EQ(readMessage(folder, fileBytes(major, header, data)), "")
          << header;
}

TEST(Npy, SaysWhatIsWrong) {
  TemporaryFolder folder;
  const std::string data(12, 'a');
  auto message = [&](const std::string &header, int major = 1) {
    return readMessage(folder, fileBytes(major, header, data));
  };
  auto expectSays = [](const std::string &text, const std::string &found) {
    EXPECT_PRED_FORMAT2(testing::IsSubstring, text, found);
  };
  const std::string shape = "'fortran_order': False, 'shape': (3,)}";
  expectSays("expected element type <f4, <f2 or |b1 (little-endian), got >f4",
             message("{'descr': '>f4', " + shape));
  expectSays("got <f8", message("{'descr': '<f8', " + shape));
  expectSays("expected version 1 or 2, got 3.0",
             message("{'descr': '<f4', " + shape, 3));
  expectSays("got Fortran order", message("{'descr': '<f4', 'fortran_order': "
                                          "True, 'shape': (3,)}"));
  expectSays(
      "truncated: expected 16 bytes of data for shape (4), got 12",
      message("{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}"));
  expectSays(
      "too long: expected 8 bytes",
      message("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"));
  expectSays("more than 2^64",
             message("{'descr': '<f4', 'fortran_order': False, 'shape': "
                     "(9223372036854775807, 9223372036854775807)}"));
  expectSays("expected 1 to 4 dimensions, got 0",
             message("{'descr': '<f4', 'fortran_order': False, 'shape': ()}"));
  for (const char *header :
       {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (nan,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}"})
    expectSays("expected a header {'descr'", message(header));
}

TEST(Npy, RefusesEveryTruncation) {
  TemporaryFolder folder;
  std::string bytes =
      fileBytes(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
                std::string(12, 'a'));
  ASSERT_EQ(readMessage(folder, bytes), "");
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_NE(readMessage(folder, bytes.substr(0, length)), "") << length;
}

TEST(Npy, HasNoBfloat16) {
  TemporaryFolder folder;
  Tensor tensor = Tensor::allocate(DataType::BFloat16, {3}).value();
  Status status = writeNpy(folder.file("x.npy"), tensor.view());
  EXPECT_EQ(status.code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(folder.fileCount(), 0u);
}

} // namespace
} // namespace spargejit::files
