"""Kernels lowered to linalg and compiled, against the reference semantics in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native_kernel import Array, check, run

from metadef import ir
from metadef.dialects.metadef.ops.attention import attention
from metadef.dialects.metadef.ops.broadcast import broadcast
from metadef.dialects.metadef.ops.concat import concat
from metadef.dialects.metadef.ops.constant import constant
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.dim import dim
from metadef.dialects.metadef.ops.fill import fill
from metadef.dialects.metadef.ops.iota import iota
from metadef.dialects.metadef.ops.norm import norm
from metadef.dialects.metadef.ops.pad import pad
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.reduce import reduce
from metadef.dialects.metadef.ops.reshape import reshape
from metadef.dialects.metadef.ops.slice import slice as slice_
from metadef.dialects.metadef.ops.softmax import softmax
from metadef.dialects.metadef.ops.transpose import transpose


def normal(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


F32 = "f32"
X: tuple[list[Any], str] = (["B", 6, 5], F32)


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda x: transpose(x, [2, 0, 1]), id="transpose"),
        pytest.param(lambda x: reshape(x, ["B", 30]), id="merge"),
        pytest.param(lambda x: reshape(x, ["6*B", 5]), id="merge_symbolic"),
        pytest.param(lambda x: reshape(x, ["B", 2, 1, 3, 5]), id="split"),
        pytest.param(lambda x: reshape(x, ["2*B", 15]), id="regroup"),
        pytest.param(lambda x: reshape(transpose(x, [0, 2, 1]), ["B", 30]), id="not_a_view"),
        pytest.param(lambda x: transpose(reshape(x, ["B", 2, 3, 5]), [0, 2, 1, 3]), id="heads"),
        pytest.param(lambda x: slice_(x, 1, 1, 3, 2), id="slice_with_step"),
        pytest.param(lambda x: slice_(x, 1, 0, 3), id="slice_from_0"),
        pytest.param(lambda x: slice_(x, 0, "B - 1", "B", -1), id="flip_symbolic"),
        pytest.param(lambda x: slice_(x, 1, 5, 6, -1), id="flip"),
        pytest.param(lambda x: slice_(x, 0, "B - 1", 1), id="slice_from_symbolic"),
        pytest.param(lambda x: slice_(slice_(x, 2, 1, 4), 2, 1, 2, 2), id="slice_of_slice"),
        pytest.param(lambda x: reshape(slice_(x, 1, 2, 4), ["B", 20]), id="merge_of_slice"),
        pytest.param(lambda x: broadcast(slice_(x, 1, 2, 1), ["B", 7, 5]), id="broadcast"),
        pytest.param(lambda x: concat([x, slice_(x, 1, 0, 2), x], 1), id="concat"),
        pytest.param(lambda x: pad(x, [0, -1, 2], [0, 2, -1], value=3.0), id="pad"),
        pytest.param(lambda x: pad(x, [0, 2, 1], [0, 1, 3], "reflect"), id="reflect"),
        pytest.param(lambda x: pad(x, [0, 2, 1], [0, 1, 3], "replicate"), id="replicate"),
        pytest.param(lambda x: pad(x, [0, 2, 1], [0, 1, 3], "circular"), id="circular"),
        pytest.param(lambda x: pad(x, [0, -1, 1], [0, 2, -2], "circular"), id="circular-cut"),
    ],
)
@pytest.mark.parametrize("epilogue", [False, True])
def test_views(view: Any, epilogue: bool) -> None:
    def build(x: Any) -> Any:
        return pointwise("neg", view(x)) if epilogue else view(x)

    check([X], build, [normal(4, 6, 5)], {"B": 4}, 0)


def test_sources() -> None:
    def build(x: Any) -> list[Any]:
        count = iota(["B", 3], 0, 2, 3, ir.IntegerType.get_signless(64))
        half = fill([3], 0.5, ir.F32Type.get())
        table = constant(np.array([[1, 2, 3]], np.float32))
        flags = constant(np.array([True, False, True]))
        both = pointwise("add", pointwise("mul", x, half), table)
        return [count, pointwise("select", flags, both, x), dim("2*B + 1")]

    check([(["B", 3], F32)], build, [normal(2, 3)], {"B": 2})


def test_returns_an_argument_and_a_value_twice() -> None:
    def build(x: Any) -> list[Any]:
        y = pointwise("exp", x)
        return [x, y, y, reshape(y, [6])]

    check([([2, 3], F32)], build, [normal(2, 3)])


@pytest.mark.parametrize("shape", [[0, 3], [3, 0], [0]])
def test_empty_tensors(shape: list[int]) -> None:
    def build(x: Any) -> list[Any]:
        dims = list(range(len(shape)))
        flat = reshape(x, [0])
        return [
            pointwise("relu", x), reduce("sum", x, dims), softmax(x, 0), concat([x, x], 0), flat,
        ]  # fmt: skip

    check([(shape, F32)], build, [np.zeros(shape, np.float32)])


def test_empty_symbolic() -> None:
    build = lambda x: [pointwise("exp", x), reduce("mean", x, [0])]  # noqa: E731
    got = run([(["B", 3], F32)], build, [np.zeros((0, 3), np.float32)], {"B": 0})
    assert np.isnan(got[1]).all()


def test_rank_0() -> None:
    def build(x: Any, y: Any) -> list[Any]:
        total = pointwise("add", x, y)
        return [total, reduce("max", total, []), reshape(total, [1, 1])]

    check([([], F32)] * 2, build, [np.float32(2), np.float32(3)])


@pytest.mark.parametrize("fn", ["sum", "mean", "prod", "max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(fn: str, keepdim: bool) -> None:
    dims = [1] if fn.startswith("arg") else [0, 2]
    x = normal(4, 6, 5)
    x[1, 3], x[1, 4] = 9.0, 9.0
    check([X], lambda x: reduce(fn, pointwise("neg", x), dims, keepdim), [x], {"B": 4})


@pytest.mark.parametrize("fn", ["max", "min", "argmax", "argmin"])
def test_reductions_find_the_first_nan(fn: str) -> None:
    x = normal(3, 6)
    x[0, 2] = x[0, 4] = np.nan
    x[1] = -np.inf if "max" in fn else np.inf
    check([([3, 6], F32)], lambda x: reduce(fn, x, [1]), [x])


@pytest.mark.parametrize("element", ["i8", "ui8", "i32", "i64"])
def test_integer_reductions(element: str) -> None:
    dtype = "uint8" if element == "ui8" else f"int{element[1:]}"
    x = np.array([[3, 100, 7, 3], [120, 0, 1, 120]], dtype)
    fns = ("max", "min", "argmax", "argmin", "sum", "prod")
    check([([2, 4], element)], lambda x: [reduce(fn, x, [1]) for fn in fns], [x])


def test_bool_reductions() -> None:
    x = np.array([[True, False], [True, True], [False, False]])
    build = lambda x: [reduce(fn, x, [1]) for fn in ("any", "all", "max", "argmax")]  # noqa: E731
    check([([3, 2], "i1")], build, [x])


def test_shared_expensive_value() -> None:
    def build(x: Any) -> list[Any]:
        e = pointwise("exp", x)
        return [pointwise("div", e, reduce("sum", e, [2], True)), reduce("max", e, [1])]

    check([X], build, [normal(4, 6, 5)], {"B": 4})


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("log", [False, True])
def test_softmax(axis: int, log: bool) -> None:
    def build(x: Any, y: Any) -> Any:
        return pointwise("mul", softmax(pointwise("add", x, y), axis, log), y)

    x = normal(4, 6, 5) * 30
    check([X, X], build, [x, normal(4, 6, 5)], {"B": 4})


@pytest.mark.parametrize(("kind", "axes"), [("layer", 1), ("layer", 2), ("rms", 1)])
def test_norm_with_residual(kind: str, axes: int) -> None:
    def build(x: Any, y: Any, scale: Any, bias: Any) -> list[Any]:
        total = pointwise("add", x, y)
        normed = norm(total, scale, bias, kind=kind, axes=axes)
        return [total, pointwise("gelu", normed)]

    shape = [6, 5][-axes:]
    inputs = [normal(4, 6, 5) + 100, normal(4, 6, 5), normal(*shape), normal(*shape)]
    check([X, X, (shape, F32), (shape, F32)], build, inputs, {"B": 4}, 1e-4)


CONTRACTIONS = [
    pytest.param([["B", 3, 4], [4, 7]], lambda a, b: contraction(a, b), id="broadcast_batch"),
    pytest.param(
        [["B", 2, 5, 4], ["B", 1, 5, 3]],
        lambda a, b: contraction(a, b, transpose_lhs=True),
        id="transpose_lhs",
    ),
    pytest.param(
        [["B", 5, 2, 4], ["B", 2, 3, 4]],
        lambda a, b: contraction(transpose(a, [0, 2, 1, 3]), b, transpose_rhs=True),
        id="view_of_lhs",
    ),
    pytest.param(
        [["B", 5, 4], [4, 6]],
        lambda a, b: transpose(reshape(contraction(a, b), ["B", 5, 2, 3]), [0, 2, 1, 3]),
        id="split_heads",
    ),
    pytest.param(
        [["B", 5, 4], [4, 6]], lambda a, b: transpose(contraction(a, b), [2, 0, 1]), id="transposed"
    ),
    pytest.param(
        [["B", 5, 4], [4, 6]],
        lambda a, b: contraction(pointwise("exp", a), pointwise("neg", b)),
        id="prologue",
    ),
]


@pytest.mark.parametrize(("shapes", "build"), CONTRACTIONS)
def test_contractions(shapes: list[list[Any]], build: Any) -> None:
    inputs = [normal(*(2 if d == "B" else d for d in s)) for s in shapes]
    check([(s, F32) for s in shapes], build, inputs, {"B": 2})


@pytest.mark.parametrize("element", ["bf16", "f16", "f64", "i64", "ui8"])
def test_contraction_elements(element: str) -> None:
    a = (np.arange(12).reshape(3, 4) % 5).astype(np.float32)
    b = (np.arange(8).reshape(4, 2) % 3).astype(np.float32)
    types = {"bf16": np.float32, "f16": np.float16, "f64": np.float64, "i64": np.int64}
    inputs = [x.astype(types.get(element, np.uint8)) for x in (a, b)]

    def build(a: Any, b: Any) -> Any:
        product = contraction(a, b)
        return pointwise("add", product, product)

    check([([3, 4], element), ([4, 2], element)], build, inputs, {}, 0)


@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("mask", [None, "i1", "f32"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(kv_heads: int, mask: str | None, causal: bool) -> None:
    specs: list[Any] = [(["B", 4, 5, 8], F32)]
    specs += [(["B", kv_heads, "S", 8], F32), (["B", kv_heads, "S", 3], F32)]
    inputs = [normal(2, 4, 5, 8), normal(2, kv_heads, 6, 8), normal(2, kv_heads, 6, 3)]
    if mask == "i1":
        keep = np.random.default_rng(0).random((2, 1, 5, 6)) > 0.4
        keep[0, 0, 1] = False
        specs.append((["B", 1, 5, "S"], "i1"))
        inputs.append(keep)
    elif mask == "f32":
        specs.append(([4, 5, "S"], F32))
        inputs.append(normal(4, 5, 6))

    def build(q: Any, k: Any, v: Any, *mask: Any) -> Any:
        return attention(q, k, v, *mask, causal=causal, scale=0.3)

    check(specs, build, inputs, {"B": 2, "S": 6})
