"""Copy the rows of a box into a dense tile."""

from __future__ import annotations

from collections.abc import Sequence

from metadef import ir

from .access import Access
from .control import loop
from .index_math import Index, add, div, mul, sub, value
from .memory import Point
from .padding import turns_inside
from .stage import Inside


def copy_rows(
    source: Access,
    tile: Access,
    dims: list[int],
    bounds: list[tuple[Index, Index]],
    width: int,
    windows: Sequence[Inside] = (),
) -> None:
    """Copy what `source` reads at `bounds` along `dims`, the last one dense in both, to `tile`.

    Taps of `windows` beside their input stay out: nobody reads them, and they may be no memory.
    """
    start: Point = tuple(base for base, _ in bounds)
    vector = ir.VectorType.get([width], source.element)

    def over(dims: list[int], point: Point) -> None:
        d = dims[0]
        base, extent = bounds[d]
        for window in windows:
            if window.tap == d:
                base, extent = turns_inside(window, point[window.output], base, extent)
        end = add(base, extent)

        def at(i: Index) -> Point:
            return point[:d] + (i,) + point[d + 1 :]

        if len(dims) > 1:
            if isinstance(extent, int) and extent == 1:
                over(dims[1:], at(base))
                return

            def one(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                over(dims[1:], at(i))
                return []

            loop(base, end, 1, [], one)
            return

        def vectors(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            x = ir.vector.load(vector, source.buffer, [value(source.address(at(i)))])
            ir.vector.store(x, tile.buffer, [value(tile.address(at(i)))])
            return []

        def elements(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            x = ir.memref.load(source.buffer, [value(source.address(at(i)))])
            ir.memref.store(x, tile.buffer, [value(tile.address(at(i)))])
            return []

        whole = add(base, mul(div(sub(end, base), width), width))
        loop(base, whole, width, [], vectors)
        if not (isinstance(extent, int) and extent % width == 0):
            loop(whole, end, 1, [], elements)

    over(dims, start)
