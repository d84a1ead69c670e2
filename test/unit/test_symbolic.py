"""Symbolic dims: text round-trips, equality is decided, algebra agrees with integers."""

from __future__ import annotations

import random

import pytest

from metadef.diagnostics import MetadefError
from metadef.symbolic import Dim, ceildiv, product, same

SYMBOLS = ("B", "S", "H", "s0_1")


def random_dim(rng: random.Random, depth: int) -> Dim:
    if depth == 0:
        return Dim.of(rng.choice([*SYMBOLS, 0, 1, 2, 3, 7]))
    a, b = random_dim(rng, depth - 1), random_dim(rng, depth - 1)
    kind = rng.randrange(7)
    if kind == 0:
        return a + b
    if kind == 1:
        return a - b
    if kind == 2:
        return a * b
    if kind == 3:
        return a // rng.choice([1, 2, 3, 8])
    if kind == 4:
        return a % rng.choice([2, 3, 8])
    return Dim.call("max" if kind == 5 else "min", a, b)


def random_values(rng: random.Random) -> dict[str, int]:
    return {s: rng.randrange(1, 40) for s in SYMBOLS}


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("B", "B"),
        ("12", "12"),
        ("-B", "-B"),
        ("S+1", "S + 1"),
        ("1 + S", "S + 1"),
        ("S*B", "B*S"),
        ("2*(B + S) - B", "B + 2*S"),
        ("B - B", "0"),
        ("(H - 1) // 2 + 1", "floordiv(H - 1, 2) + 1"),
        ("8*H // 4", "2*H"),
        ("4*H % 2", "0"),
        ("B*S // S", "B"),
        ("max(B, B)", "B"),
        ("min(3, 5)", "3"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("mod(B, S)", "mod(B, S)"),
    ],
)
def test_normal_form(text: str, normal: str) -> None:
    assert str(Dim.of(text)) == normal


def test_text_round_trips() -> None:
    rng = random.Random(1)
    for _ in range(400):
        dim = random_dim(rng, 3)
        assert Dim.of(str(dim)) == dim


def test_algebra_agrees_with_integers() -> None:
    rng = random.Random(2)
    for _ in range(400):
        a, b, values = random_dim(rng, 2), random_dim(rng, 2), random_values(rng)
        x, y = a.evaluate(values), b.evaluate(values)
        assert (a + b).evaluate(values) == x + y
        assert (a - b).evaluate(values) == x - y
        assert (a * b).evaluate(values) == x * y
        assert (-a).evaluate(values) == -x
        assert (a // 3).evaluate(values) == x // 3
        assert (a % 3).evaluate(values) == x % 3
        assert Dim.call("max", a, b).evaluate(values) == max(x, y)
        if y != 0 and b != 0:
            assert (a // b).evaluate(values) == x // y
            assert (a % b).evaluate(values) == x % y


def test_algebra_is_a_ring() -> None:
    rng = random.Random(3)
    for _ in range(200):
        a, b, c = (random_dim(rng, 2) for _ in range(3))
        assert a + b == b + a
        assert a * b == b * a
        assert (a + b) * c == a * c + b * c
        assert (a + b) + c == a + (b + c)
        assert a - a == Dim.of(0)


def test_substitution_agrees_with_evaluation() -> None:
    rng = random.Random(4)
    for _ in range(200):
        dim, values = random_dim(rng, 3), random_values(rng)
        assert dim.substitute(values).value == dim.evaluate(values)
        assert dim.substitute({}) == dim


def test_same_has_three_answers() -> None:
    assert same("B", "B") is True
    assert same("B*S", "S*B") is True
    assert same("B", "B + 1") is False
    assert same(3, 4) is False
    assert same("B", "S") is None
    assert same("B", 4) is None
    assert same("2*B", "B") is None  # B may be 0


def test_same_never_lies() -> None:
    rng = random.Random(5)
    for _ in range(400):
        a, b, values = random_dim(rng, 1), random_dim(rng, 1), random_values(rng)
        answer = same(a, b)
        if answer is not None:
            assert (a.evaluate(values) == b.evaluate(values)) is answer


def test_symbols_and_products() -> None:
    assert Dim.of("floordiv(H - 1, 2) + B*S").symbols == {"H", "B", "S"}
    assert Dim.of("B - B").symbols == frozenset()
    assert product(["B", 2, "S"]) == Dim.of("2*B*S")
    assert product([]) == Dim.of(1)
    assert ceildiv("B", 8).evaluate({"B": 17}) == 3
    assert ceildiv(16, 8).value == 2


@pytest.mark.parametrize("text", ["", "B +", "* 2", "(B", "B)", "max(B)", "B $", "1 2", "B S"])
def test_refuses_malformed_text(text: str) -> None:
    with pytest.raises(MetadefError, match="dim expression"):
        Dim.of(text)


def test_refuses_division_by_zero() -> None:
    with pytest.raises(MetadefError, match="divides by zero"):
        Dim.of("4 // 0")
