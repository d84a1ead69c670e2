"""The legal choices for a nest, the rules' own first: what a search looks through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, product
from typing import Any

from metadef.diagnostics import MetadefError
from metadef.plan.kernel_choice import BY_RULE, KernelChoice

from .cells import CHUNK
from .decisions import Decisions, decide
from .grouping import Nest
from .index_math import Index
from .legality import choosable, decide_legally
from .schedule import Schedule, Target, even_block, most_rows, possible_lanes
from .sharing import known
from .stage import Stage
from .tasks import PARTS

# How much larger or smaller a box or a chunk is than by the rules.
_FACTORS = (0.5, 2.0, 0.25, 4.0, 8.0)
_PARTS_TRIED = (8, 16, 256)
# Lanes that cost more than so many times the cheapest are not worth a look.
_DEARER_LANES = 2.0
# Smaller register blocks leave the multiply-add units idle.
_LEAST_SUMS = 4
_MOST_VECTORS = 4

#: changes one thing of a choice, or returns None where it changes nothing
Move = Callable[[KernelChoice], KernelChoice | None]


@dataclass(eq=False)
class Alternatives:
    """The choices for a nest, found as they are asked for; `axes` are the moves of each kind."""

    nest: Nest
    target: Target
    rule: Decisions = field(init=False)
    fields: list[str] = field(init=False)
    axes: dict[str, list[Move]] = field(init=False)
    _known: dict[KernelChoice, Decisions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rule = decide(self.nest, self.target)
        can = choosable(self.rule)
        self.fields = can
        stage = self.rule.main
        self.axes = {}
        if {"rows", "vectors"} & set(can):
            blocks = _blocks(stage, self.rule.block, self.target)
            self.axes["block"] = [partial(_with, **_only(block, can)) for block in blocks]
        if "tiles" in can:
            loops = [c for c, (extent, _) in enumerate(self.rule.boxes) if extent != 1]
            self.axes["tiles"] = [
                partial(self._other_tile, c, f) for f in _FACTORS for c in reversed(loops)
            ]
        if "chunks" in can:
            self.axes["chunks"] = [partial(self._other_chunk, f) for f in (0.0, *_FACTORS)]
            self.axes["copied"] = [self._other_copy]
        if "parts" in can:
            self.axes["parts"] = [partial(_with, parts=n) for n in _PARTS_TRIED]
        if "lanes" in can:
            near = possible_lanes(stage, stage.extents, self.target, within=_DEARER_LANES)
            self.axes["lanes"] = [partial(_with, lanes=d) for d in near[1:]]

    @property
    def default(self) -> KernelChoice:
        """What the rules choose, said in full."""
        return self.in_full(BY_RULE)

    def in_full(self, choice: KernelChoice) -> KernelChoice:
        """Return a choice with what the rules make of the fields that it leaves to them.

        Raises:
            MetadefError: it is not legal.
        """
        found = decide_legally(self.nest, self.target, choice, self.rule)
        return self._said(found, choice)

    def candidates(self) -> Iterator[KernelChoice]:
        """Yield the default, then what differs from it in one way, in two, and so on."""
        seen = {self.default}
        yield self.default
        for count in range(1, len(self.axes) + 1):
            for axes in combinations(self.axes.values(), count):
                for moves in product(*axes):
                    choice = self._moved(moves)
                    if choice is not None and choice not in seen:
                        seen.add(choice)
                        yield choice

    def _moved(self, moves: tuple[Move, ...]) -> KernelChoice | None:
        """Return the choice after some moves, or None where they do not lead to a legal one."""
        choice = BY_RULE
        try:
            for move in moves:
                moved = move(choice)
                if moved is None:
                    return None
                choice = moved
            return self.in_full(choice)
        except MetadefError:
            return None

    def _decided(self, choice: KernelChoice) -> Decisions:
        """Return what the rules make of a choice, found once."""
        if choice not in self._known:
            self._known[choice] = decide(self.nest, self.target, choice)
        return self._known[choice]

    def _said(self, found: Decisions, choice: KernelChoice) -> KernelChoice:
        block, blocking, dims = found.block, found.blocking, found.main.reduction_dims
        everything = KernelChoice(
            lanes=block.lanes,
            rows=block.rows if dims else None,
            vectors=block.vectors if dims else block.chains,
            tiles=tuple(size for _, size in found.boxes),
            chunks=None if blocking is None else tuple(_chunk(found, d) for d in dims),
            copied=None if blocking is None else blocking.copied is not None,
            parts=choice.parts or PARTS,
        )
        left = {name: None for name in everything.said if name not in self.fields}
        return replace(everything, **left)

    def _other_tile(self, c: int, factor: float, choice: KernelChoice) -> KernelChoice | None:
        """Make loop `c` of a box longer or shorter than the rules would, in whole blocks."""
        found = self._decided(choice)
        extent, size = found.boxes[c]
        unit = 1
        for common, schedule in zip(self.nest.common, found.schedules, strict=True):
            if schedule.lanes == common[c]:
                unit = max(unit, schedule.panel if len(self.nest.stages) == 1 else schedule.width)
            elif schedule.row_dim == common[c] and size % schedule.rows == 0:
                unit = max(unit, schedule.rows)
        other = _in_units(extent, size * factor, unit)
        if other == size:
            return None
        sizes = [s for _, s in found.boxes]
        return replace(choice, tiles=(*sizes[:c], other, *sizes[c + 1 :]))

    def _other_chunk(self, factor: float, choice: KernelChoice) -> KernelChoice | None:
        """Cut the reduction in longer chunks, shorter ones, or not at all."""
        blocking = self._decided(choice).blocking
        dims = self.rule.main.reduction_dims
        if blocking is None:
            return None
        sizes = [blocking.chunks.get(d, 0) for d in dims]
        if not factor:
            return replace(choice, chunks=tuple(0 for _ in dims)) if any(sizes) else None
        extents = [self.rule.main.extents[d] for d in dims]
        n = max(range(len(dims)), key=lambda k: (sizes[k], known(extents[k])))
        size = sizes[n] or min(known(extents[n]), CHUNK)
        other = int(size * factor)
        if other < 1 or (isinstance(extents[n], int) and other >= known(extents[n])):
            return None
        return replace(choice, chunks=(*sizes[:n], other, *sizes[n + 1 :]))

    def _other_copy(self, choice: KernelChoice) -> KernelChoice | None:
        blocking = self._decided(choice).blocking
        return None if blocking is None else replace(choice, copied=blocking.copied is None)


def _with(choice: KernelChoice, **said: Any) -> KernelChoice:
    return replace(choice, **said)


def _only(said: dict[str, int], fields: list[str]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name in fields}


def _blocks(stage: Stage, block: Schedule, target: Target) -> list[dict[str, int]]:
    """Return register blocks that may fit, those that use most registers first."""
    if block.lanes is None:
        return []
    if not stage.reduction_dims:
        return [{"vectors": n} for n in (1, 2, 4, 8)]
    if block.row_dim is None:
        return [{"rows": 1, "vectors": n} for n in (8, 4, 2, 1)]
    extent = stage.extents[block.row_dim]
    if block.over_reduction:
        return [{"rows": r, "vectors": v} for r in (1, 2, 4) for v in (4, 2, 1)]
    found = []
    for vectors in (2, 1, 3, _MOST_VECTORS):
        most = most_rows(stage, block.row_dim, block.lanes, vectors, target)
        tried = (most, most - 1, most - 2, most * 3 // 4, most // 2)
        rows = dict.fromkeys(even_block(extent, n) for n in tried if n > 0)
        found += [{"rows": r, "vectors": vectors} for r in rows if r * vectors >= _LEAST_SUMS]
    return found


def _chunk(found: Decisions, dim: int) -> int:
    """Return the turns of a reduced dim in a chunk, 0 where that is all of them."""
    assert found.blocking is not None
    size, extent = found.blocking.chunks.get(dim, 0), found.main.extents[dim]
    return 0 if isinstance(extent, int) and size >= extent else size


def _in_units(extent: Index, size: float, unit: int) -> int:
    """Return about `size` turns in whole units, at least one and at most all."""
    turns = unit * max(1, round(size / unit))
    return min(turns, extent) if isinstance(extent, int) else turns
