// RUN: metadef-opt %s --pass-pipeline='builtin.module(choose-convolutions)' --split-input-file | filecheck %s

// An image of many tiles: a quarter of the products, and the larger weights are read once for all.
// The weight's transform is made of weights alone, in double precision.
// CHECK-LABEL: func.func @many_tiles_are_large
// CHECK-DAG: %[[W:.*]] = "metadef.weight"() {name = "w"}
// CHECK-DAG: %[[B:.*]] = "metadef.weight"() {name = "b"}
// CHECK: %[[V:.*]] = "metadef.winograd_input"(%arg0) {padding = array<i64: 1, 1, 1, 1>, tile = 4 : i64}
// CHECK: %[[F:.*]] = "metadef.reshape"(%[[W]]) : (tensor<1x3x3x64x32xf32>) -> tensor<9x2048xf32>
// CHECK: %[[G:.*]] = "metadef.constant"() {{.*}} : () -> tensor<36x9xf64>
// CHECK: %[[D:.*]] = "metadef.pointwise"(%[[F]]) {fn = "cast"{{.*}} -> tensor<9x2048xf64>
// CHECK: %[[P:.*]] = "metadef.contraction"(%[[G]], %[[D]])
// CHECK: %[[R:.*]] = "metadef.pointwise"(%[[P]]) {fn = "cast"{{.*}} -> tensor<36x2048xf32>
// CHECK: %[[U:.*]] = "metadef.reshape"(%[[R]]) : (tensor<36x2048xf32>) -> tensor<36x64x32xf32>
// CHECK: %[[I:.*]] = "metadef.reshape"(%[[V]]) : (tensor<36x1x14x14x64xf32>) -> tensor<36x196x64xf32>
// CHECK: %[[M:.*]] = "metadef.contraction"(%[[I]], %[[U]])
// CHECK: %[[O:.*]] = "metadef.reshape"(%[[M]]) : (tensor<36x196x32xf32>) -> tensor<36x1x14x14x32xf32>
// CHECK: %[[Y:.*]] = "metadef.winograd_output"(%[[O]]) {sizes = array<i64: 56, 56>, tile = 4 : i64}
// CHECK: "metadef.pointwise"(%[[Y]], %[[B]]) {fn = "add"
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @many_tiles_are_large(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x32xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x32xf32>
  %b = "metadef.weight"() {name = "b"} : () -> tensor<32xf32>
  %y = "metadef.conv"(%x, %w, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x32xf32>, tensor<32xf32>) -> tensor<1x56x56x32xf32>
  return %y : tensor<1x56x56x32xf32>
}
}

// -----

// Few tiles: small ones, as larger ones have larger weights.
// CHECK-LABEL: func.func @few_tiles_are_small
// CHECK: "metadef.winograd_input"(%arg0) {{.*}}tile = 2 : i64
// CHECK-NOT: metadef.conv"
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @few_tiles_are_small(%x: tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x512x512xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x7x7x512xf32>, tensor<1x3x3x512x512xf32>) -> tensor<1x7x7x512xf32>
  return %y : tensor<1x7x7x512xf32>
}
}

// -----

// A symbolic batch counts as its least value, and goes through.
// CHECK-LABEL: func.func @symbolic_batch
// CHECK: "metadef.winograd_input"(%arg0) {{.*}} -> tensor<36x?x7x7x64xf32, #metadef.dims<[36, "B", 7, 7, 64]>>
// CHECK: "metadef.contraction"{{.*}} -> tensor<36x?x64xf32, #metadef.dims<[36, "49*B", 64]>>
// CHECK: "metadef.winograd_output"{{.*}} -> tensor<?x28x28x64xf32, #metadef.dims<["B", 28, 28, 64]>>
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.symbols = {B = {min = 2 : i64, max = 64 : i64, divisor = 1 : i64}}} {
func.func @symbolic_batch(%x: tensor<?x28x28x64xf32, #metadef.dims<["B", 28, 28, 64]>>) -> tensor<?x28x28x64xf32, #metadef.dims<["B", 28, 28, 64]>> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x64xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<?x28x28x64xf32, #metadef.dims<["B", 28, 28, 64]>>, tensor<1x3x3x64x64xf32>) -> tensor<?x28x28x64xf32, #metadef.dims<["B", 28, 28, 64]>>
  return %y : tensor<?x28x28x64xf32, #metadef.dims<["B", 28, 28, 64]>>
}
}

