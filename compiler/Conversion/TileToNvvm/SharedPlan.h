// SPDX-License-Identifier: Apache-2.0
//
// Where the rings of a kernel lie in a CTA's shared memory.
#pragma once

#include "compiler/Dialect/Tile/TileDialect.h"

#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Builders.h"

namespace mlir::sparge {

/// A matrix in shared memory: panels of `swizzle` bytes beside each other, each
/// with all rows (`!tile.shared` in TileTypes.td).
struct SharedMatrix {
  int64_t rows = 0, columns = 0, elementBytes = 0, swizzle = 0;

  explicit SharedMatrix(tile::SharedType type);
  /// Columns of one panel.
  int64_t panelColumns() const { return swizzle / elementBytes; }
  int64_t panels() const { return llvm::divideCeil(columns, panelColumns()); }
  int64_t panelBytes() const { return rows * swizzle; }
  int64_t bytes() const { return panels() * panelBytes(); }
  /// Panels of one core matrix's width: eight rows of 16 bytes.
  bool isCores() const { return swizzle == kCoreBytes / 8; }
  int64_t cores() const { return bytes() / kCoreBytes; }

  static constexpr int64_t kCoreBytes = 128;
};

/// One piece of a ring's slots: slot s lies at offset + s * stride.
struct PiecePlace {
  tile::SharedType type;
  int64_t offset = 0, stride = 0;
};

/// A ring's place. Barrier of station i of slot s:
/// barriers + (i * stages + s) * 8; its arrivals: arrivals[i].
struct RingPlace {
  int64_t stages = 0;
  SmallVector<PiecePlace> pieces;
  int64_t barriers = 0;
  SmallVector<int64_t> arrivals;
  /// Some piece is written or read by ordinary loads and stores.
  bool hasNotes = false;

  int64_t stations() const { return static_cast<int64_t>(arrivals.size()); }
};

/// Matrices first, each at a multiple of 1024 bytes (what the 128-byte swizzle
/// counts from), then notes, then barriers.
class SharedPlan {
public:
  explicit SharedPlan(tile::KernelOp kernel);

  const RingPlace &ring(Value ring) const { return rings_.at(ring); }
  auto begin() const { return rings_.begin(); }
  auto end() const { return rings_.end(); }
  int64_t bytes() const { return bytes_; }
  /// Offset of four bytes that nobody uses.
  int64_t spareWord() const { return spareWord_; }

private:
  int64_t place(int64_t bytes, int64_t alignment);

  llvm::MapVector<Value, RingPlace> rings_;
  int64_t bytes_ = 0;
  int64_t spareWord_ = 0;
};

} // namespace mlir::sparge
