"""The search over decisions of front passes, on a model that only says what it would cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from metadef.frontend.compiled_model import CompiledModel
from metadef.measure.timing import Series
from metadef.plan.decision import Decision
from metadef.plan.plan import CONVOLUTION, FUSION, Choice, Evidence, ExecutionPlan, PlannedDevice
from metadef.tuning.budget import Budget
from metadef.tuning.calls import Calls
from metadef.tuning.front_search import Attempts, search_front
from metadef.tuning.front_ways import FUSIONS, Ways
from metadef.tuning.objective import parse_objective
from metadef.tuning.study import Trial, open_study

START = ExecutionPlan("", PlannedDevice("one", "0" * 64), "")
DIRECT, WINOGRAD = {"algorithm": "direct"}, {"algorithm": "winograd", "tile": 2}
ALGORITHMS = Ways(CONVOLUTION, (DIRECT, WINOGRAD))
FIRST, SECOND = "a" * 32, "b" * 32


class Model:
    """A convolution; by Winograd's algorithm there is a chain of ops, too, that may be apart."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan

    def chosen(self, kind: str, key: str, default: Choice) -> Choice:
        wanted = self.plan.wanted(kind, key)
        return wanted[0][0] if wanted else default

    @property
    def decisions(self) -> tuple[Decision, ...]:
        first = Decision(CONVOLUTION, FIRST, self.chosen(CONVOLUTION, FIRST, DIRECT))
        second = Decision(FUSION, SECOND, self.chosen(FUSION, SECOND, {"fused": True}))
        return (first, second) if first.chosen == WINOGRAD else (first,)

    def decisions_under(self, plan: ExecutionPlan) -> tuple[Decision, ...]:
        return Model(plan).decisions

    @property
    def seconds(self) -> float:
        by_winograd = self.chosen(CONVOLUTION, FIRST, DIRECT) == WINOGRAD
        apart = not self.chosen(FUSION, SECOND, {"fused": True})["fused"]
        return 1 - 0.2 * by_winograd - 0.1 * (by_winograd and apart)


def calls(seconds: float) -> Calls:
    return Calls(Series([[seconds]] * 7))


def measure(models: Sequence[CompiledModel], sure: bool) -> list[Calls]:
    return [calls(cast(Any, model).seconds) for model in models]


def search(storage: Path, measure: Any = measure) -> tuple[ExecutionPlan, list[Trial]]:
    tried: list[Trial] = []
    with open_study(storage, "test") as study:
        attempts = Attempts(
            compile_with=lambda plan: cast(CompiledModel, Model(plan)),
            measure=measure,
            objective=parse_objective("latency"),
            study=study,
            budget=Budget(60, 100),
            until=60,
            evidence=Evidence(date="2026-11-30", device="0" * 64),
            on_trial=lambda what, trial: tried.append(trial),
            under="in one for latency",
        )
        model = cast(CompiledModel, Model(START))
        plan, _ = search_front((ALGORITHMS, FUSIONS), START, model, attempts)
    return plan, tried


def test_decisions_that_come_up_on_the_way_are_searched_too(tmp_path: Path) -> None:
    plan, tried = search(tmp_path / "s.sqlite")
    assert [(e.kind, e.choice) for e in plan.entries] == [
        (CONVOLUTION, WINOGRAD),
        (FUSION, {"fused": False}),
    ]
    assert [t.ratio for t in tried] == pytest.approx([0.8, 0.7 / 0.8])


def test_what_was_luck_is_not_kept(tmp_path: Path) -> None:
    def lucky(models: Sequence[CompiledModel], sure: bool) -> list[Calls]:
        return [calls(1.0), calls(1.0 if sure else 0.9)]

    plan, tried = search(tmp_path / "s.sqlite", lucky)
    assert not plan.entries
    assert [t.ratio for t in tried] == pytest.approx([0.9])


def test_what_is_known_to_lose_is_not_measured_again(tmp_path: Path) -> None:
    def slower(models: Sequence[CompiledModel], sure: bool) -> list[Calls]:
        return [calls(1.0), calls(1.1)]

    storage = tmp_path / "s.sqlite"
    assert len(search(storage, slower)[1]) == 1
    assert not search(storage, slower)[1]
