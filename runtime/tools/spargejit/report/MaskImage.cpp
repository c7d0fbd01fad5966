// SPDX-License-Identifier: Apache-2.0
//
// MaskImage.h: lists to per-pixel density to grey.
#include "runtime/tools/spargejit/report/MaskImage.h"

#include "runtime/tools/spargejit/files/Png.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace spargejit::report {

namespace {

constexpr std::int64_t kLeastPixels = 512;
constexpr std::int64_t kMostPixels = 1024;
constexpr std::int64_t kMargin = 8;
constexpr std::uint8_t kPaper = 255;
constexpr std::uint8_t kFrame = 150;
constexpr double kEmpty = 242; ///< grey level of a block that is not selected
constexpr double kFull = 24;   ///< and of one that is

/// How blocks become pixels: first averaged over averageX × averageY of them,
/// then drawn scaleX × scaleY large.
struct Raster {
  std::int64_t averageX = 1, averageY = 1;
  std::int64_t scaleX = 1, scaleY = 1;
  std::int64_t cellsX = 0, cellsY = 0;
};

std::int64_t ceilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Raster makeRaster(std::int64_t qBlocks, std::int64_t kvBlocks,
                  const BlockLists &lists) {
  Raster raster;
  // Mask block sizes are powers of two, so one side is a multiple of the other.
  std::int64_t unitX =
      std::max<std::int64_t>(1, lists.maskBlockKv / lists.maskBlockQ);
  std::int64_t unitY =
      std::max<std::int64_t>(1, lists.maskBlockQ / lists.maskBlockKv);
  std::int64_t longest = std::max(kvBlocks * unitX, qBlocks * unitY);
  if (longest > kMostPixels) {
    // Averaging takes over the stretching, so that a cell is square in tokens.
    std::int64_t factor = 2;
    while (longest > factor * kMostPixels)
      factor *= 2;
    raster.averageX = std::max<std::int64_t>(1, factor / unitX);
    raster.averageY = std::max<std::int64_t>(1, factor / unitY);
    raster.scaleX = std::max<std::int64_t>(1, unitX / factor);
    raster.scaleY = std::max<std::int64_t>(1, unitY / factor);
  } else {
    std::int64_t scale =
        std::max<std::int64_t>(1, ceilDiv(kLeastPixels, longest));
    raster.scaleX = unitX * scale;
    raster.scaleY = unitY * scale;
  }
  raster.cellsX = ceilDiv(kvBlocks, raster.averageX);
  raster.cellsY = ceilDiv(qBlocks, raster.averageY);
  return raster;
}

/// Share of selected blocks in each cell, [cellsY, cellsX], for the lists of
/// one (batch, head).
std::vector<double> cellDensities(const BlockLists &lists, std::int64_t plane,
                                  std::int64_t kvBlocks, const Raster &raster) {
  std::int64_t qBlocks = lists.counts.view().sizes[2];
  std::int64_t capacity = lists.indices.view().sizes[3];
  std::vector<double> cells(
      static_cast<std::size_t>(raster.cellsX * raster.cellsY), 0.0);
  const auto *indices = lists.indices.data<const std::int32_t>();
  const auto *counts = lists.counts.data<const std::int32_t>();
  for (std::int64_t row = 0; row < qBlocks; ++row) {
    std::int64_t list = plane * qBlocks + row;
    std::int64_t cellY = row / raster.averageY;
    std::int64_t rows =
        std::min(raster.averageY, qBlocks - cellY * raster.averageY);
    for (std::int64_t slot = 0; slot < counts[list]; ++slot) {
      std::int64_t block = indices[list * capacity + slot];
      if (block < 0 || block >= kvBlocks)
        continue;
      std::int64_t cellX = block / raster.averageX;
      std::int64_t columns =
          std::min(raster.averageX, kvBlocks - cellX * raster.averageX);
      cells[static_cast<std::size_t>(cellY * raster.cellsX + cellX)] +=
          1.0 / static_cast<double>(rows * columns);
    }
  }
  return cells;
}

files::GreyImage drawCells(const std::vector<double> &cells,
                           const Raster &raster) {
  std::int64_t width = raster.cellsX * raster.scaleX;
  std::int64_t height = raster.cellsY * raster.scaleY;
  files::GreyImage image(width + 2 * (kMargin + 1), height + 2 * (kMargin + 1),
                         kPaper);
  for (std::int64_t y = -1; y <= height; ++y)
    for (std::int64_t x = -1; x <= width; ++x) {
      std::uint8_t grey = kFrame;
      if (x >= 0 && y >= 0 && x < width && y < height) {
        double density = cells[static_cast<std::size_t>(
            y / raster.scaleY * raster.cellsX + x / raster.scaleX)];
        grey = static_cast<std::uint8_t>(
            std::lround(kEmpty + (kFull - kEmpty) * std::min(1.0, density)));
      }
      image.at(x + kMargin + 1, y + kMargin + 1) = grey;
    }
  return image;
}

std::string pathFor(const std::string &path, std::int64_t batches,
                    std::int64_t heads, std::int64_t plane) {
  if (batches * heads == 1)
    return path;
  std::string tag = fmt::format("-h{}", plane % heads);
  if (batches > 1)
    tag = fmt::format("-b{}", plane / heads) + tag;
  std::size_t slash = path.find_last_of('/');
  std::size_t nameStart = slash == std::string::npos ? 0 : slash + 1;
  std::size_t dot = path.find_last_of('.');
  if (dot == std::string::npos || dot <= nameStart)
    dot = path.size();
  return path.substr(0, dot) + tag + path.substr(dot);
}

} // namespace

Result<std::vector<std::string>> writeMaskImages(const std::string &path,
                                                 const BlockLists &lists) {
  const TensorView &counts = lists.counts.view();
  std::int64_t qBlocks = counts.sizes[2];
  std::int64_t kvBlocks = ceilDiv(lists.kvLen, lists.maskBlockKv);
  if (qBlocks == 0 || kvBlocks == 0)
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("{}: the mask has no blocks to draw", path));
  Raster raster = makeRaster(qBlocks, kvBlocks, lists);
  std::vector<std::string> paths;
  for (std::int64_t plane = 0; plane < counts.sizes[0] * counts.sizes[1];
       ++plane) {
    paths.push_back(pathFor(path, counts.sizes[0], counts.sizes[1], plane));
    files::GreyImage image =
        drawCells(cellDensities(lists, plane, kvBlocks, raster), raster);
    if (Status status = files::writePng(paths.back(), image); !status)
      return status;
  }
  return paths;
}

} // namespace spargejit::report
