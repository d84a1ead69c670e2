"""The only module that imports MLIR's bindings; everything else says `from metadef import ir`.

`ir.X` is MLIR's own core API (`ir.Context`, `ir.Operation`, ...), `ir.arith`, `ir.linalg`, ... are
the upstream dialects, and `ir.make_context()` is the one way to get a context: multithreading is
off (a threaded context deadlocks on the interpreter lock once a Python pass or verifier is loaded)
and the project's own dialects are loaded.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from torch_mlir import passmanager, rewrite
from torch_mlir._mlir_libs import _mlir
from torch_mlir._mlir_libs._torchMlir import register_dialect  # makes torch-mlir's passes known
from torch_mlir.dialects import ext
from torch_mlir.ir import *  # noqa: F403
from torch_mlir.ir import (  # by name, so that the type checker takes them for types
    AffineExpr,
    AffineMap,
    AffineMapAttr,
    ArrayAttr,
    Attribute,
    Block,
    BlockArgument,
    BoolAttr,
    Context,
    DenseElementsAttr,
    DenseI64ArrayAttr,
    Diagnostic,
    DictAttr,
    FlatSymbolRefAttr,
    FloatAttr,
    FunctionType,
    InsertionPoint,
    IntegerAttr,
    IntegerType,
    Location,
    MemRefType,
    MLIRError,
    Module,
    Operation,
    OpOperand,
    OpView,
    RankedTensorType,
    Region,
    ShapedType,
    StringAttr,
    Type,
    TypeAttr,
    UnitAttr,
    Value,
    VectorType,
    WalkOrder,
    WalkResult,
)

from metadef.diagnostics import MetadefError

#: upstream dialects that are asked for here; they load on demand, as some are large
_DIALECTS = frozenset(
    "arith bufferization builtin func linalg llvm math memref quant scf tensor transform ub "
    "vector".split()
)


def __getattr__(name: str) -> Any:
    """Load a dialect when it is first used.

    It also tells the type checker that the names from native modules exist; it cannot see them.
    """
    if name not in _DIALECTS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = dialect = importlib.import_module(f"torch_mlir.dialects.{name}")
    return dialect


# Where the bindings look for the module of a dialect, ours first: without it they search, and fail,
# each time an attribute of ours is read.
_mlir.globals.dialect_search_modules = ["metadef.dialects", "torch_mlir.dialects"]

# A dialect in Python is loaded through state that all contexts share.
_loading = threading.Lock()


def make_context() -> Context:
    """Return a context with torch-mlir's and Metadef's dialects loaded and no threads."""
    from metadef.dialects import load_dialects

    context = Context()
    context.enable_multithreading(False)
    register_dialect(context)
    with _loading, context, Location.unknown():
        load_dialects()
    return context


def walk(op: Operation | OpView | Module, visit: Callable[[Operation], None]) -> None:
    """Call `visit` on every operation in `op`, inner ones first; `visit` may erase its op."""
    root = op.operation
    for region in root.regions:
        for block in region:
            for inner in list(block.operations):
                walk(inner.operation, visit)
    visit(root)


def operations(op: Operation | OpView | Module) -> Iterator[OpView]:
    """Yield every operation nested in `op` in program order, outer ones first (a stable copy)."""
    pending = _inside(op)
    while pending:
        inner = pending.pop()
        yield inner
        pending += _inside(inner)


def named(op: Operation | OpView | Module, *names: str) -> dict[str, list[OpView]]:
    """Return the operations in `op` by name, those called one of `names`, in program order."""
    found: dict[str, list[OpView]] = {name: [] for name in names}

    def visit(inner: Operation) -> Any:
        if inner.name in found:
            found[inner.name].append(inner.opview)
        return WalkResult.ADVANCE

    op.operation.walk(visit, WalkOrder.PRE_ORDER)
    return found


def _inside(op: Operation | OpView | Module) -> list[OpView]:
    """Return the operations right inside `op`, last ones first."""
    found = [inner for region in op.operation.regions for block in region for inner in block]
    found.reverse()
    return found


def entry_block(op: Operation | OpView) -> Block:
    """Return the first block of the first region.

    Raises:
        MetadefError: the op is a declaration; where a body is needed, one without is bad input.
    """
    blocks = op.operation.regions[0].blocks
    if not len(blocks):
        raise MetadefError(f"'{op.operation.name}' op: expected a body, got a declaration")
    return blocks[0]
