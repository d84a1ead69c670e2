"""Buffers that the threads of a kernel share: where they live and when to wait for one another."""

from __future__ import annotations

from collections.abc import Callable

from metadef import ir
from metadef.symbolic import Dim

from .index_math import Index, value
from .stage import Stage

_VIEWS = ("memref.subview", "memref.expand_shape", "memref.collapse_shape", "memref.cast",
          "memref.reinterpret_cast", "memref.view")  # fmt: skip
_ALIGNMENT = 64
#: marks an allocation of which each thread has its own
PRIVATE = "metadef.private"


class Dependences:
    """Which buffers were touched since the last barrier, so that the next one is not in vain."""

    def __init__(self) -> None:
        self.written: set[ir.Value] = set()
        self.read: set[ir.Value] = set()

    def needs_barrier(self, stages: list[Stage]) -> bool:
        """Tell whether a nest must wait for what came before, and take note of the nest."""
        reads = {root(b) for s in stages for b in s.reads}
        writes = {root(b) for s in stages for b in s.writes}
        return self.must_wait(reads, writes)

    def must_wait(self, reads: set[ir.Value], writes: set[ir.Value]) -> bool:
        """Tell whether what touches these buffers must wait, and take note of it."""
        wait = bool((reads | writes) & self.written or writes & self.read)
        if wait:
            self.written, self.read = set(), set()
        self.written |= writes
        self.read |= reads
        return wait


def root(buffer: ir.Value) -> ir.Value:
    """Return the buffer that a view looks into."""
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.name in _VIEWS:
        buffer = buffer.owner.operation.operands[0]
    return buffer


def place_allocations(func: ir.OpView, entry: ir.Block) -> list[dict[str, ir.Attribute]]:
    """Move the allocations of a function's entry block into its scratch arguments.

    Allocations marked `metadef.private` are one for each thread and go to the thread's own scratch
    memory (those of a symbolic size stay on the heap), the others to the shared one. Returns the
    attributes of the added arguments; the function says how many bytes it needs of each.
    """
    shared, own = Dim.of(0), Dim.of(0)
    scratch = [_add_bytes(entry), _add_bytes(entry)]
    for op in [o for o in entry.operations if o.operation.name == "memref.alloc"]:
        size = allocation_bytes(op.operation)
        assert size is not None, f"the size of {op} is no expression of the symbols"
        private = PRIVATE in op.attributes
        if private and not size.is_static:
            del op.attributes[PRIVATE]
            continue
        for user in [u.owner for r in op.results for u in r.uses]:
            if user.operation.name == "memref.dealloc":
                user.operation.erase()
        with ir.InsertionPoint(op), op.location:
            offset = value(index_of(own if private else shared, entry))
            view = ir.memref.view(op.results[0].type, scratch[private], offset, list(op.operands))
        op.results[0].replace_all_uses_with(view)
        op.operation.erase()
        padded = (size + (_ALIGNMENT - 1)) // _ALIGNMENT * _ALIGNMENT
        shared, own = (shared, own + padded) if private else (shared + padded, own)
    i64 = ir.IntegerType.get_signless(64)
    func.attributes["metadef.scratch"] = ir.StringAttr.get(str(shared))
    func.attributes["metadef.thread_scratch"] = ir.IntegerAttr.get(i64, own.value)
    unit = ir.UnitAttr.get()
    return [{"metadef.scratch": unit}, {"metadef.thread_scratch": unit}]


def _add_bytes(entry: ir.Block) -> ir.Value:
    """Add an argument of bytes to a function."""
    dynamic, i8 = ir.ShapedType.get_dynamic_size(), ir.IntegerType.get_signless(8)
    return entry.add_argument(ir.MemRefType.get([dynamic], i8), ir.Location.unknown())


