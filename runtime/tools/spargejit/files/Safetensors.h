// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes .safetensors files: an 8-byte little-endian header length,
// a JSON header with dtype, shape and byte range of each tensor, then the data.
// Everything in the header is checked before any of it is used.
#pragma once

#include "spargejit/status.h"
#include "spargejit/tensor.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spargejit::files {

/// One tensor of a file, as its header describes it.
struct SafetensorsEntry {
  std::string name;
  /// The format's own name: "F32", "BF16", "F16", "I32", "BOOL", "I64", …
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t firstByte = 0; ///< from the start of the file
  std::uint64_t byteCount = 0;
};

/// A file whose header has been read and validated; the data stays on disk.
class SafetensorsFile {
public:
  /// IoError when the file cannot be read; InvalidArgument, naming the path and
  /// what is wrong, when the header length, the JSON, a dtype, a shape or the
  /// byte ranges (outside the file, overlapping, with gaps) are not valid.
  static Result<SafetensorsFile> open(const std::string &path);

  const std::vector<SafetensorsEntry> &entries() const { return entries_; }
  /// nullptr when there is none of that name.
  const SafetensorsEntry *find(const std::string &name) const;

  /// The named tensor in memory of its own, in the file's dtype. F32, BF16,
  /// F16, I32 and BOOL of rank 1 to 4; InvalidArgument otherwise.
  Result<Tensor> read(const std::string &name) const;

private:
  std::string path_;
  std::vector<SafetensorsEntry> entries_;
};

/// Writes dense row-major tensors on the CPU, in the order given, with string
/// metadata. The file appears under its name only when it is complete.
Status writeSafetensors(
    const std::string &path,
    const std::vector<std::pair<std::string, TensorView>> &tensors,
    const std::vector<std::pair<std::string, std::string>> &metadata = {});

} // namespace spargejit::files
