// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes .npy files (NumPy's format, versions 1 and 2): float32,
// float16 and bool, C order, little-endian.
#pragma once

#include "spargejit/status.h"
#include "spargejit/tensor.h"

#include <string>

namespace spargejit::files {

/// The array in `path`, rank 1 to 4. IoError when it cannot be read;
/// InvalidArgument, naming the path and what is wrong, for another version,
/// element type, order or rank, for a malformed header and for a file whose
/// length does not fit the header.
Result<Tensor> readNpy(const std::string &path);

/// Writes a dense row-major float32, float16 or bool tensor on the CPU as
/// version 1. InvalidArgument for other types (the format has no bfloat16).
Status writeNpy(const std::string &path, const TensorView &tensor);

} // namespace spargejit::files
