"""A small kernel that a worker compiles while nobody has asked for anything.

The first kernel of a process takes a third of a second longer than the same one later: the passes
and dialects are loaded, MLIR collects its patterns, LLVM sets up its back end. A worker starts when
a model begins to be captured, so that there is time for that before the model's own kernels come.
"""

from __future__ import annotations

from metadef import ir
from metadef.codegen.build import build_kernel
from metadef.device.attribute import set_device
from metadef.device.probe import probe

_TEXT = """
func.func @kernel(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32>
    attributes {metadef.kernel} {
  %0 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false}
    : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = "metadef.pointwise"(%0) {fn = "gelu", operandSegmentSizes = array<i32: 1, 0, 0>}
    : (tensor<16x16xf32>) -> tensor<16x16xf32>
  return %1 : tensor<16x16xf32>
}
"""


def rehearse(context: ir.Context) -> None:
    """Compile a small kernel for this machine in `context`."""
    with context, ir.Location.unknown():
        module = ir.Module.parse(_TEXT)
        set_device(module, probe())
    build_kernel(str(module), "rehearsal", context=context)
