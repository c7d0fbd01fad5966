// SPDX-License-Identifier: Apache-2.0
//
// Pictures of masks, read back with libpng and compared with the lists.
#include "runtime/tools/spargejit/report/MaskImage.h"

#include "runtime/tools/spargejit/files/Png.h"
#include "tests/numerics/harness/TestSeed.h"
#include "tests/unit/runtime/tools/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <png.h>

namespace spargejit::report {
namespace {

constexpr std::int64_t kBorder = 9; ///< eight pixels of paper and the frame

files::GreyImage readPng(const std::string &path) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_file(&header, path.c_str()), 0)
      << header.message;
  header.format = PNG_FORMAT_GRAY;
  files::GreyImage image(header.width, header.height, 0);
  EXPECT_NE(
      png_image_finish_read(&header, nullptr, image.pixels.data(), 0, nullptr),
      0)
      << header.message;
  return image;
}

/// Random lists of a mask with these blocks.
BlockLists randomLists(std::int64_t batch, std::int64_t heads,
                       std::int64_t qBlocks, std::int64_t kvBlocks,
                       std::int64_t maskBlockQ, std::int64_t maskBlockKv,
                       double density) {
  reference::Random random = numerics::randomForTest();
  BlockLists lists;
  lists.maskBlockQ = maskBlockQ;
  lists.maskBlockKv = maskBlockKv;
  lists.qLen = qBlocks * maskBlockQ - 1;
  lists.kvLen = kvBlocks * maskBlockKv - 1;
  lists.indices =
      Tensor::allocate(DataType::Int32, {batch, heads, qBlocks, kvBlocks})
          .value();
  lists.counts =
      Tensor::allocate(DataType::Int32, {batch, heads, qBlocks}).value();
  for (std::int64_t row = 0; row < batch * heads * qBlocks; ++row) {
    auto *list = lists.indices.data<std::int32_t>() + row * kvBlocks;
    std::int32_t count = 0;
    for (std::int32_t block = 0; block < kvBlocks; ++block)
      if (random.chance(density))
        list[count++] = block;
    lists.counts.data<std::int32_t>()[row] = count;
    std::fill(list + count, list + kvBlocks, -1);
  }
  return lists;
}

bool isSelected(const BlockLists &lists, std::int64_t plane, std::int64_t row,
                std::int64_t block) {
  const auto &sizes = lists.indices.view().sizes;
  std::int64_t list = plane * sizes[2] + row;
  const auto *first = lists.indices.data<std::int32_t>() + list * sizes[3];
  return std::find(first, first + lists.counts.data<std::int32_t>()[list],
                   block) != first + lists.counts.data<std::int32_t>()[list];
}

TEST(MaskImage, DrawsEachBlockAsARectangle) {
  files::TemporaryFolder folder;
  BlockLists lists = randomLists(1, 1, 5, 13, 128, 64, 0.4);
  auto paths = writeMaskImages(folder.file("mask.png"), lists).value();
  ASSERT_EQ(paths, std::vector<std::string>{folder.file("mask.png")});
  files::GreyImage image = readPng(paths[0]);
  std::int64_t width = (image.width - 2 * kBorder) / 13;
  std::int64_t height = (image.height - 2 * kBorder) / 5;
  EXPECT_EQ(height, 2 * width); // a block is 128 queries by 64 keys
  EXPECT_GE(image.width - 2 * kBorder, 512);
  for (std::int64_t y = 0; y < 5 * height; ++y)
    for (std::int64_t x = 0; x < 13 * width; ++x)
      ASSERT_EQ(image.at(x + kBorder, y + kBorder) < 128,
                isSelected(lists, 0, y / height, x / width))
          << "pixel " << x << ", " << y;
  // Paper outside, a frame around.
  EXPECT_EQ(image.at(0, 0), 255);
  EXPECT_LT(image.at(kBorder - 1, kBorder - 1), 200);
}

TEST(MaskImage, WritesOneFileForEachBatchAndHead) {
  files::TemporaryFolder folder;
  auto names = [&](std::int64_t batch, std::int64_t heads) {
    std::vector<std::string> paths =
        writeMaskImages(folder.file("a.b.png"),
                        randomLists(batch, heads, 2, 2, 64, 64, 0.5))
            .value();
    for (std::string &path : paths)
      path = path.substr(path.find_last_of('/') + 1);
    return paths;
  };
  EXPECT_EQ(names(1, 2),
            (std::vector<std::string>{"a.b-h0.png", "a.b-h1.png"}));
  EXPECT_EQ(names(2, 1),
            (std::vector<std::string>{"a.b-b0-h0.png", "a.b-b1-h0.png"}));
  EXPECT_EQ(folder.fileCount(), 4u);
}

TEST(MaskImage, AveragesLargeMasks) {
  files::TemporaryFolder folder;
  // 96 000 tokens with blocks of 128 x 16.
  BlockLists lists = randomLists(1, 1, 750, 6000, 128, 16, 0.3);
  auto paths = writeMaskImages(folder.file("large.png"), lists).value();
  files::GreyImage image = readPng(paths[0]);
  std::int64_t width = image.width - 2 * kBorder;
  std::int64_t height = image.height - 2 * kBorder;
  EXPECT_GE(width, 512);
  EXPECT_LE(width, 1024);
  EXPECT_EQ(width, height);
  double mean = 0;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      mean += image.at(x + kBorder, y + kBorder);
  mean /= static_cast<double>(width * height);
  // Grey is linear in the density, from 242 (none) to 24 (all).
  EXPECT_NEAR((242 - mean) / (242 - 24), lists.density(), 0.005);
}

TEST(MaskImage, ReportsAFolderThatIsNotThere) {
  files::TemporaryFolder folder;
  auto paths = writeMaskImages(folder.file("no/mask.png"),
                               randomLists(1, 1, 2, 2, 64, 64, 0.5));
  ASSERT_FALSE(paths.ok());
  EXPECT_EQ(paths.status().code(), ErrorCode::IoError);
}

} // namespace
} // namespace spargejit::report
