"""The forms that IR has on its way: which dialects its ops are of, and what its values may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from metadef import ir


@dataclass(frozen=True)
class Form:
    """The IR that a pass takes or leaves.

    Regions of `metadef.opaque` hold torch ops by design and are not looked into.
    """

    dialects: frozenset[str]
    #: how MLIR's text of the types begins that no value has
    excludes: tuple[str, ...] = ()

    def __or__(self, dialects: set[str]) -> Form:
        return replace(self, dialects=self.dialects | dialects)

    def misfit(self, module: ir.Operation) -> str | None:
        """Return what does not belong, `'linalg.add' op: expected ...; from LOC`, or None."""
        for op in _operations(module):
            problem = self._problem(op)
            if problem is not None:
                return f"'{op.name}' op: expected {problem}; from {op.location}"
        return None

    def _problem(self, op: ir.Operation) -> str | None:
        if op.name.partition(".")[0] not in self.dialects:
            return f"only the dialects {', '.join(sorted(self.dialects))}"
        for value in _values(op):
            if str(value.type).startswith(self.excludes):
                return f"no value of type {value.type}"
        return None


def _operations(op: ir.Operation) -> Iterator[ir.Operation]:
    for block in _blocks(op):
        for inner in block.operations:
            yield inner.operation
            yield from _operations(inner.operation)


def _values(op: ir.Operation) -> Iterator[ir.Value]:
    """Yield the results of an op and the arguments of its blocks."""
    yield from op.results
    for block in _blocks(op):
        yield from block.arguments


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    if op.name != "metadef.opaque":
        for region in op.regions:
            yield from region


_SCALAR = frozenset({"builtin", "func", "arith", "math", "scf", "cf", "affine", "index", "ub"})

TORCH = Form(frozenset({"builtin", "func", "torch", "torch_c", "metadef"}))
FRONT = Form(frozenset({"builtin", "func", "metadef"}), ("!torch.", "memref<"))
TENSORS = Form(_SCALAR | {"tensor", "linalg", "bufferization"}, ("!torch.", "memref<"))
BUFFERS = Form(_SCALAR | {"memref", "linalg", "vector"}, ("!torch.", "tensor<"))
LOOPS = Form(_SCALAR | {"memref", "vector", "llvm"}, ("!torch.", "tensor<"))
LLVM = Form(frozenset({"builtin", "llvm"}))
