"""Which ways the decisions of front passes may go, kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metadef.diagnostics import MetadefError
from metadef.dialects.metadef.fourier import LENGTHS
from metadef.dialects.metadef.ops.contraction import NARROW
from metadef.dialects.metadef.winograd import LEAST_CHANNELS
from metadef.frontend.compiled_model import CompiledModel
from metadef.plan.decision import Decision
from metadef.plan.front_choices import choice_of_text
from metadef.plan.plan import (
    CONVOLUTION,
    FUSION,
    GROUPING,
    LAYOUT,
    PRECISION,
    Choice,
    ExecutionPlan,
)

from .entries import search_entry, with_entries


@dataclass(frozen=True)
class Ways:
    """The ways that decisions of one kind may go.

    Single ones, once all together were tried, get at most the `part` of the search's trials.
    """

    kind: str
    choices: tuple[Choice, ...]
    part: float = 1.0


def _ways(kind: str, *texts: str, part: float = 1.0) -> Ways:
    return Ways(kind, tuple(choice_of_text(kind, text) for text in texts), part)


ALGORITHMS = _ways(
    CONVOLUTION,
    "direct",
    *(f"winograd({tile})" for tile in LEAST_CHANNELS),
    *(f"fft({length})" for length in LENGTHS),
)
#: There are many of them, and few gain.
FUSIONS = _ways(FUSION, "apart", "fused", part=0.1)
GROUPS = _ways(GROUPING, "grouped", "apart")
LAYOUTS = _ways(LAYOUT, "nhwc", "nchw", part=0.1)
TYPES = _ways(PRECISION, "f32", *NARROW)


def open_ways(
    ways: Ways,
    decisions: Sequence[Decision],
    plan: ExecutionPlan,
    model: CompiledModel,
    on_failure: Callable[[Choice, str], None],
) -> dict[str, list[Choice]]:
    """Return by key the other ways that are open to decisions of a kind: all are asked for one at
    once, and the front passes say what they refuse."""
    found: dict[str, list[Choice]] = {decision.key: [] for decision in decisions}
    chosen = {decision.key: decision.chosen for decision in decisions}
    for way in ways.choices if decisions else ():
        asked = with_entries(plan, [search_entry(decision, way) for decision in decisions])
        try:
            decided = model.decisions_under(asked)
        except MetadefError as error:
            on_failure(way, str(error).splitlines()[0])
            continue
        for made in decided:
            is_one = made.kind == ways.kind and made.key in found
            if is_one and not made.refused and way != chosen[made.key]:
                found[made.key].append(way)
    return found
