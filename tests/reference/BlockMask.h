// SPDX-License-Identifier: Apache-2.0
//
// The plain form of a block mask that the references take and give: one byte
// for every pair of a query block and a key block.
#pragma once

#include "spargejit/attention.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spargejit::reference {

inline std::int64_t ceilDiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// bool [batch, heads, qBlocks, kvBlocks].
struct BlockMask {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t qBlocks = 0;
  std::int64_t kvBlocks = 0;
  std::vector<std::uint8_t> bits;

  BlockMask() = default;
  BlockMask(std::int64_t batchCount, std::int64_t headCount,
            std::int64_t qBlockCount, std::int64_t kvBlockCount, bool value)
      : batch(batchCount), heads(headCount), qBlocks(qBlockCount),
        kvBlocks(kvBlockCount),
        bits(static_cast<std::size_t>(batch * heads * qBlocks * kvBlocks),
             value ? 1 : 0) {}

  std::size_t offset(std::int64_t b, std::int64_t h, std::int64_t i,
                     std::int64_t j) const {
    return static_cast<std::size_t>(((b * heads + h) * qBlocks + i) * kvBlocks +
                                    j);
  }
  bool at(std::int64_t b, std::int64_t h, std::int64_t i,
          std::int64_t j) const {
    return bits[offset(b, h, i, j)] != 0;
  }
  void set(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j,
           bool value) {
    bits[offset(b, h, i, j)] = value ? 1 : 0;
  }

  friend bool operator==(const BlockMask &, const BlockMask &) = default;
};

/// The mask that lists in host memory describe: the first counts[b, h, i]
/// entries of each row (all that there are, if it says more), those outside
/// [0, kvBlocks) left out.
BlockMask maskOfLists(const TensorView &indices, const TensorView &counts,
                      std::int64_t kvBlocks);

} // namespace spargejit::reference
