// RUN: metadef-opt %s --load=%S/Inputs/passes.py --refuse --verify-diagnostics
// A pass that raises has no place in the file unless it says `from FILE:LINE`.

// expected-error @unknown {{'builtin.module' op: expected another one}}
func.func @f() {
  return
}
