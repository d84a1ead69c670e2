// RUN: metadef-opt %s --read-dlti | filecheck %s
// RUN: sh -c 'echo "module {}" | metadef-opt --read-dlti; true' 2>&1 | filecheck %s --check-prefix=NONE

// CHECK: device.spec = #device.spec<{alignment = 128 : i64, caches = []
// CHECK-SAME: gpu = {matrix = [{accumulator = "f32", k = 8 : i64, lhs = "f16", m = 16 : i64, n = 8 : i64, rhs = "f16"}], multiprocessors = 2 : i64

// NONE: module: expected the attribute 'dlti.target_system_spec', got none
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"GPU" = #dlti.target_device_spec<
  "name" = "chip", "kind" = "gpu", "triple" = "nvptx64-nvidia-cuda", "cpu" = "sm_75", "features" = "",
  "cores" = 2 : i64, "threads" = 64 : i64, "vector_bits" = 1024 : i64, "vector_registers" = 255 : i64,
  "instructions" = [], "caches" = #dlti.map<>, "memory_bytes" = 1024 : i64, "types" = ["f16", "f32"],
  "alignment" = 128 : i64, "gpu" = #dlti.map<"multiprocessors" = 2 : i64, "warp" = 32 : i64,
    "shared_memory_bytes" = 65536 : i64, "matrix" = [#dlti.map<"m" = 16 : i64, "n" = 8 : i64,
    "k" = 8 : i64, "lhs" = "f16", "rhs" = "f16", "accumulator" = "f32">]>>>} {
}
