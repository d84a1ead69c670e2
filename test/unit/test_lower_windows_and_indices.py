"""Kernels of windows, scans, sorts and computed indices, against the reference semantics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native_kernel import Array, check

from metadef.dialects.metadef.ops.conv import conv
from metadef.dialects.metadef.ops.conv_transpose import conv_transpose
from metadef.dialects.metadef.ops.gather import gather
from metadef.dialects.metadef.ops.index_put import index_put
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.pool import pool
from metadef.dialects.metadef.ops.resample import resample
from metadef.dialects.metadef.ops.scan import scan
from metadef.dialects.metadef.ops.scatter import scatter
from metadef.dialects.metadef.ops.sort import sort
from metadef.dialects.metadef.ops.take import take
from metadef.dialects.metadef.ops.transpose import transpose

F32 = "f32"


def normal(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


CONVS = [
    pytest.param(1, 4, 6, [1, 1], [1, 1, 1, 1], [1, 1], id="same"),
    pytest.param(1, 4, 6, [2, 1], [0, 1, 2, 0], [1, 2], id="strided_dilated"),
    pytest.param(2, 4, 6, [1, 1], [0, 0, 0, 0], [1, 1], id="grouped"),
    pytest.param(4, 4, 4, [1, 1], [1, 1, 1, 1], [1, 1], id="depthwise"),
    pytest.param(4, 4, 8, [1, 1], [1, 1, 1, 1], [1, 1], id="depthwise_multiplied"),
]


@pytest.mark.parametrize(("groups", "c", "o", "strides", "padding", "dilations"), CONVS)
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("biased", [False, True])
def test_conv(
    groups: int,
    c: int,
    o: int,
    strides: Any,
    padding: Any,
    dilations: Any,
    layout: str,
    biased: bool,
) -> None:
    if layout == "nchw":
        shapes: list[Any] = [["N", c, 9, "W"], [o, c // groups, 3, 3]]
        inputs = [normal(2, c, 9, 8), normal(o, c // groups, 3, 3)]
    else:
        shapes = [["N", 9, "W", c], [groups, 3, 3, c // groups, o // groups]]
        inputs = [normal(2, 9, 8, c), normal(groups, 3, 3, c // groups, o // groups)]
    if biased:
        shapes.append([o])
        inputs.append(normal(o))

    def build(x: Any, w: Any, *bias: Any) -> Any:
        result = conv(
            x, w, *bias, strides=strides, padding=padding, dilations=dilations, groups=groups,
            layout=layout,
        )  # fmt: skip
        return pointwise("relu", result) if biased else result

    check([(s, F32) for s in shapes], build, inputs, {"N": 2, "W": 8}, 1e-4)


def test_conv_of_one_and_three_dims() -> None:
    check(
        [(["N", 3, 10], F32), ([4, 3, 3], F32)],
        lambda x, w: conv(pointwise("relu", x), w, padding=[1, 1]),
        [normal(2, 3, 10), normal(4, 3, 3)],
        {"N": 2},
        1e-4,
    )
    check(
        [([1, 2, 4, 4, 4], F32), ([3, 2, 2, 2, 2], F32)],
        lambda x, w: conv(x, w),
        [normal(1, 2, 4, 4, 4), normal(3, 2, 2, 2, 2)],
        {},
        1e-4,
    )


@pytest.mark.parametrize(
    ("groups", "strides", "padding", "dilations", "extra"),
    [
        pytest.param(1, [2, 2], [0, 0], [1, 1], [0, 0], id="strided"),
        pytest.param(2, [2, 1], [1, 1], [1, 2], [1, 0], id="grouped_output_padding"),
        pytest.param(1, [3, 3], [2, 2], [1, 1], [0, 0], id="cut"),
        pytest.param(1, [1, 1], [0, 0], [1, 1], [0, 0], id="plain"),
        pytest.param(1, [2, 3], [0, 0], [1, 1], [0, 0], id="patches"),
    ],
)
def test_conv_transpose(
    groups: int, strides: Any, padding: Any, dilations: Any, extra: Any
) -> None:
    def build(x: Any, w: Any, b: Any) -> Any:
        return conv_transpose(
            x, w, b, strides=strides, padding=[p for p in padding for _ in range(2)],
            dilations=dilations, groups=groups, output_padding=extra,
        )  # fmt: skip

    inputs = [normal(2, 4, 5, 4), normal(4, 6 // groups, 2, 3), normal(6)]
    specs: list[Any] = [(["N", 4, 5, 4], F32), ([4, 6 // groups, 2, 3], F32), ([6], F32)]
    check(specs, build, inputs, {"N": 2}, 1e-4)


@pytest.mark.parametrize("fn", ["max", "avg"])
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_pool(fn: str, include: bool, layout: str) -> None:
    shape: list[Any] = ["N", 3, 8, 9] if layout == "nchw" else ["N", 8, 9, 3]

    def build(x: Any) -> Any:
        return pool(
            fn, x, [3, 2], strides=[2, 2], padding=[1, 1, 0, 1], count_include_pad=include,
            layout=layout,
        )  # fmt: skip

    x = normal(2, *shape[1:])
    x[0, 1, 1, 1] = np.nan
    check([(shape, F32)], build, [x], {"N": 2})


@pytest.mark.parametrize(
    ("mode", "corners"),
    [("nearest", False), ("linear", False), ("linear", True), ("cubic", False), ("cubic", True)],
)
@pytest.mark.parametrize("sizes", [(10, 14), (8, 3), (5, 11), (1, 7)])
def test_resample(mode: str, corners: bool, sizes: tuple[int, int]) -> None:
    def build(x: Any) -> Any:
        scales = [sizes[0] / 5, sizes[1] / 7]
        return resample(x, sizes, mode=mode, scales=scales, align_corners=corners)

    check([(["N", 3, 5, 7], F32)], build, [normal(2, 3, 5, 7)], {"N": 2}, 1e-4)


def test_resample_symbolic() -> None:
    def build(x: Any) -> Any:
        return resample(x, ["2*H", "2*W"], mode="linear", scales=[2.0, 2.0])

    check([(["N", 3, "H", "W"], F32)], build, [normal(2, 3, 5, 7)], {"N": 2, "H": 5, "W": 7})


@pytest.mark.parametrize("fn", ["sum", "prod", "max", "min", "logsumexp"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(fn: str, axis: int, reverse: bool) -> None:
    build = lambda x: scan(fn, pointwise("neg", x), axis, reverse)  # noqa: E731
    check([(["B", 5, 4], F32)], build, [normal(3, 5, 4)], {"B": 3})


@pytest.mark.parametrize("element", ["i64", "ui8"])
def test_integer_scan(element: str) -> None:
    x = np.array([[3, 1, 2], [7, 0, 1]], np.int64 if element == "i64" else np.uint8)
    build = lambda x: [scan(fn, x, 1) for fn in ("sum", "prod", "max")]  # noqa: E731
    check([([2, 3], element)], build, [x])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(axis: int, descending: bool) -> None:
    x = np.round(normal(3, 13, 2) * 2)
    x[0, 3, 0] = x[1, 5:7, 1] = np.nan
    build = lambda x: sort(x, axis, descending)  # noqa: E731
    check([(["B", 13, 2], F32)], build, [x], {"B": 3})


@pytest.mark.parametrize("count", [0, 1, 2, 31])
def test_sort_of_symbolic_length(count: int) -> None:
    x = np.round(np.random.default_rng(0).standard_normal(count) * 3).astype(np.float32)
    check([(["N"], F32)], lambda x: sort(x, 0), [x], {"N": count})


def test_sort_of_bools_and_bytes() -> None:
    flags = np.array([[True, False, True, False]])
    check([([1, 4], "i1")], lambda x: sort(x, 1), [flags])
    check([([4], "ui8")], lambda x: sort(x, 0, True), [np.array([3, 200, 7, 200], np.uint8)])


def test_take_and_gather() -> None:
    x, rng = normal(10, 4), np.random.default_rng(0)
    some = rng.integers(-10, 10, (3, 5))
    check([([10, 4], F32), (["B", 5], "i64")], lambda x, i: take(x, i, 0), [x, some], {"B": 3})
    check([([10, 4], F32), ([], "i64")], lambda x, i: take(x, i, 1), [x, np.array(-1)])
    check(
        [([10, 4], F32), ([3], "i32")],
        lambda x, i: pointwise("exp", take(transpose(x, [1, 0]), i, 1)),
        [x, np.array([1, 9, 0], np.int32)],
    )
    where = rng.integers(0, 10, (2, 4))
    check([([10, 4], F32), ([2, 4], "i64")], lambda x, i: gather(x, i, 0), [x, where])


@pytest.mark.parametrize("reduce", ["none", "add", "mul", "max", "min"])
def test_scatter(reduce: str) -> None:
    where = np.random.default_rng(0).integers(0, 5, (3, 2))
    check(
        [([5, 4], F32), (["B", 2], "i64"), (["B", 4], F32)],
        lambda x, i, u: scatter(x, i, u, 0, reduce),
        [normal(5, 4), where, normal(3, 4)],
        {"B": 3},
    )


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(accumulate: bool) -> None:
    rng = np.random.default_rng(0)
    i, j = rng.integers(-5, 5, (3, 1)), rng.integers(0, 4, 2)
    check(
        [([5, 4], F32), ([3, 1], "i64"), ([2], "i64"), ([3, 2], F32)],
        lambda x, i, j, u: index_put(x, u, [i, j], [0, 1], accumulate),
        [normal(5, 4), i, j, normal(3, 2)],
    )
    check(
        [(["B", 5, 3, 4], F32), ([3], "i64"), ([3], "i64"), ([3], F32)],
        lambda x, i, j, u: index_put(x, u, [i, j], [1, 3], accumulate),
        [normal(2, 5, 3, 4), np.array([3, 1, -1]), np.array([0, 2, 0]), normal(3)],
        {"B": 2},
    )


@pytest.mark.parametrize("reduce", ["none", "add", "mul", "max", "min"])
def test_scatter_of_one_element_along_each_line(reduce: str) -> None:
    where = np.random.default_rng(0).integers(-5, 5, (3, 1, 4))
    check(
        [(["B", 5, 4], F32), (["B", 1, 4], "i64"), (["B", 2, 4], F32)],
        lambda x, i, u: scatter(x, i, u, 1, reduce),
        [normal(3, 5, 4), where, normal(3, 2, 4)],
        {"B": 3},
    )


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("at", [2, -1, 0])
def test_index_put_of_one_slice(accumulate: bool, at: int) -> None:
    check(
        [(["B", 5, 4], F32), ([1], "i64"), (["B", 1, 4], F32)],
        lambda x, i, u: index_put(x, u, [i], [1], accumulate),
        [normal(3, 5, 4), np.array([at]), normal(3, 1, 4)],
        {"B": 3},
    )
    check(
        [([3, 5, 4], F32), ([], "i32"), ([1, 1], "i64"), ([5], F32)],
        lambda x, i, j, u: index_put(x, u, [i, j], [0, 2], accumulate),
        [normal(3, 5, 4), np.int32(at), np.array([[3]]), normal(5)],
    )
