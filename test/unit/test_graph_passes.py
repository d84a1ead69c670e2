"""The passes over the front graph keep its meaning, on graphs made at random and by hand.

Programs are interpreted in double precision by the reference semantics before and after; the only
difference is rounding of folded weights and reordered sums: 1e-9 of the largest value.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from metadef import ir
from metadef.dialects.metadef.interpret import interpret_program
from metadef.dialects.metadef.ops.attention import attention
from metadef.dialects.metadef.ops.broadcast import broadcast
from metadef.dialects.metadef.ops.concat import concat
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.conv import conv
from metadef.dialects.metadef.ops.conv_transpose import conv_transpose
from metadef.dialects.metadef.ops.fill import fill
from metadef.dialects.metadef.ops.norm import norm
from metadef.dialects.metadef.ops.pad import pad
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.pool import pool
from metadef.dialects.metadef.ops.reduce import reduce
from metadef.dialects.metadef.ops.reshape import reshape
from metadef.dialects.metadef.ops.slice import slice as slice_dim
from metadef.dialects.metadef.ops.softmax import softmax
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.ops.weight import weight
from metadef.dialects.metadef.types import dims_of, element_of, tensor_type
from metadef.passes._arena import Buffer, place
from metadef.passes._buffers import byte_size, root_of
from metadef.passes._groups import Groups
from metadef.pipeline import parse_passes, run_passes
from metadef.symbolic import Dim, DimLike, product

TOLERANCE = 1e-9
FRONT = (
    "fold-constants,raise-norms,fold-batch-norm,propagate-layout,"
    "canonicalize-contractions,eliminate-dead-code,form-kernels,outline-kernels,plan-memory"
)
SYMBOLS = {"B": 3, "S": 5}
Body = Callable[["Graph", list[ir.Value]], list[ir.Value]]


class Graph:
    """A module with @main under construction, and random weights for it."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.weights: dict[str, np.ndarray[Any, Any]] = {}

    def weight(self, *dims: int) -> ir.Value:
        name = f"w{len(self.weights)}"
        self.weights[name] = self.rng.standard_normal(dims)
        return weight(name, tensor_type(dims, ir.F64Type.get()))


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with ir.make_context(), ir.Location.unknown():
        yield


def build(graph: Graph, inputs: list[list[DimLike]], body: Body) -> ir.Module:
    """Build @main of f64 inputs, so that rounding to the result type hides nothing."""
    types = [tensor_type(dims, ir.F64Type.get()) for dims in inputs]
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        main = ir.func.FuncOp("main", (types, []))
        block = main.add_entry_block()
    with ir.InsertionPoint(block):
        results = body(graph, list(block.arguments))
        ir.func.ReturnOp(results)
    type_ = ir.FunctionType.get(types, [r.type for r in results])
    main.attributes["function_type"] = ir.TypeAttr.get(type_)
    assert module.operation.verify()
    return module


def values(module: ir.Module, graph: Graph, seed: int = 1) -> list[np.ndarray[Any, Any]]:
    main = next(f for f in module.body.operations if f.name.value == "main")
    rng = np.random.default_rng(seed)
    inputs = []
    for argument in ir.entry_block(main).arguments:
        shape = [d.evaluate(SYMBOLS) for d in dims_of(argument.type)]
        inputs.append(rng.standard_normal(shape))
    return interpret_program(module, inputs, graph.weights, SYMBOLS)


def check(inputs: list[list[DimLike]], body: Body, seed: int = 0) -> ir.Module:
    """Run the front passes one by one, comparing the program's results after each."""
    graph = Graph(seed)
    module = build(graph, inputs, body)
    expected = values(module, graph)
    for step in parse_passes(FRONT):
        run_passes(module, [step])
        for got, want in zip(values(module, graph), expected, strict=True):
            assert got.shape == want.shape, f"{step} changed a shape"
            scale = float(np.max(np.abs(want), initial=1.0))
            error = np.max(np.abs(got.astype(float) - want.astype(float)), initial=0.0)
            assert error <= TOLERANCE * scale, f"{step} changed a result"
    check_memory(module)
    return module


