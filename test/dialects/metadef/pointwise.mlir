// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @unary
// CHECK: "metadef.pointwise"({{.*}}) {fn = "exp"
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
func.func @unary(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>) {
  %0 = "metadef.pointwise"(%a) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return
}

// CHECK-LABEL: @broadcasts
// CHECK: "metadef.pointwise"({{.*}}) {fn = "add"
// CHECK-SAME: : (tensor<?x1x8xf32, #metadef.dims<["B", 1, 8]>>, tensor<4x1xf32>) -> tensor<?x4x8xf32, #metadef.dims<["B", 4, 8]>>
func.func @broadcasts(%a: tensor<?x1x8xf32, #metadef.dims<["B", 1, 8]>>, %b: tensor<4x1xf32>) {
  %0 = "metadef.pointwise"(%a, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x1x8xf32, #metadef.dims<["B", 1, 8]>>, tensor<4x1xf32>) -> tensor<?x4x8xf32, #metadef.dims<["B", 4, 8]>>
  return
}

// CHECK-LABEL: @compares
// CHECK: "metadef.pointwise"({{.*}}) {fn = "lt"
// CHECK-SAME: : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
func.func @compares(%a: tensor<4xi64>, %b: tensor<i64>) {
  %0 = "metadef.pointwise"(%a, %b) {fn = "lt", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: @selects
// CHECK: "metadef.pointwise"({{.*}}) {fn = "select"
// CHECK-SAME: : (tensor<4xi1>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
func.func @selects(%a: tensor<4xi1>, %b: tensor<f32>, %c: tensor<4xf32>) {
  %0 = "metadef.pointwise"(%a, %b, %c) {fn = "select", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4xi1>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: @casts
// CHECK: "metadef.pointwise"({{.*}}) {fn = "cast"
// CHECK-SAME: : (tensor<4xf32>) -> tensor<4xi8>
func.func @casts(%a: tensor<4xf32>) {
  %0 = "metadef.pointwise"(%a) {fn = "cast", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4xf32>) -> tensor<4xi8>
  return
}

// -----

func.func @unknown_fn(%a: tensor<4xf32>) {
  // expected-error @+1 {{pointwise-C1: fn is a known function, got 'expp'; did you mean 'exp'}}
  %0 = "metadef.pointwise"(%a) {fn = "expp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @wrong_arity(%a: tensor<4xf32>) {
  // expected-error @+1 {{pointwise-C2: the number of operands is fn's arity, got 1 operands for 'add', which takes 2}}
  %0 = "metadef.pointwise"(%a) {fn = "add", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @mixed_types(%a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error @+1 {{pointwise-C3: operands have one element type, select's condition is i1, got f32 and f64}}
  %0 = "metadef.pointwise"(%a, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

// -----

func.func @condition_of_floats(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) {
  // expected-error @+1 {{pointwise-C3: operands have one element type, select's condition is i1, got condition of f32}}
  %0 = "metadef.pointwise"(%a, %b, %c) {fn = "select", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @fn_not_for_integers(%a: tensor<4xi32>) {
  // expected-error @+1 {{pointwise-C4: fn is defined for the element type, got 'exp' on i32, expected float}}
  %0 = "metadef.pointwise"(%a) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @dims_differ(%a: tensor<4xf32>, %b: tensor<5xf32>) {
  // expected-error @+1 {{pointwise-C5: operands broadcast as numpy does, got [4]xf32 and [5]xf32}}
  %0 = "metadef.pointwise"(%a, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @symbolic_dims_differ(%a: tensor<?xf32, #metadef.dims<["B"]>>, %b: tensor<?xf32, #metadef.dims<["B + 1"]>>) {
  // expected-error @+1 {{pointwise-C5: operands broadcast as numpy does}}
  %0 = "metadef.pointwise"(%a, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?xf32, #metadef.dims<["B"]>>, tensor<?xf32, #metadef.dims<["B + 1"]>>) -> tensor<?xf32, #metadef.dims<["B"]>>
  return
}

// -----

func.func @wrong_result(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{pointwise-result: the result type follows from the operands, got element type f32 where i1 follows}}
  %0 = "metadef.pointwise"(%a, %b) {fn = "eq", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
