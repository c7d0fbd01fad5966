// SPDX-License-Identifier: Apache-2.0
//
// Ops that compute on tiles: round trip; arith and math work on tiles as is.
// RUN: sparge-opt %s | sparge-opt | FileCheck %s

!a = tensor<?x?xf32, #tile.sizes<m, k>>
!b = tensor<?x?xf32, #tile.sizes<n, k>>
!c = tensor<?x?xf32, #tile.sizes<m, n>>
!rows = tensor<?xf32, #tile.sizes<m>>

// CHECK-LABEL: tile.kernel @computes(
tile.kernel @computes(%x: !tile.global<4 x f32>) parameters [m, n, k] grid %x by m {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1 : i32
  // CHECK: tile.splat %{{.*}} : f32 -> tensor<?x?xf32, #tile.sizes<m, k>>
  %a = tile.splat %zero : f32 -> !a
  %b = tile.splat %zero : f32 -> !b
  %c = tile.splat %zero : f32 -> !c
  // CHECK: tile.dot %{{.*}}, %{{.*}} transposed, %{{.*}} : tensor<?x?xf32, #tile.sizes<m, k>>, tensor<?x?xf32, #tile.sizes<n, k>> -> tensor<?x?xf32, #tile.sizes<m, n>>
  %s = tile.dot %a, %b transposed, %c : !a, !b -> !c
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x?xf32, #tile.sizes<m, n>>, tensor<?x?xf32, #tile.sizes<n, k>> -> tensor<?x?xf32, #tile.sizes<m, k>>
  %o = tile.dot %s, %b, %a : !c, !b -> !a
  // CHECK: tile.reduce max %{{.*}} : tensor<?x?xf32, #tile.sizes<m, n>> -> tensor<?xf32, #tile.sizes<m>>
  %max = tile.reduce max %s : !c -> !rows
  // CHECK: tile.reduce sum %{{.*}}
  %sum = tile.reduce sum %s : !c -> !rows
  // CHECK: tile.expand %{{.*}} axis 1 : tensor<?xf32, #tile.sizes<m>> -> tensor<?x?xf32, #tile.sizes<m, n>>
  %max_all = tile.expand %max axis 1 : !rows -> !c
  // CHECK: arith.subf %{{.*}}, %{{.*}} : tensor<?x?xf32, #tile.sizes<m, n>>
  %difference = arith.subf %s, %max_all : !c
  // CHECK: math.exp2 %{{.*}} : tensor<?x?xf32, #tile.sizes<m, n>>
  %p = math.exp2 %difference : !c
  // CHECK: tile.iota : tensor<8xi32>
  %numbers = tile.iota : tensor<8xi32>
  // CHECK: tile.expand %{{.*}} axis 0 : tensor<8xi32> -> tensor<16x8xi32>
  %columns = tile.expand %numbers axis 0 : tensor<8xi32> -> tensor<16x8xi32>
  %carry = tile.splat %one : i32 -> tensor<16xi32>
  // CHECK: tile.scan %{{.*}} carry %{{.*}} : tensor<16x8xi32>, tensor<16xi32> -> tensor<16x8xi32>
  %running = tile.scan %columns carry %carry : tensor<16x8xi32>, tensor<16xi32> -> tensor<16x8xi32>
}
