"""Turn kernel regions into functions, and move what depends on weights alone to @init."""

from __future__ import annotations

import re
from dataclasses import dataclass

from metadef import ir
from metadef.dialects.metadef.attributes import text
from metadef.dialects.metadef.ops.dispatch import dispatch
from metadef.dialects.metadef.ops.weight import weight
from metadef.forms import FRONT
from metadef.pipeline import Pass

from ._buffers import RESHAPE, byte_size, has_uses, root_of
from ._growth import MAX_GROWTH, MEBIBYTE, may_grow
from ._size_symbols import name_sizes
from .form_kernels import WEIGHT

KERNEL = "metadef.kernel"
#: name of the function that runs once, and of the attribute that names its results as weights
INIT = "init"
RESULTS = "metadef.results"

#: ops that say little about a kernel
_NAMELESS = frozenset({"constant", "fill", "iota", "dim", "unpack"})
_NAME_PARTS = 3


@dataclass(frozen=True)
class OutlineKernels(Pass):
    """Outline each `metadef.kernel` as a function; equal kernels share one.

    Before:
        func.func @main(%x) {
          %w = "metadef.weight"() <{name = "w"}>
          %0 = "metadef.kernel"(%w) ({ ... transpose ... })
          %1 = "metadef.kernel"(%x, %0) ({ ... contraction, relu ... })
          return %1
        }
    After:
        func.func private @transpose_0(%0) attributes {metadef.kernel} { ... }
        func.func private @contraction_relu_0(%0, %1) attributes {metadef.kernel} { ... }
        func.func @init() attributes {metadef.results = ["init.0"]} {
          %w = "metadef.weight"() <{name = "w"}>
          %0 = "metadef.dispatch"(%w) <{kernel = @transpose_0}>
          return %0
        }
        func.func @main(%x) {
          %0 = "metadef.weight"() <{name = "init.0"}>
          %1 = "metadef.dispatch"(%x, %0) <{kernel = @contraction_relu_0}>
          return %1
        }

    Kernels are equal when their text is, symbol names included: a symbol is one run-time value for
    the whole program, so two kernels over different symbols would need a renaming at each dispatch.
    A kernel moves to @init when weights and constants decide its results, the shapes are static, it
    does not make a result of @main, and it does not blow a small input up to more than
    `max_growth` MiB. It then has symbols of its own for its sizes, whose values are the `sizes` of
    its dispatches: the packing of many weights is one kernel.
    """

    accepts = FRONT
    requires = "the result of form-kernels"
    leaves = "@main and @init of metadef.dispatch, metadef.reshape, metadef.weight; private kernels"

    max_growth: int = MAX_GROWTH

    def run(self, module: ir.Operation) -> None:
        body = ir.entry_block(module)
        for op in list(body):
            if op.operation.name == "func.func" and op.name.value == "main":
                _Outliner(body, op, self.max_growth * MEBIBYTE).run()


class _Outliner:
    def __init__(self, body: ir.Block, main: ir.OpView, max_growth: int) -> None:
        self.body = body
        self.main = main
        self.max_growth = max_growth
        self.names: dict[str, str] = {}
        self.used: dict[str, int] = {}

    def run(self) -> None:
        block = ir.entry_block(self.main)
        end = block.operations[len(block.operations) - 1]
        kept = {root_of(v) for v in end.operation.operands}
        init = _Init(block)
        for op in list(block.operations):
            if op.operation.name != KERNEL:
                continue
            runs_once = init.can_compute(op.operation, self.max_growth) and not any(
                r in kept for r in op.operation.results
            )
            new = self._outline(op.operation, runs_once)
            if runs_once:
                init.add(new)
        if init.dispatches:
            init.build(self.main)

    def _outline(self, kernel: ir.Operation, runs_once: bool) -> ir.Operation:
        """Replace a kernel region by a dispatch of its function."""
        function = self._build_function(kernel)
        sizes = name_sizes(function) if runs_once else {}
        key = str(function.operation.get_asm(enable_debug_info=False, assume_verified=True))
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = self._new_name(ir.entry_block(function))
            function.attributes["sym_name"] = ir.StringAttr.get(name)
        else:
            function.operation.erase()
        with ir.InsertionPoint(kernel), kernel.location:
            new = dispatch(name, list(kernel.operands), [r.type for r in kernel.results], sizes)
        for old, value in zip(kernel.results, new, strict=True):
            old.replace_all_uses_with(value)
        kernel.erase()
        return new[0].owner.operation

    def _build_function(self, kernel: ir.Operation) -> ir.func.FuncOp:
        """Return a function of the kernel's ops, without a name of its own yet."""
        source = kernel.regions[0].blocks[0]
        types = [a.type for a in source.arguments], [r.type for r in kernel.results]
        with ir.InsertionPoint(self.main), kernel.location:
            function = ir.func.FuncOp("kernel", types, visibility="private")
            function.attributes["metadef.kernel"] = ir.UnitAttr.get()
            block = function.add_entry_block()
        for old, new in zip(source.arguments, block.arguments, strict=True):
            old.replace_all_uses_with(new)
        for op in list(source.operations):
            block.append(op.operation)
        end = block.operations[len(block.operations) - 1].operation
        with ir.InsertionPoint(end), end.location:
            ir.func.ReturnOp(list(end.operands))
        end.erase()
        return function

    def _new_name(self, block: ir.Block) -> str:
        """Name a kernel for what it does: `contraction_gelu_0`."""
        parts = []
        for op in list(block.operations)[:-1]:
            kind = op.operation.name.removeprefix("metadef.")
            part = text(op, "fn") if kind == "pointwise" else kind
            if kind not in _NAMELESS and part not in parts:
                parts.append(part)
        stem = "_".join(parts[:_NAME_PARTS]) or "constant"
        stem = re.sub(r"\W", "_", stem)
        count = self.used.get(stem, 0)
        self.used[stem] = count + 1
        return f"{stem}_{count}"