def check_memory(module: ir.Module) -> None:
    """Run the plan with the symbols' values: no buffer is written while another value is in it."""
    for function in module.body.operations:
        if function.name.value not in ("main", "init"):
            continue
        ops = [op.operation for op in ir.entry_block(function).operations]
        last = {root_of(v): i for i, op in enumerate(ops) for v in op.operands}
        arena = Dim.of(function.attributes["metadef.arena"].value).evaluate(SYMBOLS)
        live: list[tuple[int, int, ir.Value]] = []
        returned = {root_of(v) for v in ops[-1].operands}
        for i, op in enumerate(ops):
            if op.name != "metadef.dispatch":
                continue
            for result, attribute in zip(op.results, op.attributes["offsets"], strict=True):
                if attribute.value == "output":
                    assert result in returned
                    continue
                assert result not in returned
                start = Dim.of(attribute.value).evaluate(SYMBOLS)
                end = start + byte_size(result.type).evaluate(SYMBOLS)
                assert start % 64 == 0 and end <= arena
                in_place = [root_of(v) for v in op.operands]
                for other_start, other_end, value in live:
                    if last[value] > i or (last[value] == i and value not in in_place):
                        assert end <= other_start or other_end <= start, f"{result} over {value}"
                    elif last[value] == i and not (end <= other_start or other_end <= start):
                        assert (start, end) == (other_start, other_end), "in place is whole"
                live.append((start, end, result))
            live = [entry for entry in live if last.get(entry[2], i) > i]


def kernel_count(module: ir.Module, name: str = "main") -> int:
    main = next(f for f in module.body.operations if f.name.value == name)
    return sum(o.operation.name == "metadef.dispatch" for o in ir.entry_block(main).operations)


def test_perceptron_is_one_kernel_a_layer() -> None:
    def body(g: Graph, xs: list[ir.Value]) -> list[ir.Value]:
        x = xs[0]
        for _ in range(3):
            x = contraction(x, transpose(g.weight(8, 8), [1, 0]))
            x = pointwise("relu", pointwise("add", x, g.weight(8)))
        return [x]

    module = check([["B", "S", 8]], body)
    assert kernel_count(module) == 3


