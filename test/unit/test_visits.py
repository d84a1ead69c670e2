"""Visits of a calibration: the fastest counts once another agrees, and what does not is noisy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from metadef.calibrate.visits import visited
from metadef.measure.alone import Outcome


def measure_as(times: dict[str, list[float]]) -> tuple[Callable[[str], list[Outcome]], list[str]]:
    """Return what gives each run its times in their order, and the order in which it was asked."""
    order: list[str] = []
    left: dict[str, Iterator[float]] = {name: iter(ns) for name, ns in times.items()}

    def measure(name: str) -> list[Outcome]:
        order.append(name)
        ns = next(left[name])
        return [Outcome(ns=ns, least_ns=ns, spread=0.01)]

    return measure, order


def test_what_agrees_is_visited_no_more() -> None:
    measure, order = measure_as({"steady": [100, 102], "slow twice": [130, 160, 101, 100]})
    (steady,), (slow,) = visited(["steady", "slow twice"], measure, 2, 5)
    assert order == ["steady", "slow twice"] * 2 + ["slow twice"] * 2
    assert (steady.least_ns, slow.least_ns) == (100, 100)
    assert steady.spread == pytest.approx(0.02)
    assert slow.spread == pytest.approx(0.01)


def test_visits_that_do_not_agree_are_noise() -> None:
    measure, order = measure_as({"restless": [100, 120, 140, 160, 180]})
    ((restless,),) = visited(["restless"], measure, 2, 4)
    assert len(order) == 4
    assert restless.least_ns == 100
    assert restless.spread == pytest.approx(0.2)


def test_a_quiet_visit_counts_more_than_a_lucky_round() -> None:
    quiet = Outcome(ns=101, least_ns=100, spread=0.02)
    outcomes = iter([Outcome(ns=130, least_ns=98, spread=0.4), quiet])
    ((found,),) = visited(["kernel"], lambda name: [next(outcomes)], 2, 5)
    assert (found.ns, found.least_ns) == (101, 100)
    assert found.spread == pytest.approx(100 / 98 - 1)


def test_one_visit_is_taken_as_it_is() -> None:
    measure, _ = measure_as({"only": [100]})
    ((only,),) = visited(["only"], measure, 1, 1)
    assert only == Outcome(ns=100, least_ns=100, spread=0.01)


def test_a_failure_counts_for_all_visits() -> None:
    outcomes = iter([Outcome(ns=100, least_ns=100), Outcome(failed="crashed")])
    ((failed,),) = visited(["kernel"], lambda name: [next(outcomes)], 2, 5)
    assert failed.failed == "crashed"
