// RUN: metadef-opt %s --split-input-file --pass-pipeline='builtin.module(convert-torch-to-metadef)' | filecheck %s

// CHECK-LABEL: func.func @linear_of_weights(
// CHECK-SAME: %[[X:.*]]: tensor<2x8xf32>) -> tensor<2x16xf32>
// CHECK: %[[W:.*]] = "metadef.weight"() {name = "fc.weight"} : () -> tensor<16x8xf32>
// CHECK: %[[B:.*]] = "metadef.weight"() {name = "fc.bias"} : () -> tensor<16xf32>
// CHECK: %[[P:.*]] = "metadef.contraction"(%[[X]], %[[W]]) {transpose_lhs = false, transpose_rhs = true}
// CHECK: %[[S:.*]] = "metadef.pointwise"(%[[P]], %[[B]]) {fn = "add"
// CHECK: return %[[S]] : tensor<2x16xf32>
// CHECK-NOT: torch
func.func @linear_of_weights(%w: !torch.vtensor<[16,8],f32> {metadef.weight = "fc.weight"}, %b: !torch.vtensor<[16],f32> {metadef.weight = "fc.bias"}, %x: !torch.vtensor<[2,8],f32>) -> !torch.vtensor<[2,16],f32> {
  %0 = torch.aten.linear %x, %w, %b : !torch.vtensor<[2,8],f32>, !torch.vtensor<[16,8],f32>, !torch.vtensor<[16],f32> -> !torch.vtensor<[2,16],f32>
  return %0 : !torch.vtensor<[2,16],f32>
}

// -----

// CHECK-LABEL: @keeps_tied_weights_one
// CHECK-COUNT-1: metadef.weight
// CHECK-NOT: metadef.weight
func.func @keeps_tied_weights_one(%a: !torch.vtensor<[4],f32> {metadef.weight = "w"}, %b: !torch.vtensor<[4],f32> {metadef.weight = "w"}) -> !torch.vtensor<[4],f32> {
  %0 = torch.aten.mul.Tensor %a, %b : !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}

// -----

// CHECK-LABEL: @names_signed_types_signless
// CHECK-SAME: tensor<4xi64>
// CHECK-SAME: tensor<4xui8>
// CHECK-SAME: tensor<4xi1>
func.func @names_signed_types_signless(%a: !torch.vtensor<[4],si64>, %b: !torch.vtensor<[4],ui8>, %c: !torch.vtensor<[4],i1>) -> !torch.vtensor<[4],si64> {
  return %a : !torch.vtensor<[4],si64>
}

// -----

// An int tensor plus a Python float is a float tensor; the scalar does not widen a float one.
// CHECK-LABEL: @promotes_by_category
// CHECK: %[[F:.*]] = "metadef.pointwise"(%{{.*}}) {fn = "cast"{{.*}} : (tensor<4xi64>) -> tensor<4xf32>
// CHECK: "metadef.fill"() {value = 5.000000e-01 : f32} : () -> tensor<f32>
// CHECK: fn = "add"
func.func @promotes_by_category(%x: !torch.vtensor<[4],si64>) -> !torch.vtensor<[4],f32> {
  %half = torch.constant.float 5.000000e-01
  %one = torch.constant.int 1
  %0 = torch.aten.add.Scalar %x, %half, %one : !torch.vtensor<[4],si64>, !torch.float, !torch.int -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}

// -----

// CHECK-LABEL: @narrows_floats_through_i32
// CHECK: fn = "cast"{{.*}} : (tensor<4xf32>) -> tensor<4xi32>
// CHECK: fn = "cast"{{.*}} : (tensor<4xi32>) -> tensor<4xui8>
func.func @narrows_floats_through_i32(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],ui8> {
  %uint8 = torch.constant.int 0
  %false = torch.constant.bool false
  %none = torch.constant.none
  %0 = torch.aten.to.dtype %x, %uint8, %false, %false, %none : !torch.vtensor<[4],f32>, !torch.int, !torch.bool, !torch.bool, !torch.none -> !torch.vtensor<[4],ui8>
  return %0 : !torch.vtensor<[4],ui8>
}

// -----

// CHECK-LABEL: @wraps_unmodelled_op
// CHECK: %[[N:.*]] = "metadef.weight"() {name = "w"}
// CHECK: %[[R:.*]] = "metadef.opaque"(%{{.*}}, %[[N]]
// CHECK: ^bb0(%[[A:.*]]: !torch.vtensor<[4],f32>, %[[B:.*]]: !torch.vtensor<[4],f32>):
// CHECK: %[[Y:.*]] = torch.operator "torch.my.op"(%[[A]], %[[B]], %{{.*}})
// CHECK: "metadef.yield"(%[[Y]]
// CHECK: "metadef.pointwise"(%[[R]]) {fn = "relu"
func.func @wraps_unmodelled_op(%x: !torch.vtensor<[4],f32>, %w: !torch.vtensor<[4],f32> {metadef.weight = "w"}) -> !torch.vtensor<[4],f32> {
  %int2 = torch.constant.int 2
  %sizes = torch.prim.ListConstruct %int2, %int2 : (!torch.int, !torch.int) -> !torch.list<int>
  %0 = torch.operator "torch.my.op"(%x, %w, %sizes) : (!torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.list<int>) -> !torch.vtensor<[4],f32>
  %1 = torch.aten.relu %0 : !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  return %1 : !torch.vtensor<[4],f32>
}

// -----