def allocation_bytes(alloc: ir.Operation) -> Dim | None:
    """Return the size of an allocation, or None if it is no expression of the symbols."""
    type_ = ir.MemRefType(alloc.results[0].type)
    sizes = list(alloc.operands)
    total = Dim.of(-(-_bits(type_.element_type) // 8))
    for n in type_.shape:
        if n == ir.ShapedType.get_dynamic_size():
            size = expression(sizes.pop(0))
            if size is None:
                return None
            total = total * size
        else:
            total = total * n
    return total


def expression(v: ir.Value) -> Dim | None:
    """Return the dim expression that an index value computes from the symbols."""
    owner = v.owner
    if isinstance(owner, ir.Block):
        func = owner.owner
        if "arg_attrs" not in func.attributes:
            return None
        attrs = ir.DictAttr(ir.ArrayAttr(func.attributes["arg_attrs"])[v.arg_number])
        return Dim.of(attrs["metadef.symbol"].value) if "metadef.symbol" in attrs else None
    op = owner.operation
    if op.name == "memref.dim":
        return _dim_of(op)
    if op.name == "arith.constant":
        return Dim.of(ir.IntegerAttr(op.attributes["value"]).value)
    if op.name not in _EXPRESSIONS:
        return None
    lhs, rhs = expression(op.operands[0]), expression(op.operands[1])
    return None if lhs is None or rhs is None else _EXPRESSIONS[op.name](lhs, rhs)


def _dim_of(op: ir.Operation) -> Dim | None:
    """Return the dim that `memref.dim` reads."""
    at = expression(op.operands[1])
    assert at is not None, f"{op} reads a dim that is not constant"
    return _extent(op.operands[0], at.value)


#: ops that give the dynamic sizes of their result as operands, and where the first one is
_SIZE_OPERANDS = {"memref.alloc": 0, "memref.expand_shape": 1, "memref.view": 2}


def _extent(buffer: ir.Value, at: int) -> Dim | None:
    """Return a dim of an argument, an allocation (moved or not) or a view of one."""
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = ir.MemRefType(buffer.type).shape
    if shape[at] != dynamic:
        return Dim.of(shape[at])
    before = sum(1 for n in shape[:at] if n == dynamic)
    owner = buffer.owner
    if isinstance(owner, ir.Block):
        func = owner.owner
        attrs = ir.DictAttr(ir.ArrayAttr(func.attributes["arg_attrs"])[buffer.arg_number])
        return Dim.of(ir.ArrayAttr(attrs["metadef.dims"])[at].value)
    op = owner.operation
    if op.name in _SIZE_OPERANDS:
        return expression(op.operands[_SIZE_OPERANDS[op.name] + before])
    if op.name == "memref.subview":
        segments = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
        return expression(op.operands[segments[0] + segments[1] + before])
    if op.name == "memref.cast":
        return _extent(op.operands[0], at)
    if op.name == "memref.collapse_shape":
        total = Dim.of(1)
        for i in ir.ArrayAttr(ir.ArrayAttr(op.attributes["reassociation"])[at]):
            part = _extent(op.operands[0], ir.IntegerAttr(i).value)
            if part is None:
                return None
            total = total * part
        return total
    return None


_EXPRESSIONS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.divsi": lambda a, b: a // b,
    "arith.divui": lambda a, b: a // b,
    "arith.remsi": lambda a, b: a % b,
    "arith.remui": lambda a, b: a % b,
    "arith.maxsi": lambda a, b: Dim.call("max", a, b),
    "arith.minsi": lambda a, b: Dim.call("min", a, b),
}


def index_of(dim: Dim, entry: ir.Block) -> Index:
    """Build the value of a dim expression from the symbol arguments of a function."""
    from metadef.passes._kernel_abi import index_value

    if dim.is_static:
        return dim.value
    attrs = ir.ArrayAttr(entry.owner.attributes["arg_attrs"])
    symbols = {
        ir.DictAttr(a)["metadef.symbol"].value: v
        for a, v in zip(attrs, entry.arguments, strict=False)
        if "metadef.symbol" in ir.DictAttr(a)
    }
    return index_value(dim, symbols)


def _bits(element: ir.Type) -> int:
    if isinstance(element, ir.IndexType):
        return 64
    if isinstance(element, ir.FloatType):
        return int(element.width)
    return int(ir.IntegerType(element).width)
