"""How metadef ops are built: types follow, dims are normalised, groups are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from metadef import ir
from metadef.diagnostics import MetadefError, ShapeInferenceError
from metadef.dialects.metadef.literals import array_of, round_to_bfloat16
from metadef.dialects.metadef.ops.attention import attention
from metadef.dialects.metadef.ops.constant import constant
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.conv import conv
from metadef.dialects.metadef.ops.fill import fill
from metadef.dialects.metadef.ops.kernel import kernel
from metadef.dialects.metadef.ops.norm import norm
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.reduce import reduce
from metadef.dialects.metadef.ops.softmax import softmax
from metadef.dialects.metadef.ops.weight import weight
from metadef.dialects.metadef.ops.yield_ import yield_
from metadef.dialects.metadef.shapes import shape_of
from metadef.dialects.metadef.types import tensor_type


@pytest.fixture
def module() -> Iterator[ir.Module]:
    """An empty module whose body is the insertion point."""
    with ir.make_context(), ir.Location.unknown():
        made = ir.Module.create()
        with ir.InsertionPoint(made.body):
            yield made


def f32() -> ir.Type:
    return ir.F32Type.get()


def op_names(module: ir.Module) -> list[str]:
    return [op.operation.name for op in module.body.operations]


def test_result_types_follow(module: ir.Module) -> None:
    x, w = fill(["B", "S", 8], 0, f32()), fill([16, 8], 0, f32())
    y = contraction(x, w, transpose_rhs=True)
    assert y.type == tensor_type(["B", "S", 16], f32())
    assert pointwise("lt", y, y).type == tensor_type(["B", "S", 16], ir.IntegerType.get_signless(1))
    assert module.operation.verify()


def test_negative_dims_are_counted_from_the_front(module: ir.Module) -> None:
    x = fill([2, 3, 4], 0, f32())
    assert softmax(x, -1).owner.attributes["dim"].value == 2
    assert list(reduce("sum", x, [-1, 0]).owner.attributes["dims"]) == [0, 2]


def test_builders_refuse_by_the_constraint(module: ir.Module) -> None:
    x = fill([4, 8], 0, f32())
    with pytest.raises(ShapeInferenceError, match="softmax-C1: dim is an axis of x, got dim 2"):
        softmax(x, 2)
    with pytest.raises(ShapeInferenceError, match="contraction-C2: contracted dims agree"):
        contraction(x, x)


def test_optional_operands(module: ir.Module) -> None:
    x, w, b = fill([1, 2, 5], 0, f32()), fill([2, 2, 3], 0, f32()), fill([2], 0, f32())
    assert conv(x, w).owner.opview.bias is None
    assert conv(x, w, b).owner.opview.bias == b
    q = fill([1, 2, 5, 4], 0, f32())
    assert attention(q, q, q).owner.opview.mask is None
    scale = fill([5], 1, f32())
    made = norm(x, scale).owner.opview
    assert (made.scale, made.bias) == (scale, None)


def test_a_field_called_name_does_not_hide_the_ops(module: ir.Module) -> None:
    op = weight("layer.w", tensor_type([4], f32())).owner
    assert op.name == op.opview.name == "metadef.weight"
    assert op.attributes["name"].value == "layer.w"


def test_upstream_passes_see_that_ops_are_pure(module: ir.Module) -> None:
    x = fill([4], 0, f32())
    pointwise("exp", x)
    pointwise("exp", x)
    assert op_names(module) == ["metadef.fill", "metadef.pointwise", "metadef.pointwise"]
    ir.passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
    assert op_names(module) == []


def test_equal_ops_are_merged_by_cse() -> None:
    text = """
    func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = "metadef.softmax"(%x) {dim = 0 : i64, log = false} : (tensor<4xf32>) -> tensor<4xf32>
      %1 = "metadef.softmax"(%x) {dim = 0 : i64, log = false} : (tensor<4xf32>) -> tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    """
    with ir.make_context():
        module = ir.Module.parse(text)
        ir.passmanager.PassManager.parse("builtin.module(func.func(cse))").run(module.operation)
        assert str(module).count("metadef.softmax") == 1


def make_kernel(xs: list[ir.Value]) -> Any:
    op = kernel(xs, [xs[0].type])
    block = ir.entry_block(op)
    with ir.InsertionPoint(block):
        yield_([block.arguments[0]])
    return op


def test_operands_of_one_type_share_a_group(module: ir.Module) -> None:
    x, y = fill([4], 0, f32()), fill([5], 0, f32())
    op = make_kernel([x] * 60 + [y] * 60)
    assert list(op.attributes["operandSegmentSizes"])[:3] == [60, 60, 0]
    assert module.operation.verify()


def test_more_types_than_groups_are_refused(module: ir.Module) -> None:
    xs = [fill([1 + i], 0, f32()) for i in range(33)]
    with pytest.raises(MetadefError, match="'metadef.kernel' takes at most 32 operands"):
        make_kernel(xs)


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64", "i1", "i8", "ui8", "i32", "i64"])
@pytest.mark.parametrize("count", [0, 1, 3, 300])
def test_literals_round_trip(module: ir.Module, name: str, count: int) -> None:
    element = ir.Type.parse(name)
    values = np.arange(count) % 2 if name == "i1" else np.arange(count) % 50
    value = constant(values, element)
    assert shape_of(value).element == element
    np.testing.assert_array_equal(array_of(value.owner.attributes["value"]), values)


def test_literals_keep_special_values(module: ir.Module) -> None:
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0], np.float32)
    for element in (f32(), ir.BF16Type.get(), ir.F16Type.get()):
        got = array_of(constant(special, element).owner.attributes["value"])
        np.testing.assert_array_equal(got, special)
        np.testing.assert_array_equal(np.signbit(got[3:]), [True, False])


def test_bfloat16_rounds_to_nearest_even() -> None:
    import torch

    bits = np.random.default_rng(0).integers(0, 2**32, 2000, dtype=np.uint32)
    x = bits.view(np.float32)
    expected = torch.from_numpy(x.copy()).to(torch.bfloat16).to(torch.float32).numpy()
    np.testing.assert_array_equal(round_to_bfloat16(x), expected)
