"""Rewrite patterns in Python: a function from an op to its replacement, or None for no match.

MLIR's own Python patterns say "no match" by a true value, which reads the wrong way round; this
module wraps that once. A pattern matches purely, then builds at the op's place (the insertion
point and location are set), and returns the value or values that replace the op's results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from metadef import ir

Rewrite = Callable[[Any], "ir.Value | Sequence[ir.Value] | None"]


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
    work = [op for op in ir.operations(root) if op.operation.name in by_root]
    erased: set[Any] = set()
    count = 0
    while work:
        pending, work = work, []
        for op in pending:
            if op.operation in erased:
                continue
            for p in by_root[op.operation.name]:
                with ir.InsertionPoint(op), op.location:
                    replacement = p.rewrite(op)
                if replacement is None:
                    continue
                values = [replacement] if isinstance(replacement, ir.Value) else list(replacement)
                for old, new in zip(op.operation.results, values, strict=True):
                    for use in old.uses:
                        user = use.owner
                        if user.operation.name in by_root:
                            work.append(user)
                    old.replace_all_uses_with(new)
                work += [v.owner.opview for v in values if _is_rewritable(v, by_root)]
                erased.add(op.operation)
                op.operation.erase()
                count += 1
                break
    return count


def _is_rewritable(value: ir.Value, by_root: dict[str, list[Pattern]]) -> bool:
    return isinstance(value.owner, ir.Operation) and value.owner.name in by_root