def test_residual_network_needs_one_transpose() -> None:
    def body(g: Graph, xs: list[ir.Value]) -> list[ir.Value]:
        x = xs[0]
        x = conv(x, g.weight(8, 3, 3, 3), padding=[1] * 4)
        x = pool("max", x, [3, 3], strides=[2, 2], padding=[1] * 4)
        for _ in range(2):
            y = conv(x, g.weight(8, 1, 3, 3), g.weight(8), padding=[1] * 4, groups=8)
            y = pointwise("mul", y, g.weight(8, 1, 1))
            y = pointwise("sub", y, g.weight(1, 8, 1, 1))
            y = pointwise("relu", conv(pointwise("relu", y), g.weight(8, 8, 1, 1)))
            gate = pointwise("sigmoid", reduce("mean", y, [2, 3], keepdim=True))
            x = pointwise("add", pointwise("mul", y, gate), x)
        return [reshape(reduce("mean", x, [2, 3], keepdim=True), ["B", 8])]

    module = check([["B", 3, "S", 8]], body)
    text = str(module)
    main = text[text.index("func.func @main") :]
    assert main.count("@transpose_") == 1


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_scales_fold_into_every_convolution(spatial: int, groups: int) -> None:
    ones = [1] * spatial

    def body(g: Graph, xs: list[ir.Value]) -> list[ir.Value]:
        s, t = g.weight(6, *ones), g.weight(6, *ones)
        y = conv(xs[0], g.weight(6, 4 // groups, *[3] * spatial), groups=groups)
        y = pointwise("div", pointwise("sub", t, pointwise("mul", y, s)), s)
        z = conv_transpose(
            xs[0],
            g.weight(4, 6 // groups, *[3] * spatial),
            g.weight(6),
            strides=[2] * spatial,
            groups=groups,
        )
        z = pointwise("add", pointwise("mul", pointwise("add", z, t), s), t)
        return [y, z]

    module = check([[2, 4, *[5] * spatial]], body)
    text = str(module)
    assert text[text.index("func.func @main") :].count("@add") == 0


def test_disjoint_transposed_convolution_is_a_product() -> None:
    def body(g: Graph, xs: list[ir.Value]) -> list[ir.Value]:
        return [conv_transpose(xs[0], g.weight(4, 6, 2, 3), g.weight(6), strides=[2, 3])]

    module = check([["B", 4, "S", 5]], body)
    assert "conv_transpose" not in str(module)


def test_results_that_alias_are_copied() -> None:
    def body(g: Graph, xs: list[ir.Value]) -> list[ir.Value]:
        w = g.weight(4, 4)
        y = pointwise("exp", xs[0])
        return [xs[0], reshape(xs[0], [2, 8]), w, y, y, reshape(y, [16]), fill([2], 1.0, _f64())]

    module = check([[4, 4]], body)
    main = next(f for f in module.body.operations if f.name.value == "main")
    block = ir.entry_block(main)
    roots = [root_of(v) for v in block.operations[len(block.operations) - 1].operands]
    assert len(set(roots)) == len(roots)
    assert all(r.owner.name == "metadef.dispatch" for r in roots)


def test_equal_layers_share_their_kernels() -> None:
    def body(g: Graph, xs: list[ir.Value]) -> list[ir.Value]:
        x = xs[0]
        for _ in range(6):
            h = norm(x, g.weight(8), g.weight(8), kind="layer", axes=1, eps=1e-5)
            h = pointwise("gelu", contraction(h, g.weight(8, 16)))
            x = pointwise("add", contraction(h, g.weight(16, 8)), x)
        return [x]

    module = check([["B", "S", 8]], body)
    kernels = [f for f in module.body.operations if "metadef.kernel" in f.attributes]
    # The first norm reads the input of rank 3, the others rows merged for a contraction.
    assert kernel_count(module) == 18 and len(kernels) == 4


def test_spelled_out_norm_and_repeated_heads_are_recognised() -> None:
    def body(g: Graph, xs: list[ir.Value]) -> list[ir.Value]:
        x = xs[0]
        square = reduce("mean", pointwise("pow", x, fill([], 2.0, _f64())), [2], keepdim=True)
        root = pointwise("rsqrt", pointwise("add", square, fill([], 1e-6, _f64())))
        x = pointwise("mul", g.weight(8), pointwise("mul", x, root))
        q = transpose(reshape(contraction(x, g.weight(8, 8)), ["B", "S", 4, 2]), [0, 2, 1, 3])
        k = transpose(reshape(contraction(x, g.weight(8, 4)), ["B", "S", 2, 2]), [0, 2, 1, 3])
        wide = broadcast(reshape(k, ["B", 2, 1, "S", 2]), ["B", 2, 2, "S", 2])
        wide = reshape(wide, ["B", 4, "S", 2])
        y = transpose(attention(q, wide, wide, causal=True), [0, 2, 1, 3])
        return [contraction(reshape(y, ["B", "S", 8]), g.weight(8, 8))]

    module = check([["B", "S", 8]], body)
    assert kernel_count(module) == 5 and "metadef.broadcast" not in str(module)


def test_arena_is_as_large_as_the_largest_step() -> None:
    buffers = [Buffer(Dim.of("B") * 128, i, i + 1) for i in range(10)]
    offsets, total = place(buffers)
    assert total == Dim.of("B") * 256
    assert {str(o) for o in offsets} == {"0", "128*B"}


def test_arena_of_unlike_sizes_never_overlaps() -> None:
    rng = random.Random(0)
    sizes: list[DimLike] = [4, 100, "B*7", "B*S*4", "B*S + 1", "64*S"]
    buffers = []
    for _ in range(60):
        start = rng.randrange(20)
        buffers.append(Buffer(Dim.of(rng.choice(sizes)), start, start + rng.randrange(5)))
    offsets, total = place(buffers)
    for symbols in ({"B": 1, "S": 1}, {"B": 7, "S": 3}, {"B": 64, "S": 0}):
        spans = []
        for buffer, offset in zip(buffers, offsets, strict=True):
            start = offset.evaluate(symbols)
            spans.append((start, start + buffer.size.evaluate(symbols)))
            assert start % 64 == 0 and spans[-1][1] <= total.evaluate(symbols)
        for i, a in enumerate(buffers):
            for j in range(i):
                if a.overlaps(buffers[j]):
                    assert spans[i][1] <= spans[j][0] or spans[j][1] <= spans[i][0]


def test_groups_know_detours() -> None:
    def body(g: Graph, xs: list[ir.Value]) -> list[ir.Value]:
        a = pointwise("exp", xs[0])
        b = softmax(a, 1)
        return [pointwise("add", a, b)]

    module = build(Graph(), [[2, 4]], body)
    ops = list(ir.entry_block(module.body.operations[0]).operations)
    groups = Groups(ops)
    assert not groups.can_merge(0, 2)
    assert groups.can_merge(0, 1)
    merged = groups.merge(0, 1)
    assert groups.can_merge(merged, 2)


def _f64() -> ir.Type:
    return ir.F64Type.get()


def random_body(seed: int) -> Body:
    """Return a body of some thirty random ops on [B, 4, S, 4] and what comes of it."""

    def body(g: Graph, xs: list[ir.Value]) -> list[ir.Value]:
        rng = random.Random(seed)
        pool_of = list(xs)
        for _ in range(rng.randrange(15, 35)):
            x = rng.choice(pool_of[-6:])
            made = _random_op(rng, g, x, pool_of)
            if made is not None:
                pool_of.append(made)
        unread = [v for v in pool_of if not any(True for _ in v.uses)]
        return (unread + [rng.choice(pool_of)])[:12]

    return body


def _random_op(rng: random.Random, g: Graph, x: ir.Value, known: list[ir.Value]) -> ir.Value | None:
    dims = dims_of(x.type)
    rank = len(dims)
    last = dims[-1] if rank else Dim.of(1)
    kind = rng.randrange(16)
    alike = [v for v in known if v.type == x.type]
    if kind < 3:
        return pointwise(rng.choice(["tanh", "relu", "sigmoid", "neg"]), x)
    if kind < 6:
        return pointwise(rng.choice(["add", "mul", "sub"]), x, rng.choice(alike))
    if kind == 6 and rank and last.is_static:
        return pointwise(rng.choice(["add", "mul"]), x, g.weight(last.value))
    if kind == 7 and rank > 1:
        return transpose(x, rng.sample(range(rank), rank))
    if kind == 8 and rank > 1:
        return softmax(x, rng.randrange(rank))
    if kind == 9 and rank > 1:
        return reduce(rng.choice(["mean", "max"]), x, [rng.randrange(rank)], keepdim=True)
    if kind == 10 and rank > 1 and last.is_static:
        return norm(x, g.weight(last.value), kind="rms", axes=1, eps=1e-3)
    if kind == 11 and rank > 1 and last.is_static:
        return contraction(x, g.weight(last.value, 4))
    if kind == 12 and rank > 1:
        i = rng.randrange(rank - 1)
        return reshape(x, [*dims[:i], product(dims[i : i + 2]), *dims[i + 2 :]])
    if kind == 13 and rank == 4 and dims[1].is_static:
        w = g.weight(4, dims[1].value, 1, 1)
        y = conv(x, w, g.weight(4))
        return pointwise("mul", y, g.weight(4, 1, 1)) if rng.random() < 0.5 else y
    if kind == 14 and rank > 1:
        axis = rng.randrange(rank)
        if rng.random() < 0.5:
            return concat([x, rng.choice(alike)], axis)
        return slice_dim(x, axis, 0, dims[axis])
    if kind == 15 and rank == 4:
        return pad(x, [0, 0, 1, 0], [0, 0, 0, 1], "constant", 0.0)
    return None


@pytest.mark.parametrize("seed", range(24))
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    inputs: list[list[DimLike]] = [["B", 4, "S", 4], ["B", 4, "S", 4], [2, 4, 3, 4]]
    check(inputs, random_body(seed), seed)


def test_element_type_is_kept() -> None:
    def body(g: Graph, xs: list[ir.Value]) -> list[ir.Value]:
        y = pointwise("cast", xs[0], element=ir.F32Type.get())
        return [pointwise("gt", y, fill([], 0.0, ir.F32Type.get()))]

    module = check([["B", 4]], body)
    main = next(f for f in module.body.operations if f.name.value == "main")
    assert str(element_of(main.type.results[0])) == "i1"
