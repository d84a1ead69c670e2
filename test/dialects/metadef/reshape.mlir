// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.reshape"
// CHECK-SAME: : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B*S", 8]>>
func.func @round_trip(%a: tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) {
  %0 = "metadef.reshape"(%a) : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B*S", 8]>>
  return
}

// CHECK-LABEL: @splits
// CHECK: "metadef.reshape"
// CHECK-SAME: : (tensor<?x12xf32, #metadef.dims<["B", 12]>>) -> tensor<?x3x4xf32, #metadef.dims<["B", 3, 4]>>
func.func @splits(%a: tensor<?x12xf32, #metadef.dims<["B", 12]>>) {
  %0 = "metadef.reshape"(%a) : (tensor<?x12xf32, #metadef.dims<["B", 12]>>) -> tensor<?x3x4xf32, #metadef.dims<["B", 3, 4]>>
  return
}

// -----

func.func @loses_elements(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{reshape-C1: x and result have equally many elements, got [4, 8]xf32 to [5, 6]xf32}}
  %0 = "metadef.reshape"(%a) : (tensor<4x8xf32>) -> tensor<5x6xf32>
  return
}

// -----

func.func @changes_type(%a: tensor<4xf32>) {
  // expected-error @+1 {{reshape-result: the result type follows from the operands, got element type i32 where f32 follows}}
  %0 = "metadef.reshape"(%a) : (tensor<4xf32>) -> tensor<4xi32>
  return
}
