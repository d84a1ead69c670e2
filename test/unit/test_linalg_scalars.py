"""Scalar code of pointwise fns, in native code, against the reference semantics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native_kernel import Array, check, run

from metadef import ir
from metadef.dialects.metadef.literals import numpy_dtype, round_to_bfloat16
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.pointwise_fns import POINTWISE_FNS, Kind

COUNT = 48
#: relative to 1 and to the value; libm and the reference differ in the last digits
TOLERANCE = {"f32": 1e-5, "f64": 1e-11, "bf16": 2e-2}
KINDS: dict[str, Kind] = {
    "f32": "float", "f64": "float", "bf16": "float", "i64": "int", "i32": "int", "i8": "int",
    "ui8": "int", "i1": "bool",
}  # fmt: skip
DIVISIONS = ("floordiv", "truncdiv", "fmod", "remainder")


def numbers(element: str, seed: int) -> Array:
    """Return numbers of an element type, its special ones among them, in an order of their own."""
    rng = np.random.default_rng(seed)
    if KINDS[element] == "float":
        x: Array = rng.standard_normal(COUNT) * 3
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, -2.5, 100.0, 0.125]
        x[: len(special)] = special
    elif element == "i1":
        x = rng.random(COUNT) > 0.5
    else:
        x = rng.integers(0 if element == "ui8" else -20, 120, COUNT)
        x[:4] = [0, 1, 127, 2]
    x = x.astype(dtype(element))
    return rng.permutation(round_to_bfloat16(x) if element == "bf16" else x)


def dtype(element: str) -> np.dtype[Any]:
    with ir.make_context():
        return numpy_dtype(ir.Type.parse(element))


@pytest.mark.parametrize("element", KINDS)
def test_every_fn(element: str) -> None:
    fns = [
        name
        for name, fn in POINTWISE_FNS.items()
        if KINDS[element] in fn.kinds and fn.result != "cast"
    ]
    x, y, z = (numbers(element, seed) for seed in range(3))
    condition = numbers("i1", 3)
    small = np.arange(COUNT).astype(x.dtype) % 7
    nonzero = np.where(y == 0, np.ones_like(y), y)

    def build(x: Any, y: Any, z: Any, small: Any, nonzero: Any, condition: Any) -> list[Any]:
        results = []
        for fn in fns:
            second = y
            if KINDS[element] == "int":
                # Undefined in eager mode: division by zero, shifts out of range.
                second = nonzero if fn in DIVISIONS else y
                second = small if fn in ("shl", "shr", "pow") else second
            operands = (condition, x, y) if fn == "select" else (x, second, z)
            results.append(pointwise(fn, *operands[: POINTWISE_FNS[fn].arity]))
        return results

    specs = [([COUNT], element)] * 5 + [([COUNT], "i1")]
    with np.errstate(all="ignore"):
        check(specs, build, [x, y, z, small, nonzero, condition], {}, TOLERANCE.get(element, 0))


@pytest.mark.parametrize("source", [*KINDS, "f16"])
def test_every_cast(source: str) -> None:
    targets = [*KINDS, "f16"]
    x = np.linspace(0, 100, COUNT)
    if source not in ("ui8", "i1"):
        x[:4] = [-2.18, -100.0, 2.9, 0.0]
    x = x.astype(dtype(source))
    x = round_to_bfloat16(x) if source == "bf16" else x

    def build(x: Any) -> list[Any]:
        return [pointwise("cast", x, element=ir.Type.parse(t)) for t in targets]

    got = check([([COUNT], source)], build, [x], {}, 0)
    if source == "f32":
        assert got[targets.index("ui8")][0] == 254  # as eager has (-2.18).to(uint8)


def test_integer_division_by_zero_does_not_trap() -> None:
    lowest = np.iinfo(np.int64).min
    x = np.array([5, -5, lowest, lowest])
    y = np.array([0, 0, -1, 0])
    specs = [([4], "i64")] * 2

    got = run(specs, lambda x, y: [pointwise(fn, x, y) for fn in DIVISIONS], [x, y])
    assert [g.tolist() for g in got] == [
        [0, 0, lowest, 0],
        [0, 0, lowest, 0],
        [5 - 5, 0, 0, 0],
        [0, 0, 0, 0],
    ]


def test_integer_power() -> None:
    base = np.array([2, -1, -1, 3, 0, 1, -2, 7], np.int64)
    exponent = np.array([10, -3, -2, -1, 0, -5, 63, 20], np.int64)
    specs = [([8], "i64")] * 2

    (got,) = run(specs, lambda x, y: pointwise("pow", x, y), [base, exponent])
    assert got.tolist() == [1024, -1, 1, 0, 1, 1, -(2**63), 7**20]
