"""Which lines and pages of memory a part of a loop nest touches: what caches and TLBs see of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd, prod

from metadef import ir

from .access import Access, dims_in
from .index_math import Index

#: Bytes of a line, and of the least page, of nearly all CPUs. L1 caches find the set of a line by
#: its place in such a page. No choice rests on either: they only tell memory accesses apart.
LINE, _PAGE = 64, 4096


@dataclass(frozen=True)
class Footprint:
    """What some turns of a nest's loops touch of one operand: distinct bytes, lines and pages, and
    how many of its separate runs of bytes begin in the same set of L1, on average."""

    bytes: int
    lines: int
    pages: int
    runs_per_set: float


def footprint(
    access: Access, turns: Mapping[int, int], number: Callable[[Index], int]
) -> Footprint:
    """Return what `turns`, by dim, touch; `number` tells the value of an index."""
    element = max(1, int(access.element.width) // 8)
    walks = [
        (abs(stride) * element, count)
        for dim, n in turns.items()
        for stride, count in _walks(access, dim, n, number)
        if stride and count > 1
    ]
    lines, runs = _pieces(walks, element, LINE)
    pages, _ = _pieces(walks, element, _PAGE)
    count = prod(n for _, n in runs)
    sets = _PAGE // gcd(_PAGE, *(stride for stride, _ in runs))
    return Footprint(
        bytes=element * prod(n for _, n in walks),
        lines=lines,
        pages=pages,
        runs_per_set=count / min(count, sets),
    )


def _walks(
    access: Access, dim: int, turns: int, number: Callable[[Index], int]
) -> Iterator[tuple[int, int]]:
    """Yield (stride, turns) of an operand along a dim, in elements: two of them where the dim goes
    through packed panels. What moves otherwise counts as going on element by element."""
    if not access.is_nonlinear(dim):
        yield number(access.strides[dim]), turns
        return
    panel = access.panel(dim)
    if panel is None:
        yield 1, turns
        return
    width, inner = panel
    between = next(
        s for e, s in access.nonlinear if dim in dims_in(e) and isinstance(e, ir.AffineFloorDivExpr)
    )
    yield number(inner), min(turns, width)
    yield number(between), -(-turns // width)


def _pieces(
    walks: Iterable[tuple[int, int]], element: int, unit: int
) -> tuple[int, list[tuple[int, int]]]:
    """Return how many units of memory walks (stride in bytes, turns) touch, and the walks between
    runs: those whose stride is more than a run and a unit are long."""
    run, between = element, []
    for stride, turns in sorted(walks):
        if stride <= max(run, unit):
            run += stride * (turns - 1)
        else:
            between.append((stride, turns))
    return prod(n for _, n in between) * -(-run // unit), between