// CHECK-LABEL: @follows_symbols
// CHECK-SAME: tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
// CHECK: "metadef.reshape"({{.*}}) : ({{.*}}) -> tensor<?x8xf32, #metadef.dims<["B*S", 8]>>
// CHECK-NOT: torch
module attributes {metadef.symbols = {B = {min = 1 : i64, max = 8 : i64, divisor = 1 : i64}, S = {min = 1 : i64, max = 8 : i64, divisor = 1 : i64}}} {
  func.func @follows_symbols(%x: !torch.vtensor<[?,?,8],f32> {metadef.dims = ["B", "S", 8]}) -> !torch.vtensor<[?,8],f32> {
    %int0 = torch.constant.int 0
    %int1 = torch.constant.int 1
    %int8 = torch.constant.int 8
    %b = torch.aten.size.int %x, %int0 : !torch.vtensor<[?,?,8],f32>, !torch.int -> !torch.int
    %s = torch.aten.size.int %x, %int1 : !torch.vtensor<[?,?,8],f32>, !torch.int -> !torch.int
    %bs = torch.aten.mul.int %b, %s : !torch.int, !torch.int -> !torch.int
    %sizes = torch.prim.ListConstruct %bs, %int8 : (!torch.int, !torch.int) -> !torch.list<int>
    %0 = torch.aten.view %x, %sizes : !torch.vtensor<[?,?,8],f32>, !torch.list<int> -> !torch.vtensor<[?,8],f32>
    return %0 : !torch.vtensor<[?,8],f32>
  }
}

// -----

// CHECK-LABEL: @takes_negative_bounds_from_the_end
// CHECK: "metadef.slice"(%{{.*}}) {dim = 0 : i64, start = "S - 1", step = 1 : i64}
// CHECK-SAME: -> tensor<1xf32>
module attributes {metadef.symbols = {S = {min = 2 : i64, max = 8 : i64, divisor = 1 : i64}}} {
  func.func @takes_negative_bounds_from_the_end(%x: !torch.vtensor<[?],f32> {metadef.dims = ["S"]}) -> !torch.vtensor<[1],f32> {
    %int0 = torch.constant.int 0
    %last = torch.constant.int -1
    %end = torch.constant.int 9223372036854775807
    %int1 = torch.constant.int 1
    %0 = torch.aten.slice.Tensor %x, %int0, %last, %end, %int1 : !torch.vtensor<[?],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[1],f32>
    return %0 : !torch.vtensor<[1],f32>
  }
}

// -----

// A size that is data becomes a tensor.
// CHECK-LABEL: @materialises_size_as_data
// CHECK: %[[D:.*]] = "metadef.dim"() {expr = "B"} : () -> tensor<i64>
// CHECK: "metadef.pointwise"(%[[D]]) {fn = "cast"
// CHECK: fn = "mul"
module attributes {metadef.symbols = {B = {min = 1 : i64, max = 8 : i64, divisor = 1 : i64}}} {
  func.func @materialises_size_as_data(%x: !torch.vtensor<[?],f32> {metadef.dims = ["B"]}, %b: !torch.int {metadef.symbol = "B"}) -> !torch.vtensor<[?],f32> {
    %0 = torch.aten.mul.Scalar %x, %b {metadef.dims = [["B"]]} : !torch.vtensor<[?],f32>, !torch.int -> !torch.vtensor<[?],f32>
    return %0 : !torch.vtensor<[?],f32>
  }
}

// -----

// torch-mlir's own symbolic shapes are read too.
// CHECK-LABEL: @reads_bind_symbolic_shape
// CHECK-SAME: #metadef.dims<["s0", 3]>
// CHECK-NOT: symbolic
func.func @reads_bind_symbolic_shape(%x: !torch.vtensor<[?,3],f32>) -> !torch.vtensor<[?,3],f32> {
  %s = torch.symbolic_int "s0" {min_val = 2, max_val = 9} : !torch.int
  torch.bind_symbolic_shape %x, [%s], affine_map<()[s0] -> (s0, 3)> : !torch.vtensor<[?,3],f32>
  %0 = torch.aten.relu %x : !torch.vtensor<[?,3],f32> -> !torch.vtensor<[?,3],f32>
  torch.bind_symbolic_shape %0, [%s], affine_map<()[s0] -> (s0, 3)> : !torch.vtensor<[?,3],f32>
  return %0 : !torch.vtensor<[?,3],f32>
}

// -----

// An int that depends on symbols goes into the opaque op as a tensor.
// CHECK-LABEL: @wraps_op_with_symbolic_operand
// CHECK: %[[D:.*]] = "metadef.dim"() {expr = "B"}
// CHECK: "metadef.opaque"(%{{.*}}, %[[D]]
// CHECK: torch.aten.Int.Tensor
// CHECK: torch.operator "torch.my.op"
// CHECK: -> tensor<?xf32, #metadef.dims<["B"]>>
module attributes {metadef.symbols = {B = {min = 1 : i64, max = 8 : i64, divisor = 1 : i64}}} {
  func.func @wraps_op_with_symbolic_operand(%x: !torch.vtensor<[?],f32> {metadef.dims = ["B"]}, %b: !torch.int {metadef.symbol = "B"}) -> !torch.vtensor<[?],f32> {
    %0 = torch.operator "torch.my.op"(%x, %b) {metadef.dims = [["B"]]} : (!torch.vtensor<[?],f32>, !torch.int) -> !torch.vtensor<[?],f32>
    return %0 : !torch.vtensor<[?],f32>
  }
}
