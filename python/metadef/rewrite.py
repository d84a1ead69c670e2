"""Rewrite patterns in Python: a function from an op to its replacement, or None for no match.

MLIR's own Python patterns say "no match" by a true value, which reads the wrong way round; this
module wraps that once. A pattern matches purely, then builds at the op's place (the insertion
point and location are set), and returns the value or values that replace the op's results.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from metadef import ir

Rewrite = Callable[[Any], "ir.Value | Sequence[ir.Value] | None"]


# Patterns that undo each other would go on for ever: far more rewrites than a module has ops.
_REWRITES_PER_OP = 100


@dataclass(frozen=True)
class Pattern:
    """`rewrite` applies to ops named `root`."""

    name: str
    root: str
    rewrite: Rewrite


def pattern(root: str) -> Callable[[Rewrite], Pattern]:
    """Declare the decorated function a pattern on ops named `root`."""

    def wrap(function: Rewrite) -> Pattern:
        return Pattern(getattr(function, "__name__", root), root, function)

    return wrap


def apply_patterns(root: ir.Operation, patterns: Iterable[Pattern]) -> int:
    """Apply patterns over `root` until none matches; return the number of rewrites.

    A work list visits ops in program order; users of a replacement are visited again.
    Replaced ops are erased; whatever became dead stays for `eliminate-dead-code`.
    """
    by_root: dict[str, list[Pattern]] = {}
    for p in patterns:
        by_root.setdefault(p.root, []).append(p)
    work: OrderedDict[int, Any] = OrderedDict()
    for op in ir.operations(root):
        _add(work, op, by_root)
    count, limit = 0, 1000 + _REWRITES_PER_OP * len(work)
    while work:
        _, op = work.popitem(last=False)
        for p in by_root[op.operation.name]:
            with ir.InsertionPoint(op), op.location:
                replacement = p.rewrite(op)
            if replacement is not None:
                values = [replacement] if isinstance(replacement, ir.Value) else list(replacement)
                _replace(op, values, work, by_root)
                count += 1
                assert count <= limit, f"pattern {p.name} does not come to an end"
                break
    return count


def _replace(
    op: Any, values: list[ir.Value], work: OrderedDict[int, Any], by_root: dict[str, list[Pattern]]
) -> None:
    """Replace the results of `op` by `values` and erase it; what may match now joins `work`."""
    for old, new in zip(op.operation.results, values, strict=True):
        for use in list(old.uses):
            _add(work, use.owner, by_root)
        old.replace_all_uses_with(new)
    for inner in (op, *ir.operations(op)):
        work.pop(_address(inner), None)
    op.operation.erase()
    for value in values:
        if not isinstance(value.owner, ir.Block):
            _add(work, value.owner, by_root)


def _add(work: OrderedDict[int, Any], op: Any, by_root: dict[str, list[Pattern]]) -> None:
    # Keyed by address: wrappers are made anew each time, comparing one whose op was erased raises,
    # and an op's hash is that of its operands and attributes, which rewriting changes.
    if op.operation.name in by_root:
        work[_address(op)] = op.operation.opview


def _address(op: Any) -> int:
    """Return where MLIR keeps the op."""
    capsule = op.operation._CAPIPtr
    address = _pointer(capsule, _name(capsule))
    assert isinstance(address, int)
    return address


_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
