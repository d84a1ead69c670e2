"""All that is decided of a nest before its loops are built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from metadef.plan.kernel_choice import BY_RULE, KernelChoice

from .blocking import Blocking, block_for_caches
from .boxes import box_sizes, task_order
from .grouping import Nest
from .index_math import Index
from .schedule import Schedule, Target, choose
from .stage import Stage
from .window_tile import WindowTile, window_tile

# How many turns a loop has whose extent is not known, when stages are compared.
_UNKNOWN_EXTENT = 64


@dataclass(frozen=True)
class Decisions:
    """The schedule of each stage of a nest, and (extent, box size) of each common loop in the order
    of `order`, the last one fastest, with what is `wanted`.

    `windows` and `blocking` are of a nest of one stage.
    """

    nest: Nest
    target: Target
    wanted: KernelChoice
    schedules: list[Schedule]
    boxes: list[tuple[Index, int]]
    order: list[int]
    blocking: Blocking | None = None
    windows: WindowTile | None = None

    @cached_property
    def main(self) -> Stage:
        """The nest's main stage."""
        return main_stage(self.nest)

    @property
    def block(self) -> Schedule:
        """The schedule of the main stage in a whole box."""
        return self.in_box[self.nest.stages.index(self.main)]

    @cached_property
    def in_box(self) -> list[Schedule]:
        """The schedules of the stages in a whole box."""
        if len(self.nest.stages) == 1:
            return self.schedules
        found = []
        for stage, common in zip(self.nest.stages, self.nest.common, strict=True):
            extents = list(stage.extents)
            for dim, (_, size) in zip(common, self.boxes, strict=True):
                extents[dim] = size
            own = self.wanted if stage is self.main else BY_RULE
            found.append(choose(stage, tuple(extents), alone(self.target), own, evenly=True))
        return found


def decide(nest: Nest, target: Target, wanted: KernelChoice = BY_RULE) -> Decisions:
    """Return what the rules decide of a nest where nothing is `wanted`."""
    given = nest, target, wanted
    if len(nest.stages) > 1:
        main = main_stage(nest)
        schedules = [
            choose(s, s.extents, target, wanted if s is main else BY_RULE) for s in nest.stages
        ]
        boxes = box_sizes(nest, schedules, None, target.cores, wanted.tiles)
        return Decisions(*given, schedules, boxes, task_order(nest, schedules, None))
    (stage,) = nest.stages
    windows = window_tile(stage, target, wanted)
    if windows is not None:
        dims = stage.parallel_dims
        boxes = [(stage.extents[d], windows.box[d]) for d in dims]
        order = list(range(len(dims)))
        return Decisions(*given, [windows.schedule], boxes, order, windows=windows)
    schedules = [choose(stage, stage.extents, target, wanted)]
    blocking = block_for_caches(stage, schedules[0], target, wanted)
    boxes = box_sizes(nest, schedules, blocking, target.cores, wanted.tiles)
    return Decisions(*given, schedules, boxes, task_order(nest, schedules, blocking), blocking)


def alone(target: Target) -> Target:
    """Return the target of code that one core has to itself."""
    return replace(target, cores=1)


def main_stage(nest: Nest) -> Stage:
    """Return the stage of sums of products with the most work, or that with the most work."""
    return max(nest.stages, key=lambda stage: (stage.sums_products, points(stage)))


def main_nest(nests: list[Nest]) -> int | None:
    """Return which of a kernel's nests has the main stage; None where there is no nest."""
    weights = [(main_stage(n).sums_products, sum(map(points, n.stages))) for n in nests]
    return weights.index(max(weights)) if weights else None


def points(stage: Stage) -> int:
    """Return the points of a stage's iteration space, where extents are not known about as many."""
    return prod(e if isinstance(e, int) else _UNKNOWN_EXTENT for e in stage.extents)
