"""The work of kernels, with symbolic dims; where they find their data; what bounds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from metadef import ir
from metadef.cost.op_flops import counted_ops, op_flops
from metadef.cost.pointwise_flops import pointwise_flops
from metadef.cost.register_block import Inputs, instructions_per_product
from metadef.cost.reuse import Access, levels_of
from metadef.cost.roofline import Bound, bound
from metadef.cost.work import Work, kernel_work
from metadef.device.figures import Figure, Figures
from metadef.dialects.metadef.dialect import MetadefDialect
from metadef.dialects.metadef.ops.attention import attention
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.conv import conv
from metadef.dialects.metadef.ops.conv_transpose import conv_transpose
from metadef.dialects.metadef.ops.norm import norm
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.pool import pool
from metadef.dialects.metadef.ops.reduce import reduce
from metadef.dialects.metadef.ops.reshape import reshape
from metadef.dialects.metadef.ops.slice import slice as part_of
from metadef.dialects.metadef.ops.softmax import softmax
from metadef.dialects.metadef.ops.sort import sort
from metadef.dialects.metadef.ops.take import take
from metadef.dialects.metadef.pointwise_fns import POINTWISE_FNS
from metadef.dialects.metadef.types import tensor_type
from metadef.passes.expand_math import ExpandMath
from metadef.passes.linalg_lowerings import scalar_float
from metadef.passes.linalg_lowerings.scalar import Scalars, attribute
from metadef.pipeline import run_passes
from metadef.symbolic import Dim, DimLike

Spec = tuple[list[DimLike], str]


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with ir.make_context(), ir.Location.unknown():
        yield


def work(specs: list[Spec], build: Callable[..., ir.Value | list[ir.Value]]) -> Work:
    """Return the work of a kernel with arguments of `specs` whose body `build` makes."""
    types = [tensor_type(dims, ir.Type.parse(element)) for dims, element in specs]
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = ir.func.FuncOp("k", (types, []))
    with ir.InsertionPoint(function.add_entry_block()):
        made = build(*function.entry_block.arguments)
        ir.func.ReturnOp(made if isinstance(made, list) else [made])
    return kernel_work(function)


def flops(specs: list[Spec], build: Callable[..., ir.Value]) -> str:
    """Return the operations of a kernel of f32 ops as text."""
    found = work(specs, build).operations
    assert set(found) == {"f32"}
    return str(found["f32"])


def test_a_product_is_two_operations_for_each_multiplication() -> None:
    lhs, rhs = (["B", 3, 5], "f32"), ([5, 7], "f32")
    assert flops([lhs, rhs], contraction) == f"{2 * 3 * 5 * 7}*B"
    assert flops([(["K", "M"], "f32"), (["N", "K"], "f32")], lambda a, b: contraction(
        a, b, transpose_lhs=True, transpose_rhs=True)) == "2*K*M*N"  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "x", "w"),
    [("nchw", ["N", 8, 10, 10], [6, 4, 3, 3]), ("nhwc", ["N", 10, 10, 8], [2, 3, 3, 4, 3])],
)
def test_a_convolution_counts_the_channels_of_its_group(
    layout: str, x: list[DimLike], w: list[DimLike]
) -> None:
    specs: list[Spec] = [(x, "f32"), (w, "f32"), ([6], "f32")]
    made = flops(specs, lambda x, w, b: conv(x, w, b, groups=2, strides=[2, 2], layout=layout))
    assert made == f"{6 * 4 * 4 * (2 * 4 * 9 + 1)}*N"


def test_a_transposed_convolution_multiplies_each_element_of_x() -> None:
    specs: list[Spec] = [([2, 8, 5], "f32"), ([8, 3, 4], "f32")]
    assert flops(specs, lambda x, w: conv_transpose(x, w)) == str(2 * 2 * 8 * 5 * 3 * 4)


def test_causal_attention_counts_the_keys_that_a_row_sees() -> None:
    def total(queries: int, keys: int, causal: bool) -> int:
        q, kv = ([1, 2, queries, 8], "f32"), ([1, 2, keys, 8], "f32")
        return int(flops([q, kv, kv], lambda *xs: attention(*xs, causal=causal)))

    each = 4 * 8 + pointwise_flops("exp", "f32") + 4
    for queries, keys in ((5, 5), (3, 9), (9, 3)):
        seen = sum(min(row + 1, keys) for row in range(queries))
        assert total(queries, keys, True) == 2 * seen * each + 2 * queries * 8
        assert total(queries, keys, False) == 2 * queries * keys * each + 2 * queries * 8


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: pointwise("relu", x), "6*B"),
        (lambda x: pointwise("exp", x), f"{6 * pointwise_flops('exp', 'f32')}*B"),
        (lambda x: pointwise("lt", x, x), "6*B"),
        (lambda x: reduce("mean", x, [1]), "6*B"),
        (lambda x: softmax(x, 1), f"{6 * (pointwise_flops('exp', 'f32') + 4)}*B"),
        (lambda x: norm(x, kind="rms"), "18*B"),
        (lambda x: pool("max", reshape(x, ["B", 1, 6]), [3]), "6*B"),
    ],
)
def test_flops_of_ops(build: Callable[..., ir.Value], expected: str) -> None:
    assert flops([(["B", 6], "f32")], build) == expected


def test_operations_are_kept_apart_by_element_type() -> None:
    def build(x: ir.Value, n: ir.Value) -> list[ir.Value]:
        return [pointwise("mul", x, x), pointwise("add", n, n)]

    found = work([(["B"], "f64"), ([3], "i32")], build)
    assert found.operations == {"f64": Dim.of("B"), "i32": Dim.of(3)}
    amounts = found.evaluate({"B": 5})
    assert (amounts.flops, amounts.reads, amounts.writes) == (5, (40, 12), (40, 12))
    assert amounts.bytes == 104


def test_a_lookup_reads_the_rows_that_it_gives() -> None:
    def embed(table: ir.Value, index: ir.Value) -> ir.Value:
        return take(table, index, 0)

    found = work([([1000, 16], "f32"), (["B"], "i64")], embed)
    assert found.operations == {}
    assert found.evaluate({"B": 3}).reads == (3 * 64, 24)
    assert found.evaluate({"B": 5000}).reads == (64000, 40000)


def test_a_slice_reads_its_part_and_two_of_them_theirs() -> None:
    def halves(x: ir.Value) -> ir.Value:
        first, last = (part_of(x, 0, start, 2) for start in (0, 6))
        return pointwise("add", first, last)

    assert work([([8, 4], "f32")], halves).reads == (Dim.of(64),)
    assert work([([8, 4], "f32")], lambda x: pointwise("neg", x)).reads == (Dim.of(128),)


def test_what_nobody_counts_is_named() -> None:
    found = work([([4], "f32")], lambda x: list(sort(x, 0)))
    assert (found.uncounted, found.operations) == (("sort",), {})


def test_every_op_is_counted_or_said_not_to_be() -> None:
    names = {op.OPERATION_NAME.removeprefix("metadef.") for op in MetadefDialect.operations}
    assert names - {"dispatch"} == counted_ops()


#: what an op of a polynomial counts as; the others move bits
_COSTS = dict.fromkeys(
    [f"arith.{n}f" for n in "add sub mul div neg maximum minimum maxnum minnum cmp rem".split()]
    + [f"math.{n}" for n in "sqrt absf floor ceil trunc roundeven".split()],
    1,
) | {"math.fma": 2}


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_functions_count_as_the_arithmetic_that_is_generated(element: str) -> None:
    """Within a half: a polynomial may change a little without the table."""
    skipped = ("cast", "select", "eq", "ne", "lt", "le", "gt", "ge")
    for name, fn in POINTWISE_FNS.items():
        if "float" in fn.kinds and name not in skipped:
            made = _generated(name, fn.arity, element)
            counted = pointwise_flops(name, element)
            assert made / 1.5 <= counted <= made * 1.5, f"{name}: {made} generated"


def _generated(name: str, arity: int, element: str) -> int:
    """Return the operations of the function as lowered and expanded."""
    module = ir.Module.create()
    type_ = ir.Type.parse(element)
    scalars = Scalars(lambda t, n: ir.arith.ConstantOp(t, attribute(t, n)).result)
    with ir.InsertionPoint(module.body):
        function = ir.func.FuncOp("k", ([type_] * arity, []))
    with ir.InsertionPoint(function.add_entry_block()):
        made = scalar_float.emit(scalars, name, list(function.entry_block.arguments))
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([type_] * arity, [made.type])
        )
        ir.func.ReturnOp([made])
    run_passes(module, [ExpandMath()])
    names = Counter(op.operation.name for op in ir.operations(module))
    return sum(_COSTS.get(n, 0) * count for n, count in names.items())


def test_the_work_of_an_op_is_that_of_a_kernel_of_it() -> None:
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        x = ir.Operation.create("test.x", results=[tensor_type([2, 3], ir.F32Type.get())]).result
    with ir.InsertionPoint(module.body):
        element, count = op_flops(contraction(x, x, transpose_rhs=True).owner.opview)
    assert (element, count) == ("f32", Dim.of(2 * 2 * 2 * 3))


def found(capacities: dict[str, int], *steps: list[tuple[str, int]]) -> list[dict[str, int]]:
    """Return the levels for steps that touch whole buffers, each in a space of its own."""
    accesses = [[Access(name, 0, size, size) for name, size in step] for step in steps]
    levels = levels_of(accesses, capacities)
    return [{level: n for level, n in step.items() if n} for step in levels]


def test_data_is_found_where_it_still_fits_since_its_last_use() -> None:
    sizes = {"l1": 100, "l2": 1000, "memory": 10**9}
    # b is made and read at once; a comes back after 40 + 40 + 500 bytes, w after a whole call.
    steps = [[("a", 40), ("b", 40)], [("b", 40)], [("w", 500)], [("a", 40)]]
    assert found(sizes, *steps) == [{"l1": 40, "l2": 40}, {"l1": 40}, {"l2": 500}, {"l2": 40}]


def test_what_no_cache_holds_comes_from_memory() -> None:
    sizes = {"l1": 100, "memory": 10**9}
    assert found(sizes, [("w", 80)], [("v", 80)]) == [{"memory": 80}, {"memory": 80}]
    assert found(sizes, [("w", 80)]) == [{"l1": 80}]
    assert found({"memory": 10**9}, [("w", 8)]) == [{"memory": 8}]
    assert found(sizes) == []


def test_buffers_at_one_place_are_one_in_the_cache() -> None:
    first, second = Access("arena", 0, 64, 64), Access("arena", 32, 96, 64)
    other = Access("arena", 64, 96, 32)
    assert first.overlaps(second) and not first.overlaps(other)
    assert levels_of([[first], [second]], {"l1": 64, "memory": 10**9})[1]["l1"] == 64


def limits(**figures: float) -> Figures:
    """Return limits: `f32=1e9` flop/s, `l1=1e9` byte/s, ..."""
    made = [
        Figure("flops" if name.startswith("f") else "read", name, value, 1, 0.0, 3)
        for name, value in figures.items()
    ]
    return Figures(tuple(made))


@pytest.mark.parametrize(
    ("operations", "traffic", "expected"),
    [
        ({"f32": 100}, {"l1": 10, "memory": 0}, Bound(100.0, "f32")),
        ({"f32": 100}, {"l1": 0, "memory": 50}, Bound(500.0, "memory")),
        ({"f32": 1}, {"l1": 80, "memory": 0}, Bound(20.0, "l1")),
        # What comes from memory passes through l1, too.
        ({}, {"l1": 100, "memory": 4}, Bound(40.0, "memory")),
        ({}, {"l1": 300, "memory": 4}, Bound(76.0, "l1")),
        ({"f32": 100, "f64": 100}, {"l1": 0, "memory": 0}, Bound(300.0, "f64")),
        ({"f16": 100, "i64": 10**6}, {"l1": 0, "memory": 0}, Bound(100.0, "f16")),
        ({}, {"l1": 0, "memory": 0}, Bound(0.0, "")),
    ],
)
def test_the_slowest_resource_is_the_bound(
    operations: dict[str, int], traffic: dict[str, int], expected: Bound
) -> None:
    device = limits(f32=1e9, f64=0.5e9, l1=4e9, memory=0.1e9)
    assert bound(operations, traffic, device, 1) == expected
    assert bound(operations, traffic, device, 2) == Bound(0.0, "")


PRODUCT = Inputs(panels=1, scalars=1, cells=0)
DEPTHWISE = Inputs(panels=1, scalars=0, cells=1)


@pytest.mark.parametrize(
    ("inputs", "rows", "vectors", "instructions"),
    [
        pytest.param(PRODUCT, 4, 2, (16 + 2 + 8 + 3) / 8, id="many_rows"),
        pytest.param(PRODUCT, 2, 4, (16 + 4 + 4 + 3) / 8, id="many_vectors_are_cheaper"),
        pytest.param(DEPTHWISE, 4, 2, (16 + 2 + 8) / 8, id="an_operand_of_each_needs_no_copies"),
        pytest.param(DEPTHWISE, 2, 4, (16 + 4 + 8) / 8, id="weights_are_reused_along_rows"),
    ],
)
def test_instructions_of_a_register_block(
    inputs: Inputs, rows: int, vectors: int, instructions: float
) -> None:
    assert instructions_per_product(rows, vectors, inputs) == instructions
