"""The reference semantics of the metadef ops against torch in double precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from metadef import ir
from metadef.diagnostics import InputError, MetadefError
from metadef.dialects.metadef.interpret import interpret
from metadef.dialects.metadef.literals import element_type
from metadef.dialects.metadef.ops.attention import attention
from metadef.dialects.metadef.ops.broadcast import broadcast
from metadef.dialects.metadef.ops.concat import concat
from metadef.dialects.metadef.ops.constant import constant
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.conv import conv
from metadef.dialects.metadef.ops.conv_transpose import conv_transpose
from metadef.dialects.metadef.ops.dequantize import dequantize
from metadef.dialects.metadef.ops.dim import dim
from metadef.dialects.metadef.ops.dispatch import dispatch
from metadef.dialects.metadef.ops.fill import fill
from metadef.dialects.metadef.ops.gather import gather
from metadef.dialects.metadef.ops.index_put import index_put
from metadef.dialects.metadef.ops.iota import iota
from metadef.dialects.metadef.ops.kernel import kernel
from metadef.dialects.metadef.ops.norm import norm
from metadef.dialects.metadef.ops.pad import pad
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.pool import pool
from metadef.dialects.metadef.ops.quantize import quantize
from metadef.dialects.metadef.ops.reduce import reduce
from metadef.dialects.metadef.ops.resample import resample
from metadef.dialects.metadef.ops.reshape import reshape
from metadef.dialects.metadef.ops.scan import scan
from metadef.dialects.metadef.ops.scatter import scatter
from metadef.dialects.metadef.ops.slice import slice
from metadef.dialects.metadef.ops.softmax import softmax
from metadef.dialects.metadef.ops.sort import sort
from metadef.dialects.metadef.ops.take import take
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.ops.unpack import unpack
from metadef.dialects.metadef.ops.weight import weight
from metadef.dialects.metadef.ops.yield_ import yield_
from metadef.dialects.metadef.pointwise_fns import POINTWISE_FNS
from metadef.dialects.metadef.shapes import shape_of
from metadef.dialects.metadef.types import tensor_type
from metadef.symbolic import DimLike

Array = np.ndarray[Any, Any]
Build = Callable[..., Any]

rng = np.random.default_rng(0)
slice_all = np.s_[:]


def randn(*shape: int) -> Array:
    return rng.standard_normal(shape)


@pytest.fixture(scope="module")
def context() -> ir.Context:
    return ir.make_context()


@pytest.fixture
def run(context: ir.Context) -> Callable[..., list[Array]]:
    """Return a function that builds `@main` by `build(*arguments)`, verifies and interprets it."""

    def call(
        build: Build,
        *inputs: Array,
        dims: Sequence[Sequence[DimLike]] | None = None,
        weights: dict[str, Array] | None = None,
        symbols: dict[str, int] | None = None,
    ) -> list[Array]:
        with context, ir.Location.unknown():
            module = ir.Module.create()
            shapes = dims if dims is not None else [x.shape for x in inputs]
            types = [
                tensor_type(d, element_type(x.dtype)) for d, x in zip(shapes, inputs, strict=True)
            ]
            with ir.InsertionPoint(module.body):
                function = ir.func.FuncOp("main", (types, []))
                block = function.add_entry_block()
            with ir.InsertionPoint(block):
                built = build(*block.arguments)
                results = list(built) if isinstance(built, (list, tuple)) else [built]
                ir.func.ReturnOp(results)
            function.attributes["function_type"] = ir.TypeAttr.get(
                ir.FunctionType.get(types, [r.type for r in results])
            )
            assert module.operation.verify()
            return interpret(function, inputs, weights, symbols)

    return call


def same(got: Array, expected: Any, tolerance: float = 1e-12) -> None:
    if isinstance(expected, torch.Tensor):
        expected = expected.numpy()
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def t(x: Array) -> torch.Tensor:
    return torch.from_numpy(np.array(x))


_UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "not": torch.logical_not,
    "erfc": torch.special.erfc,
    "erfinv": torch.special.erfinv,
    "relu": torch.relu,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "mish": F.mish,
    "softplus": F.softplus,
    "identity": lambda x: x,
}
_BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "floordiv": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "truncdiv": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "shl": torch.bitwise_left_shift,
    "shr": torch.bitwise_right_shift,
}
_SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e-300, 1e300, np.inf, -np.inf, np.nan])
_INTS = np.array([-7, -3, -1, 1, 2, 3, 7], np.int64)


@pytest.mark.parametrize(
    "fn", [n for n, f in POINTWISE_FNS.items() if f.arity == 1 and n != "cast"]
)
def test_unary_is_torchs(run: Any, fn: str) -> None:
    expected = _UNARY.get(fn) or getattr(torch, fn)
    kinds = POINTWISE_FNS[fn].kinds
    if "float" in kinds:
        x = np.concatenate([_SPECIAL, randn(50)])
        same(run(lambda a: pointwise(fn, a), x)[0], expected(t(x)))
    if "int" in kinds and fn != "identity":
        same(run(lambda a: pointwise(fn, a), _INTS)[0], expected(t(_INTS)))
    if "bool" in kinds:
        x = np.array([True, False])
        same(run(lambda a: pointwise(fn, a), x)[0], expected(t(x)))


@pytest.mark.parametrize("fn", [n for n, f in POINTWISE_FNS.items() if f.arity == 2])
def test_binary_is_torchs(run: Any, fn: str) -> None:
    expected = _BINARY.get(fn) or getattr(torch, fn)
    kinds = POINTWISE_FNS[fn].kinds
    if "float" in kinds:
        a, b = np.repeat(_SPECIAL, len(_SPECIAL)), np.tile(_SPECIAL, len(_SPECIAL))
        if fn in ("floordiv", "remainder", "fmod"):
            # Quotients past 2^53 have no exact reference: each library rounds them its own way.
            a, b = randn(100) * 10, randn(100)
        same(run(lambda a, b: pointwise(fn, a, b), a, b)[0], expected(t(a), t(b)))
    if "int" in kinds:
        a, b = np.repeat(_INTS, 7), np.tile(_INTS, 7)
        if fn in ("shl", "shr", "pow"):
            b = np.abs(b)
        same(run(lambda a, b: pointwise(fn, a, b), a, b)[0], expected(t(a), t(b)))
    if "bool" in kinds:
        a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
        same(run(lambda a, b: pointwise(fn, a, b), a, b)[0], expected(t(a), t(b)))


def test_negative_integer_powers_truncate(run: Any) -> None:
    a, b = np.array([2, -1, -1, 1, 3]), np.array([-1, -3, -2, -2, 2])
    same(run(lambda a, b: pointwise("pow", a, b), a, b)[0], np.array([0, -1, 1, 1, 9]))


def test_ternary_is_torchs(run: Any) -> None:
    c, a, b = randn(3, 4) > 0, randn(3, 4), randn(1)
    same(run(lambda *x: pointwise("select", *x), c, a, b)[0], torch.where(t(c), t(a), t(b)))
    lo, hi = np.array(-0.5), np.array(0.5)
    same(run(lambda *x: pointwise("clamp", *x), a, lo, hi)[0], t(a).clamp(-0.5, 0.5))
    same(run(lambda *x: pointwise("fma", *x), a, a, b)[0], t(a) * t(a) + t(b))


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "i1", "i8", "i16", "i32", "i64", "ui8"])
def test_cast_is_torchs(run: Any, name: str) -> None:
    dtype = {
        "f16": torch.float16,
        "bf16": torch.bfloat16,
        "f32": torch.float32,
        "i1": torch.bool,
        "i8": torch.int8,
        "i16": torch.int16,
        "i32": torch.int32,
        "i64": torch.int64,
        "ui8": torch.uint8,
    }[name]
    x = np.array([0.0, -2.18, 300.7, 1.999, -0.5, 1e5, 3.0000001])
    expected = t(x).to(dtype)
    if name == "bf16":
        expected = expected.to(torch.float32)
    same(run(lambda a: pointwise("cast", a, element=ir.Type.parse(name)), x)[0], expected)


def test_broadcasting_is_numpys(run: Any) -> None:
    a, b, c = randn(2, 1, 4), randn(3, 1), randn()
    (got,) = run(lambda *x: pointwise("add", pointwise("mul", x[0], x[1]), x[2]), a, b, np.array(c))
    same(got, a * b + c)


@pytest.mark.parametrize("fn", ["sum", "mean", "prod", "max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("keepdim", [True, False])
def test_reduce_is_torchs(run: Any, fn: str, keepdim: bool) -> None:
    x = randn(3, 4, 5)
    x[0, 1, 2] = np.nan
    one = {"max": torch.amax, "min": torch.amin}.get(fn, getattr(torch, fn))
    expected = one(t(x), dim=1, keepdim=keepdim)
    same(run(lambda a: reduce(fn, a, [1], keepdim), x)[0], expected)


def test_reduce_of_several_dims_and_bools(run: Any) -> None:
    x = randn(3, 4, 5)
    same(run(lambda a: reduce("sum", a, [0, -1]), x)[0], x.sum(axis=(0, 2)))
    b = x > 0.5
    same(run(lambda a: reduce("any", a, [1]), b)[0], b.any(axis=1))
    same(run(lambda a: reduce("all", a, [0, 1, 2]), b)[0], np.array(b.all()))


def test_integer_sum_wraps_in_its_type(run: Any) -> None:
    x = np.array([100, 100], np.int8)
    same(run(lambda a: reduce("sum", a, [0]), x)[0], np.array(-56, np.int8))


def test_softmax_and_log_softmax_are_torchs(run: Any) -> None:
    x = randn(3, 5) * 100
    x[0, 0] = -np.inf
    same(run(lambda a: softmax(a, 1), x)[0], t(x).softmax(1))
    same(run(lambda a: softmax(a, 0, log=True), x)[0], t(x).log_softmax(0))


def test_norms_are_torchs(run: Any) -> None:
    x, s, b = randn(2, 3, 4), randn(3, 4), randn(3, 4)
    got = run(lambda x, s, b: norm(x, s, b, kind="layer", axes=2, eps=1e-3), x, s, b)[0]
    same(got, F.layer_norm(t(x), (3, 4), t(s), t(b), 1e-3))
    got = run(lambda x, s: norm(x, s, kind="rms", axes=1, eps=1e-3), x, s[0])[0]
    same(got, F.rms_norm(t(x), (4,), t(s[0]), 1e-3))


def test_contraction_transposes_and_broadcasts(run: Any) -> None:
    a, b = randn(2, 1, 3, 4), randn(5, 4, 6)
    same(run(contraction, a, b)[0], a @ b)
    at, bt = a.swapaxes(-1, -2).copy(), b.swapaxes(-1, -2).copy()
    same(run(lambda a, b: contraction(a, b, True, True), at, bt)[0], a @ b)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_conv_is_torchs(run: Any, spatial: int) -> None:
    x, w, b = randn(2, 4, *[9] * spatial), randn(6, 2, *[3] * spatial), randn(6)
    options = {"strides": [2] * spatial, "dilations": [2] * spatial, "groups": 2}
    got = run(lambda *a: conv(*a, padding=[1] * 2 * spatial, **options), x, w, b)[0]
    torch_conv = [F.conv1d, F.conv2d, F.conv3d][spatial - 1]
    expected = torch_conv(t(x), t(w), t(b), stride=2, padding=1, dilation=2, groups=2)
    same(got, expected)

    # The same in nhwc: w goes from [O, I/g, k..] to [g, k.., I/g, O/g].
    wg = w.reshape(2, 3, 2, *[3] * spatial)
    wg = np.ascontiguousarray(np.moveaxis(np.moveaxis(wg, 1, -1), 1, -2))
    got = run(
        lambda *a: conv(*a, padding=[1] * 2 * spatial, layout="nhwc", **options),
        np.ascontiguousarray(np.moveaxis(x, 1, -1)),
        wg,
        b,
    )[0]
    same(np.moveaxis(got, -1, 1), expected)


def test_conv_pads_each_side_by_its_own(run: Any) -> None:
    x, w = randn(1, 1, 4, 5), randn(1, 1, 3, 3)
    got = run(lambda *a: conv(*a, padding=[0, 2, 1, 0]), x, w)[0]
    same(got, F.conv2d(F.pad(t(x), (1, 0, 0, 2)), t(w)))


def test_conv_transpose_is_torchs(run: Any) -> None:
    x, w, b = randn(2, 4, 5, 6), randn(4, 3, 3, 2), randn(6)
    got = run(
        lambda *a: conv_transpose(
            *a,
            strides=[2, 3],
            padding=[1, 1, 0, 0],
            dilations=[2, 1],
            groups=2,
            output_padding=[1, 2],
        ),
        x,
        w,
        b,
    )[0]
    same(got, F.conv_transpose2d(t(x), t(w), t(b), (2, 3), (1, 0), (1, 2), 2, (2, 1)))


@pytest.mark.parametrize("kind", ["none", "causal", "bool", "float"])
def test_attention_is_torchs(run: Any, kind: str) -> None:
    q, k, v = randn(2, 4, 5, 8), randn(2, 2, 5, 8), randn(2, 2, 5, 6)
    masks = {"bool": randn(2, 1, 5, 5) > 0, "float": randn(5, 5)}
    mask = masks.get(kind)
    if kind == "bool":
        assert mask is not None
        mask[0, 0, 1] = False
    got = run(
        lambda *a: attention(*a, causal=kind == "causal"),
        *([q, k, v] if mask is None else [q, k, v, mask]),
    )[0]
    expected = F.scaled_dot_product_attention(
        t(q),
        t(k).repeat_interleave(2, 1),
        t(v).repeat_interleave(2, 1),
        None if mask is None else t(mask),
        is_causal=kind == "causal",
    )
    same(got, expected)


def test_pools_are_torchs(run: Any) -> None:
    x = randn(2, 3, 9, 8)
    got = run(lambda a: pool("max", a, [3, 2], strides=[2, 1], padding=[1, 1, 0, 0]), x)[0]
    same(got, F.max_pool2d(t(x), (3, 2), (2, 1), (1, 0)))
    for counted in (True, False):
        got = run(
            lambda a: pool(
                "avg",
                a,
                [3, 3],
                strides=[2, 2],
                padding=[1, 1, 1, 1],
                count_include_pad=counted,  # noqa: B023
                layout="nhwc",
            ),
            np.ascontiguousarray(np.moveaxis(x, 1, -1)),
        )[0]
        expected = F.avg_pool2d(t(x), 3, 2, 1, count_include_pad=counted)
        same(np.moveaxis(got, -1, 1), expected)


@pytest.mark.parametrize(
    ("mode", "align"),
    [("nearest", False), ("linear", False), ("linear", True), ("cubic", False), ("cubic", True)],
)
@pytest.mark.parametrize("sizes", [(7, 9), (3, 2), (5, 4)])
def test_resample_is_torchs(run: Any, mode: str, sizes: tuple[int, int], align: bool) -> None:
    x = randn(1, 2, 5, 4)
    names = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}
    expected = F.interpolate(
        t(x), sizes, mode=names[mode], align_corners=None if mode == "nearest" else align
    )
    same(run(lambda a: resample(a, sizes, mode=mode, align_corners=align), x)[0], expected)


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_are_torchs(run: Any, reverse: bool) -> None:
    x = randn(3, 6)
    flip = (lambda a: a.flip(1)) if reverse else (lambda a: a)
    expected = {
        "sum": lambda a: a.cumsum(1),
        "prod": lambda a: a.cumprod(1),
        "max": lambda a: a.cummax(1).values,
        "min": lambda a: a.cummin(1).values,
        "logsumexp": lambda a: a.logcumsumexp(1),
    }
    for fn, of in expected.items():
        got = run(lambda a, fn=fn: scan(fn, a, 1, reverse), x)[0]
        same(got, flip(of(flip(t(x)))))


@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_torchs(run: Any, descending: bool) -> None:
    x = rng.integers(0, 4, (3, 20)).astype(float)
    x[1, 3] = np.nan
    values, indices = run(lambda a: sort(a, 1, descending), x)
    expected = torch.sort(t(x), dim=1, descending=descending, stable=True)
    same(values, expected.values)
    same(indices, expected.indices)


def test_indexing_is_torchs(run: Any) -> None:
    x, at = randn(4, 5), np.array([[0, 2, -1], [1, 1, 3]])
    same(run(lambda a, i: take(a, i, 1), x, at)[0], t(x)[:, t(at)])
    at = np.array([[0, 3], [2, 1], [0, 0]])
    same(run(lambda a, i: gather(a, i, 0), x, at)[0], t(x).gather(0, t(at)))


@pytest.mark.parametrize("reduce", ["none", "add", "mul", "max", "min"])
def test_scatter_is_torchs(run: Any, reduce: str) -> None:
    x, updates, at = randn(4, 5), randn(4, 5), np.array([[0, 3, 1], [2, 1, 3]])
    got = run(lambda a, i, u: scatter(a, i, u, 0, reduce), x, at, updates)[0]
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    expected = t(x).clone()
    if reduce == "none":
        expected.scatter_(0, t(at), t(updates))
    else:
        expected.scatter_reduce_(0, t(at), t(updates), names[reduce])
    same(got, expected)


@pytest.mark.parametrize("dims", [[0, 1], [1, 2], [0, 2]])
def test_index_put_is_torchs(run: Any, dims: list[int]) -> None:
    x, i, j = randn(4, 4, 4), np.array([[0], [2]]), np.array([1, 3, 3])
    at: list[Any] = [slice_all, slice_all, slice_all]
    at[dims[0]], at[dims[1]] = t(i), t(j)
    updates = randn(*t(x)[tuple(at)].shape)
    got = run(lambda x, u, i, j: index_put(x, u, [i, j], dims, True), x, updates, i, j)[0]
    expected = t(x).clone()
    names = [a if isinstance(a, torch.Tensor) else None for a in at]
    torch.ops.aten.index_put_(expected, names, t(updates), True)
    same(got, expected)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pad_is_torchs(run: Any, mode: str) -> None:
    x = randn(1, 2, 5, 6)
    got = run(lambda a: pad(a, [0, 0, 2, 3], [0, 0, 1, -2], mode, 0.5), x)[0]
    value = 0.5 if mode == "constant" else None
    same(got, F.pad(t(x), (3, -2, 2, 1), mode, value))


def test_movement(run: Any) -> None:
    x = randn(3, 4)
    same(run(lambda a: reshape(a, [2, 6]), x)[0], x.reshape(2, 6))
    same(run(lambda a: transpose(a, [1, 0]), x)[0], x.T)
    same(run(lambda a: broadcast(a, [2, 3, 4]), x)[0], np.broadcast_to(x, (2, 3, 4)))
    same(run(lambda a: slice(a, 1, 3, 2, -2), x)[0], x[:, 3::-2])
    same(run(lambda a, b: concat([a, b], 0), x, x[:1])[0], np.concatenate([x, x[:1]]))


def test_unpack_reads_panels(run: Any) -> None:
    w = randn(6, 5)
    panels = np.pad(w, [(0, 2), (0, 0)]).reshape(2, 4, 5).transpose(0, 2, 1)
    same(run(lambda a: unpack(a, 0, 0, 6), np.ascontiguousarray(panels))[0], w)


def test_concat_of_more_shapes_than_groups(run: Any) -> None:
    xs = [randn(1 + i % 3) for i in range(40)]
    same(run(lambda *a: concat(a, 0), *xs)[0], np.concatenate(xs))


def test_sources(run: Any) -> None:
    def build(a: Any) -> Any:
        i64 = ir.IntegerType.get_signless(64)
        return [
            fill([2, 1], 3, i64),
            iota([2, 3], 1, 5, -1, i64),
            constant(np.array([1.5, 2.5])),
            constant(np.zeros((0, 2))),
        ]

    got = run(build, randn(1))
    same(got[0], np.array([[3], [3]]))
    same(got[1], np.array([[5, 4, 3], [5, 4, 3]]))
    same(got[2], np.array([1.5, 2.5]))
    assert got[3].shape == (0, 2)


def test_symbols_are_read_off_the_inputs(run: Any) -> None:
    x = randn(2, 3, 4)
    got = run(
        lambda a: [reshape(a, ["B*S", 4]), dim("B*S + 1"), slice(a, 1, "S - 1", 1)],
        x,
        dims=[["B", "S", 4]],
    )
    same(got[0], x.reshape(6, 4))
    same(got[1], np.array(7))
    same(got[2], x[:, 2:])


def test_quantize_rounds_half_to_even_and_clamps(run: Any) -> None:
    def build(a: Any) -> Any:
        element = ir.Type.parse("!quant.uniform<i8:f64, 0.5:3>")
        return dequantize(quantize(a, element))

    x = np.array([0.25, 0.75, -100.0, 100.0, 1.0])
    same(run(build, x)[0], np.array([0.0, 1.0, -65.5, 62.0, 1.0]))


def test_weights_kernels_and_dispatches(run: Any, context: ir.Context) -> None:
    x, w = randn(3), randn(3)

    def build(a: Any) -> Any:
        b = weight("layer.w", a.type)
        op = kernel([a, b], [a.type])
        block = ir.entry_block(op)
        with ir.InsertionPoint(block):
            yield_([pointwise("mul", *block.arguments)])
        return op.results[0]

    same(run(build, x, weights={"layer.w": w})[0], x * w)

    with context, ir.Location.unknown():
        module = ir.Module.create()
        type_ = tensor_type([3], ir.F64Type.get())
        with ir.InsertionPoint(module.body):
            main = ir.func.FuncOp("main", ([type_], [type_]))
            other = ir.func.FuncOp("double", ([type_], [type_]))
        block = main.add_entry_block()
        with ir.InsertionPoint(block):
            ir.func.ReturnOp(list(dispatch("double", block.arguments, [type_])))
        block = other.add_entry_block()
        with ir.InsertionPoint(block):
            ir.func.ReturnOp([pointwise("add", block.arguments[0], block.arguments[0])])
        same(interpret(main, [x])[0], 2 * x)


def test_refuses_what_does_not_fit(run: Any) -> None:
    def same_dim(a: Any, b: Any) -> Any:
        assert shape_of(a).dims == shape_of(b).dims
        return a

    with pytest.raises(InputError, match=r"input 1: expected dim B = 2, got 3"):
        run(same_dim, randn(2), randn(3), dims=[["B"], ["B"]])
    with pytest.raises(InputError, match=r"no weight 'w' was given"):
        run(lambda a: weight("w", a.type), randn(2))
    with pytest.raises(InputError, match=r"weight 'w': expected \[2\], got \[3\]"):
        run(lambda a: weight("w", a.type), randn(2), weights={"w": randn(3)})
    with pytest.raises(MetadefError, match=r"no function 'f'"):
        run(lambda a: dispatch("f", [a], [a.type]), randn(2))
