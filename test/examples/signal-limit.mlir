// RUN: metadef-opt %s --load=%S/signal.py --lower-gain=max-decibels=6 --verify-diagnostics
// What a pass raises is expected like MLIR's own errors, on the line that its message names.

func.func @loud(%x: f32) -> f32 {
  // expected-error @below {{'signal.gain' op: expected at most 6.0 dB, got 20.0; from}}
  %0 = "signal.gain"(%x) {decibels = 20.0 : f64} : (f32) -> f32
  return %0 : f32
}
