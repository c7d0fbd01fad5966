// SPDX-License-Identifier: Apache-2.0
//
// Png.h. libpng reports errors by longjmp, so what it may jump over (this
// file's encode()) holds nothing that needs a destructor.
#include "runtime/tools/spargejit/files/Png.h"

#include "runtime/tools/spargejit/files/FileAccess.h"

#include <fmt/format.h>

#include <csetjmp>
#include <png.h>

namespace spargejit::files {

namespace {

bool encode(png_structp png, png_infop info, std::FILE *stream,
            const GreyImage &image) {
  if (setjmp(png_jmpbuf(png)) != 0)
    return false;
  png_init_io(png, stream);
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), 8, PNG_COLOR_TYPE_GRAY,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (std::int64_t y = 0; y < image.height; ++y)
    png_write_row(png, image.pixels.data() + y * image.width);
  png_write_end(png, nullptr);
  return true;
}

/// libpng's default handlers print; ours keep the text.
void keepError(png_structp png, png_const_charp text) {
  *static_cast<std::string *>(png_get_error_ptr(png)) = text;
  png_longjmp(png, 1);
}
void ignoreWarning(png_structp, png_const_charp) {}

} // namespace

Status writePng(const std::string &path, const GreyImage &image) {
  Result<OutputFile> file = OutputFile::create(path);
  if (!file)
    return file.status();
  std::string reason = "out of memory";
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &reason,
                                            keepError, ignoreWarning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  bool done = info && encode(png, info, file->stream(), image);
  png_destroy_write_struct(&png, &info);
  if (!done)
    return Status(ErrorCode::IoError,
                  fmt::format("{}: cannot be written: {}", path, reason));
  return file->commit();
}

} // namespace spargejit::files
