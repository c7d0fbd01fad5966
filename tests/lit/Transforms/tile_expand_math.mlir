// SPDX-License-Identifier: Apache-2.0
//
// tile-expand-math: exp2 and log2 of f32 become arithmetic, other types stay.
// RUN: sparge-opt %s --tile-expand-math | FileCheck %s

// CHECK-LABEL: func.func @exp2_of_a_vector(
// CHECK-NOT: math.exp2
// CHECK-DAG: arith.constant dense<-1.270000e+02> : vector<16xf32>
// CHECK: arith.cmpf olt
// CHECK: arith.cmpf ogt
// CHECK-COUNT-6: math.fma {{.*}} : vector<16xf32>
// CHECK: arith.shli {{.*}} : vector<16xi32>
// CHECK: arith.mulf
// CHECK: return
func.func @exp2_of_a_vector(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp2 %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: func.func @log2_of_a_scalar(
// CHECK-NOT: math.log2
// CHECK: arith.divf {{.*}} : f32
// CHECK-COUNT-4: math.fma {{.*}} : f32
// CHECK: arith.cmpf olt
// CHECK: arith.cmpf ugt
// CHECK: return
func.func @log2_of_a_scalar(%x: f32) -> f32 {
  %0 = math.log2 %x : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @double_precision_stays(
// CHECK: math.exp2 {{.*}} : f64
func.func @double_precision_stays(%x: f64) -> f64 {
  %0 = math.exp2 %x : f64
  return %0 : f64
}
