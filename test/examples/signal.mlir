// RUN: metadef-opt %s --load %S/signal.py --fold-gain-of-gain | filecheck %s --check-prefix=FOLD
// RUN: metadef-opt %s --load=%S/signal.py --lower-gain=max-decibels=60 | filecheck %s --check-prefix=LOWER
// RUN: metadef-opt %s --load=%S/signal.py --pass-pipeline='builtin.module(fold-gain-of-gain,lower-gain,func.func(canonicalize))' --mlir-print-ir-after=lower-gain 2>&1 | filecheck %s --check-prefix=DUMP
// RUN: metadef-opt --load=%S/signal.py --list | filecheck %s --check-prefix=LIST
// RUN: metadef-opt --load=%S/signal.py --help | filecheck %s --check-prefix=HELP
// RUN: metadef-opt --load=%S/signal.py --explain lower-gain | filecheck %s --check-prefix=EXPLAIN
// RUN: not metadef-opt %s --load=%S/signal.py --lower-gain=max-decibels=6 2>&1 | filecheck %s --check-prefix=LOUD

// FOLD-LABEL: func.func @twice
// FOLD: "signal.gain"(%arg0) {decibels = 2.000000e+01 : f64} : (f32) -> f32
// FOLD-NOT: decibels = 1.400000e+01

// LOWER-LABEL: func.func @twice
// LOWER: arith.mulf
// LOWER: arith.mulf

// DUMP: IR Dump After lower-gain
// DUMP: %[[C:.+]] = arith.constant 1.000000e+01 : f32
// DUMP: arith.mulf %arg0, %[[C]] : f32

// LIST: Loaded passes:
// LIST-NEXT: fold-gain-of-gain `gain(gain(x, a), b)` -> `gain(x, a + b)`: decibels add up.
// LIST-NEXT: lower-gain Replace gains by a product with a constant.

// HELP: loaded passes: --fold-gain-of-gain, --lower-gain

// EXPLAIN: Replace gains by a product with a constant.
// EXPLAIN: Before:
// EXPLAIN: Leaves: no signal.gain
// EXPLAIN: max-decibels=120.0

// LOUD: error: 'signal.gain' op: expected at most 6.0 dB, got
// LOUD: while running pass 'lower-gain{max-decibels=6.0}'

func.func @twice(%x: f32) -> f32 {
  %0 = "signal.gain"(%x) {decibels = 6.0 : f64} : (f32) -> f32
  %1 = "signal.gain"(%0) {decibels = 14.0 : f64} : (f32) -> f32
  return %1 : f32
}