class _Init:
    """Collects the dispatches of @main that weights decide and moves them to @init."""

    def __init__(self, main_block: ir.Block) -> None:
        self.main_block = main_block
        self.dispatches: list[ir.Operation] = []
        self.known: set[ir.Value] = set()
        for op in main_block.operations:
            if op.operation.name == WEIGHT:
                self.known.add(op.operation.results[0])

    def can_compute(self, kernel: ir.Operation, max_growth: int) -> bool:
        if not all(root_of(v) in self.known for v in kernel.operands):
            return False
        if not all(ir.ShapedType(r.type).has_static_shape for r in kernel.results):
            return False
        read = sum(byte_size(v.type).value for v in kernel.operands)
        written = sum(byte_size(r.type).value for r in kernel.results)
        return may_grow(read, written, max_growth)

    def add(self, dispatch: ir.Operation) -> None:
        self.dispatches.append(dispatch)
        self.known.update(dispatch.results)

    def build(self, main: ir.OpView) -> None:
        """Create @init before `main`; what @main reads of it becomes weights `init.0`, ..."""
        with ir.InsertionPoint(main), main.location:
            function = ir.func.FuncOp(INIT, ([], []))
            block = function.add_entry_block()
        copies: dict[ir.Value, ir.Value] = {}
        for op in self.dispatches:
            for i, value in enumerate(op.operands):
                op.operands[i] = _copy_source(value, block, copies)
            block.append(op)
        for op in reversed(list(self.main_block.operations)):
            if op.operation.name in (RESHAPE, WEIGHT) and not has_uses(op.operation):
                op.operation.erase()
        outputs = [r for d in self.dispatches for r in d.results if _uses_outside(r, block)]
        names = [f"init.{i}" for i in range(len(outputs))]
        with ir.InsertionPoint(self.main_block.operations[0]):
            for value, name in zip(outputs, names, strict=True):
                with value.owner.location:
                    new = weight(name, value.type)
                for use in _uses_outside(value, block):
                    use.owner.operation.operands[use.operand_number] = new
        with ir.InsertionPoint(block), main.location:
            ir.func.ReturnOp(outputs)
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([], [v.type for v in outputs])
        )
        function.attributes[RESULTS] = ir.ArrayAttr.get([ir.StringAttr.get(n) for n in names])


def _copy_source(value: ir.Value, block: ir.Block, copies: dict[ir.Value, ir.Value]) -> ir.Value:
    """Return `value` in @init: weights and reshapes are copied, dispatches were moved."""
    owner = value.owner.operation
    if owner.name not in (RESHAPE, WEIGHT):
        return value
    if value not in copies:
        operands = [_copy_source(v, block, copies) for v in owner.operands]
        copy = owner.clone(ir.InsertionPoint(block))
        for i, operand in enumerate(operands):
            copy.operands[i] = operand
        copies[value] = copy.results[0]
    return copies[value]


def _uses_outside(value: ir.Value, block: ir.Block) -> list[ir.OpOperand]:
    return [use for use in value.uses if use.owner.operation.block != block]
