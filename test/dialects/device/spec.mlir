// RUN: metadef-opt %s | metadef-opt | filecheck %s

// CHECK: module attributes {device.spec = #device.spec<{
// CHECK-SAME: caches = [{bytes = 32768 : i64, level = 1 : i64, line_bytes = 64 : i64, shared_by = 1 : i64}]
// CHECK-SAME: cpu = "cortex-a72"
// CHECK-SAME: vector_bits = 128 : i64
module attributes {device.spec = #device.spec<{
  name = "board", kind = "cpu", triple = "aarch64-unknown-linux-gnu", cpu = "cortex-a72",
  features = "+neon", cores = 4 : i64, threads = 4 : i64, vector_bits = 128 : i64,
  vector_registers = 32 : i64, instructions = [], memory_bytes = 4294967296 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64}],
  types = ["f32", "i32"], alignment = 64 : i64}>} {
}