// -----

// Two channels: the transforms cost more than they save.
// CHECK-LABEL: func.func @few_channels_stay
// CHECK-NOT: winograd
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @few_channels_stay(%x: tensor<1x56x56x2xf32>) -> tensor<1x56x56x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x2x64xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x2xf32>, tensor<1x3x3x2x64xf32>) -> tensor<1x56x56x64xf32>
  return %y : tensor<1x56x56x64xf32>
}
}

// -----

// Six outputs: the planes of so large an image cost more than the products that they save.
// CHECK-LABEL: func.func @few_outputs_stay
// CHECK-NOT: winograd
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @few_outputs_stay(%x: tensor<1x160x160x64xf32>) -> tensor<1x160x160x6xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x6xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x160x160x64xf32>, tensor<1x3x3x64x6xf32>) -> tensor<1x160x160x6xf32>
  return %y : tensor<1x160x160x6xf32>
}
}

// -----

// CHECK-LABEL: func.func @windows_two_apart_stay
// CHECK-NOT: winograd
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @windows_two_apart_stay(%x: tensor<1x56x56x64xf32>) -> tensor<1x28x28x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x64xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x64xf32>) -> tensor<1x28x28x64xf32>
  return %y : tensor<1x28x28x64xf32>
}
}

// -----

// CHECK-LABEL: func.func @weights_made_at_run_time_stay
// CHECK-NOT: winograd
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @weights_made_at_run_time_stay(%x: tensor<1x56x56x64xf32>, %w: tensor<1x3x3x64x64xf32>) -> tensor<1x56x56x64xf32> {
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x64xf32>) -> tensor<1x56x56x64xf32>
  return %y : tensor<1x56x56x64xf32>
}
}

// -----

// CHECK-LABEL: func.func @symbolic_heights_stay
// CHECK-NOT: winograd
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.symbols = {H = {min = 2 : i64, max = 64 : i64, divisor = 1 : i64}}} {
func.func @symbolic_heights_stay(%x: tensor<1x?x56x64xf32, #metadef.dims<[1, "H", 56, 64]>>) -> tensor<1x?x56x64xf32, #metadef.dims<[1, "H", 56, 64]>> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x64xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x?x56x64xf32, #metadef.dims<[1, "H", 56, 64]>>, tensor<1x3x3x64x64xf32>) -> tensor<1x?x56x64xf32, #metadef.dims<[1, "H", 56, 64]>>
  return %y : tensor<1x?x56x64xf32, #metadef.dims<[1, "H", 56, 64]>>
}
}

// -----

// Nothing is known of the device.
// CHECK-LABEL: func.func @without_a_device_all_stay
// CHECK-NOT: winograd
func.func @without_a_device_all_stay(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x64xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x64xf32>) -> tensor<1x56x56x64xf32>
  return %y : tensor<1x56x56x64xf32>
}

// -----

// A plan's word counts more than the cost.
// CHECK-LABEL: func.func @stays_when_told
// CHECK-NOT: winograd
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @stays_when_told(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x64xf32>
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "direct", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x64xf32>) -> tensor<1x56x56x64xf32>
  return %y : tensor<1x56x56x64xf32>
}
}

// -----

// CHECK-LABEL: func.func @goes_when_told
// CHECK: winograd_output
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @goes_when_told(%x: tensor<1x56x56x2xf32>) -> tensor<1x56x56x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x2x64xf32>
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "winograd", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x2xf32>, tensor<1x3x3x2x64xf32>) -> tensor<1x56x56x64xf32>
  return %y : tensor<1x56x56x64xf32>
}
}
