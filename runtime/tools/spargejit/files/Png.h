// SPDX-License-Identifier: Apache-2.0
//
// Writes 8-bit grey PNG pictures with libpng.
#pragma once

#include "spargejit/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spargejit::files {

/// Rows from top to bottom, one byte a pixel, 0 black and 255 white.
struct GreyImage {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;

  GreyImage(std::int64_t imageWidth, std::int64_t imageHeight,
            std::uint8_t fill)
      : width(imageWidth), height(imageHeight),
        pixels(static_cast<std::size_t>(imageWidth * imageHeight), fill) {}
  std::uint8_t &at(std::int64_t x, std::int64_t y) {
    return pixels[static_cast<std::size_t>(y * width + x)];
  }
};

/// IoError, with the path, when the file cannot be written.
Status writePng(const std::string &path, const GreyImage &image);

} // namespace spargejit::files
