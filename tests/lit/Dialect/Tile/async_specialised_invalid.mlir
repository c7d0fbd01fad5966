// SPDX-License-Identifier: Apache-2.0
//
// Sizes that break a type's rule only once they are fixed are found where the
// shared memory or the map is made.
// RUN: sparge-opt %s -verify-diagnostics -split-input-file --tile-specialise="parameters=n=264,rows=12,swizzle_bytes=96"

!slot = !tile.shared<n x 64 x bf16, swizzle swizzle_bytes>
tile.kernel @swizzle(%x: !tile.global<4 x bf16>) parameters [n, swizzle_bytes] grid %x by n {
  // expected-error @below {{expects a swizzle of 16, 32, 64 or 128 bytes, got 96}}
  %ring = tile.ring stages 2 passed_by [1] : !tile.ring<!slot>
}

// -----

!slot = !tile.shared<rows x 64 x bf16, swizzle 128>
tile.kernel @rows(%x: !tile.global<4 x bf16>) parameters [rows] grid %x by rows {
  // expected-error @below {{expects positive sizes and a matrix's rows to be a multiple of 8, got 12 x 64}}
  %ring = tile.ring stages 2 passed_by [1] : !tile.ring<!slot>
}

// -----

!slot = !tile.shared<n x 64 x bf16, swizzle 128>
tile.kernel @box(%x: !tile.global<4 x bf16>) parameters [n] grid %x by n {
  // expected-error @below {{expects a box of at most 256 rows, got 264}}
  %map = tile.tensor_map %x : !tile.global<4 x bf16> -> !tile.tensor_map<4, !slot>
}
