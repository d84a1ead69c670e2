"""What is measured: small models, in sizes that follow from the device's caches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from metadef.device.levels import MEMORY, capacities
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError, near_names

from .case import Case
from .images import averages, convolutions, depthwise, pools
from .products import contractions, matrix_vectors
from .rows import along, attentions, elementwise, gathers, norms, reductions, transposes

#: cases of a kind in a quick run
_QUICK = 3


def cases(spec: DeviceSpec, kinds: Sequence[str] | None = None, quick: bool = False) -> list[Case]:
    """Return the cases of these kinds, of all if none are named; `quick`: the fewest.

    Raises:
        MetadefError: there is no such kind.
    """
    for kind in kinds or ():
        if kind not in KINDS:
            near = near_names(kind, KINDS) or f"; the kinds are {', '.join(KINDS)}"
            raise MetadefError(f"no kind '{kind}' to measure{near}")
    sizes = working_sets(spec)
    found = {kind: list(KINDS[kind](sizes)) for kind in kinds or KINDS}
    if quick:
        found = {kind: _spread(of_kind, _QUICK) for kind, of_kind in found.items()}
    # In turns, so that what is there when a person stops it says something of each kind.
    rounds = max(map(len, found.values()), default=0)
    return [of_kind[n] for n in range(rounds) for of_kind in found.values() if n < len(of_kind)]


def working_sets(spec: DeviceSpec) -> list[int]:
    """Return bytes that one core's nearer caches hold, that the last one does, and that none does.

    Between two levels it is the geometric mean of what they hold; past the last cache, twice that.
    """
    caches = [size for name, size in capacities(spec, 1).items() if name != MEMORY]
    nearest = caches[0] // 2 if caches else 16 << 10
    between = [math.isqrt(a * b) for a, b in zip(caches, caches[1:], strict=False)]
    return [nearest, *between, 2 * caches[-1] if caches else 64 << 20]


def _spread(of_kind: list[Case], count: int) -> list[Case]:
    if len(of_kind) <= count:
        return of_kind
    return [of_kind[round(n * (len(of_kind) - 1) / (count - 1))] for n in range(count)]


def _reductions(sizes: Sequence[int]) -> Iterator[Case]:
    yield from reductions(sizes)
    yield from averages(sizes)


#: kind -> its cases for working sets
KINDS: dict[str, Callable[[Sequence[int]], Iterable[Case]]] = {
    "contraction": contractions,
    "matrix_vector": matrix_vectors,
    "convolution_1x1": convolutions("convolution_1x1", 1),
    "convolution_3x3": convolutions("convolution_3x3", 3),
    "depthwise": depthwise,
    "strided": convolutions("strided", 3, stride=2),
    "pointwise": elementwise,
    "reduce": _reductions,
    "softmax": along("softmax", lambda x, d: x.softmax(d)),
    "norm": norms,
    "attention": attentions,
    "pool": pools,
    "transpose": transposes,
    "gather": gathers,
}
