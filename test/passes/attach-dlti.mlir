// RUN: metadef-opt %s --attach-dlti | filecheck %s
// RUN: metadef-opt %s --attach-dlti | sed 's/device.spec =/metadef.was =/' | metadef-opt --read-dlti | filecheck %s --check-prefix=BACK
// RUN: sh -c 'echo "module {}" | metadef-opt --attach-dlti; true' 2>&1 | filecheck %s --check-prefix=NONE

// CHECK: dlti.target_system_spec = #dlti.target_system_spec<"CPU" = #dlti.target_device_spec<
// CHECK-SAME: "max_vector_op_width" = 128 : i64, "L1_cache_size_in_bytes" = 32768 : i64, "name" = "board"
// CHECK-SAME: "caches" = #dlti.map<"l1" = #dlti.map<"bytes" = 32768 : i64, "line_bytes" = 64 : i64, "shared_by" = 1 : i64>, "l2" =
// CHECK-SAME: "measured" = #dlti.map<"date" = "2026-11-30", "flops" = #dlti.map<"f32" = [#dlti.map<"value" = 1.000000e+09 : f64, "threads" = 1 : i64

// BACK: device.spec = #device.spec<{alignment = 64 : i64, caches = [{bytes = 32768 : i64, level = 1 : i64, line_bytes = 64 : i64, shared_by = 1 : i64}, {bytes = 65536 : i64, level = 2 : i64
// BACK-SAME: cores = 4 : i64, cpu = "cortex-a72", energy = {counter = "none", reason = "a <board> without \22counters\22"}, features = "+neon"
// BACK-SAME: instructions = [{accumulator = "f32", depth = 1 : i64, intrinsic = "llvm.fma", kind = "fma", lhs = "f32", rhs = "f32"}]
// BACK-SAME: measured = {date = "2026-11-30", flops = {f32 = [{rounds = 20 : i64, spread = 5.000000e-02 : f64, threads = 1 : i64, value = 1.000000e+09 : f64}]}}
// BACK-SAME: theoretical = {clock_hz = 1.500000e+09 : f64}

// NONE: module: expected the attribute 'device.spec = #device.spec<{...}>', got none
module attributes {device.spec = #device.spec<{
  name = "board", kind = "cpu", triple = "aarch64-unknown-linux-gnu", cpu = "cortex-a72",
  features = "+neon", cores = 4 : i64, threads = 4 : i64, vector_bits = 128 : i64,
  vector_registers = 32 : i64, memory_bytes = 4294967296 : i64,
  instructions = [{kind = "fma", lhs = "f32", rhs = "f32", accumulator = "f32", depth = 1 : i64, intrinsic = "llvm.fma"}],
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 65536 : i64, line_bytes = 64 : i64, shared_by = 4 : i64}],
  types = ["f32", "i32"], alignment = 64 : i64,
  energy = {counter = "none", reason = "a <board> without \22counters\22"},
  theoretical = {clock_hz = 1.5e9 : f64},
  measured = {date = "2026-11-30", flops = {f32 = [{value = 1.0e9 : f64, threads = 1 : i64, spread = 0.05 : f64, rounds = 20 : i64}]}}}>} {
}
