"""Barriers between steps: where memory meets, and nowhere else."""

from __future__ import annotations

import pytest

from metadef.runtime.back_graph import Arena, Buffer, Input, Output, Weight
from metadef.runtime.dependences import Access, barriers_after, may_share_memory
from metadef.symbolic import Dim, DimLike


def arena(number: int, offset: DimLike, size: DimLike) -> Arena:
    return Arena(number, Dim.of(offset), Dim.of(size))


def step(reads: list[Buffer], writes: list[Buffer], scratch: bool = False) -> Access:
    return Access(tuple(reads), tuple(writes), scratch)


A, B, C = arena(0, 0, 64), arena(1, 64, 64), arena(2, 128, 64)
OVER_A = arena(3, 0, 128)


@pytest.mark.parametrize(
    ("first", "second", "wait"),
    [
        (step([Input(0)], [A]), step([A], [B]), True),
        (step([Input(0)], [A]), step([Input(0)], [B]), False),
        (step([A], [B]), step([A], [C]), False),
        (step([A], [C]), step([B], [OVER_A]), True),
        (step([Input(0)], [A]), step([Input(0)], [OVER_A]), True),
        (step([Weight("w")], [Output(0)]), step([Weight("w")], [Output(1)]), False),
        (step([A], [Output(0)]), step([Output(0)], [B]), True),
        (step([A], [B], scratch=True), step([A], [C], scratch=True), True),
        (step([A], [B], scratch=True), step([A], [C]), False),
    ],
    ids=[
        "write-read",
        "two reads of an input",
        "two reads",
        "read-write of reused memory",
        "write-write of reused memory",
        "two outputs",
        "output read again",
        "two with scratch",
        "one with scratch",
    ],
)
def test_waits_where_memory_meets(first: Access, second: Access, wait: bool) -> None:
    assert barriers_after([first, second]) == [wait, False]


def test_one_barrier_serves_all_steps_before_it() -> None:
    steps = [
        step([Input(0)], [A]),
        step([Input(0)], [B]),
        step([A], [C]),
        step([B], [Output(0)]),
    ]
    assert barriers_after(steps) == [False, True, False, False]


@pytest.mark.parametrize(
    ("other", "meets"),
    [
        (arena(1, "64*B", 64), False),
        (arena(1, "64*B + 64", "S"), False),
        (arena(1, "64*floordiv(B*40 + 63, 64)", 64), True),
        (arena(1, "32*B", 64), True),
        (arena(1, "S", 64), True),
    ],
)
def test_symbolic_offsets_meet_unless_proven_apart(other: Arena, meets: bool) -> None:
    assert may_share_memory(arena(0, 0, "64*B"), other) is meets
    assert may_share_memory(other, arena(0, 0, "64*B")) is meets


def test_rounded_sizes_are_proven_apart() -> None:
    first = arena(0, 0, "4*B")
    second = arena(1, "64*floordiv(4*B + 63, 64)", 64)
    assert not may_share_memory(first, second)
