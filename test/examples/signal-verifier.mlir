// RUN: metadef-opt %s --load=%S/signal.py --verify-diagnostics

func.func @changes_type(%x: f32) -> f64 {
  // expected-error @below {{'signal.gain' op: gain-C1: the result is like x, got f64}}
  %0 = "signal.gain"(%x) {decibels = 6.0 : f64} : (f32) -> f64
  return %0 : f64
}
