"""Torch ops that go through torch-mlir's own conversions, compiled and compared with torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from native_kernel import Array, run

from metadef import ir
from metadef.diagnostics import UnsupportedOpError
from metadef.dialects.metadef.ops.opaque import opaque
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.yield_ import yield_
from metadef.dialects.metadef.types import tensor_type
from metadef.passes.linalg_lowerings.opaque import can_lower_opaque
from metadef.passes.linalg_lowerings.torch_mlir_path import lowered_text

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
FLOATS, INTS, BOOLS = (f"!torch.vtensor<[?,4],{e}>" for e in ("f32", "si64", "i1"))
TORCH_TYPES = {"f32": FLOATS, "i64": INTS, "i1": BOOLS}
CONSTANTS = """
  %zero = torch.constant.int 0
  %one = torch.constant.int 1
  %two = torch.constant.int 2
  %half = torch.constant.float 0.5
  %false = torch.constant.bool false
  %none = torch.constant.none
  %ones = torch.prim.ListConstruct %one, %one : (!torch.int, !torch.int) -> !torch.list<int>
"""


def run_torch_op(text: str, inputs: list[Array], elements: list[str], results: list[Any]) -> Any:
    """Run `%r = ...` on `%a0, %a1, ..` of [B, 4] in a kernel of its own."""

    def build(*xs: ir.Value) -> list[ir.Value]:
        kinds = [tensor_type(dims, ir.Type.parse(element)) for dims, element in results]
        types = [ir.Type.parse(TORCH_TYPES[e]) for e in elements]
        op = opaque(list(xs), kinds, types)
        fill_region(op, text, [TORCH_TYPES[e] for e in elements])
        return list(op.operation.results)

    return run([(["B", 4], e) for e in elements], build, inputs, {"B": len(inputs[0])})


def fill_region(op: Any, text: str, types: list[str]) -> None:
    """Move the ops of a parsed function into the region of an opaque op."""
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    module = ir.Module.parse(f"func.func @f({arguments}) {{\n{CONSTANTS}\n{text}\nreturn\n}}")
    source = ir.entry_block(module.body.operations[0])
    block = op.regions[0].blocks[0]
    for old, new in zip(source.arguments, block.arguments, strict=True):
        old.replace_all_uses_with(new)
    body = list(source.operations)[:-1]
    with ir.InsertionPoint(block):
        yield_(list(body[-1].operation.results))
    end = list(block.operations)[-1].operation
    for inside in body:
        inside.operation.move_before(end)


F32 = (["B", 4], "f32")
CASES = [
    pytest.param(
        f"%r = torch.aten.cumsum %a0, %one, %none : {FLOATS}, !torch.int, !torch.none -> {FLOATS}",
        [F32],
        lambda x: x.cumsum(1),
        id="scan",
    ),
    pytest.param(
        f"%r = torch.aten.isnan %a0 : {FLOATS} -> {BOOLS}",
        [(["B", 4], "i1")],
        torch.isnan,
        id="bool_result",
    ),
    pytest.param(
        f"%r:2 = torch.aten.sort %a0, %one, %false : {FLOATS}, !torch.int, !torch.bool"
        f" -> {FLOATS}, {INTS}",
        [F32, (["B", 4], "i64")],
        lambda x: torch.sort(x, dim=1),
        id="sort",
    ),
    pytest.param(
        f"%r = torch.aten.roll %a0, %ones, %ones : {FLOATS}, !torch.list<int>, !torch.list<int>"
        f" -> {FLOATS}",
        [F32],
        lambda x: x.roll([1, 1], [1, 1]),
        id="concat",
    ),
    pytest.param(
        f"%r = torch.aten.constant_pad_nd %a0, %ones, %half : {FLOATS}, !torch.list<int>,"
        " !torch.float -> !torch.vtensor<[?,6],f32>",
        [(["B", 6], "f32")],
        lambda x: torch.nn.functional.pad(x, (1, 1), value=0.5),
        id="pad",
    ),
    pytest.param(
        f"%r:2 = torch.aten.kthvalue %a0, %two, %one, %false : {FLOATS}, !torch.int, !torch.int,"
        " !torch.bool -> !torch.vtensor<[?],f32>, !torch.vtensor<[?],si64>",
        [(["B"], "f32"), (["B"], "i64")],
        lambda x: torch.kthvalue(x, 2, 1),
        id="topk",
    ),
]


@pytest.mark.parametrize(("text", "results", "reference"), CASES)
def test_agrees_with_torch(text: str, results: list[Any], reference: Any) -> None:
    got = run_torch_op(text, [X], ["f32"], results)
    expected = reference(torch.tensor(X))
    for g, e in zip(got, expected if isinstance(expected, tuple) else [expected], strict=True):
        np.testing.assert_allclose(g, e.numpy(), rtol=1e-6)


def test_bool_operand() -> None:
    text = (
        f"%n = torch.aten.logical_not %a0 : {BOOLS} -> {BOOLS}\n"
        f"%r = torch.aten.where.self %n, %a1, %a2 : {BOOLS}, {FLOATS}, {FLOATS} -> {FLOATS}"
    )
    (got,) = run_torch_op(text, [X > 0, X, X * 2], ["i1", "f32", "f32"], [F32])
    np.testing.assert_array_equal(got, np.where(X <= 0, X, X * 2))


def test_scatter_keeps_its_bounds() -> None:
    where = np.array([[0, 1, 2, 0], [2, 2, 1, 1], [0, 0, 0, 0]])
    text = (
        f"%r = torch.aten.scatter_add %a0, %zero, %a1, %a0 : {FLOATS}, !torch.int, {INTS}, {FLOATS}"
        f" -> {FLOATS}"
    )
    (got,) = run_torch_op(text, [X, where], ["f32", "i64"], [F32])
    expected = torch.tensor(X).scatter_add(0, torch.tensor(where), torch.tensor(X))
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-6)


def test_says_why_it_cannot() -> None:
    module = """
      func.func @main(%a: !torch.vtensor<[3,8],f32>) -> !torch.vtensor<[3,8],f32> {
        %0 = torch.operator "torch.aten.no_such"(%a)
          : (!torch.vtensor<[3,8],f32>) -> !torch.vtensor<[3,8],f32>
        return %0 : !torch.vtensor<[3,8],f32>
      }"""
    reason = can_lower_opaque(module)
    assert reason == "torch-mlir has no lowering"
    with pytest.raises(UnsupportedOpError, match="torch-mlir has no lowering"):
        lowered_text(module)


def test_survives_an_abort_of_torch_mlir() -> None:
    # torch-mlir asserts on adaptive pooling of rank 2, which torch allows.
    module = """
      func.func @main(%a: !torch.vtensor<[3,8],f32>) -> !torch.vtensor<[3,3],f32> {
        %i = torch.constant.int 3
        %l = torch.prim.ListConstruct %i : (!torch.int) -> !torch.list<int>
        %0 = torch.aten.adaptive_avg_pool1d %a, %l
          : !torch.vtensor<[3,8],f32>, !torch.list<int> -> !torch.vtensor<[3,3],f32>
        return %0 : !torch.vtensor<[3,3],f32>
      }"""
    assert can_lower_opaque(module) == "torch-mlir aborts on it"
    relu = module.replace("3,3]", "3,8]").replace(
        "torch.aten.adaptive_avg_pool1d %a, %l", "torch.aten.relu %a"
    )
    assert can_lower_opaque(relu.replace(", !torch.list<int> ->", " ->")) is None


def test_joins_native_ops_in_one_kernel() -> None:
    def build(x: ir.Value) -> ir.Value:
        kind = tensor_type(["B", 4], ir.F32Type.get())
        op = opaque([pointwise("neg", x)], [kind], [ir.Type.parse(FLOATS)])
        text = f"%r = torch.aten.relu %a0 : {FLOATS} -> {FLOATS}"
        fill_region(op, text, [FLOATS])
        return pointwise("add", op.operation.results[0], x)

    (got,) = run([(["B", 4], "f32")], build, [X], {"B": 3})
    np.testing.assert_allclose(got, np.maximum(-X, 0) + X)
