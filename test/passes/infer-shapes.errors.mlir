// RUN: metadef-opt %s --pass-pipeline='builtin.module(infer-shapes)' --split-input-file --verify-diagnostics

func.func @contradiction(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  %0 = "metadef.softmax"(%x) {dim = 0 : i64, log = false} : (tensor<4xf32>) -> tensor<?xf32, #metadef.dims<["S"]>>
  // expected-error @+1 {{'metadef.pointwise' op: pointwise-C5: operands broadcast as numpy does, got [4]xf32 and [5]xf32; from}}
  %1 = "metadef.pointwise"(%0, %y) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?xf32, #metadef.dims<["S"]>>, tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @result_contradicts(%x: tensor<4xf32>) {
  %0 = "metadef.softmax"(%x) {dim = 0 : i64, log = false} : (tensor<4xf32>) -> tensor<?xf32, #metadef.dims<["S"]>>
  // expected-error @+1 {{'metadef.softmax' op: result 0 has dim 0 = 5 where 4 follows; from}}
  %1 = "metadef.softmax"(%0) {dim = 0 : i64, log = false} : (tensor<?xf32, #metadef.dims<["S"]>>) -> tensor<5xf32>
  return
}

// -----

func.func @refines_the_function_too(%x: tensor<4xf32>) -> tensor<?xf32, #metadef.dims<["S"]>> {
  %0 = "metadef.softmax"(%x) {dim = 0 : i64, log = false} : (tensor<4xf32>) -> tensor<?xf32, #metadef.dims<["S"]>>
  return %0 : tensor<?xf32, #metadef.dims<["S"]>>
}

// -----

func.func @no_rule(%x: tensor<4xf32>) {
  // expected-error @+1 {{'tensor.cast' op: no shape rule, and its result tensor<?xf32> has an unknown dim; from}}
  %0 = tensor.cast %x : tensor<4xf32> to tensor<?xf32>
  return
}
