"""Torch ops on Python scalars and lists, evaluated to Python values and dim expressions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from metadef import ir
from metadef.symbolic import Dim, product

from . import build
from .build import simplified
from .call import Call, Number, ScalarTensor
from .dtypes import f64, i64, is_float
from .registry import NotModelled, converts


@converts("aten.size.int")
def size_int(call: Call, x: ir.Value, dim: int) -> Any:
    return simplified(build.dims(x)[dim])


@converts("aten.size")
def size(call: Call, x: ir.Value) -> list[Any]:
    return [simplified(d) for d in build.dims(x)]


@converts("aten.numel", "prim.numel")
def numel(call: Call, x: ir.Value) -> Any:
    return simplified(product(build.dims(x)))


@converts("aten.dim")
def rank(call: Call, x: ir.Value) -> int:
    return build.rank(x)


@converts("aten.stride.int")
def stride(call: Call, x: ir.Value, dim: int) -> Any:
    """Every tensor is row-major here."""
    dims = build.dims(x)
    return simplified(product(dims[dim % len(dims) + 1 :]))


@converts("aten.len.t")
def length(call: Call, items: list[Any]) -> int:
    return len(items)


@converts("aten.__getitem__.t")
def getitem(call: Call, items: list[Any], index: int) -> Any:
    return items[index]


@converts("prim.ListConstruct", "prim.TupleConstruct")
def list_construct(call: Call, *items: Any) -> list[Any]:
    return list(items)


@converts("prim.ListUnpack", "prim.TupleUnpack")
def list_unpack(call: Call, items: list[Any]) -> tuple[Any, ...]:
    return tuple(items)


@converts("prim.NumToTensor.Scalar", "derefine", "aten.ScalarImplicit")
def same_value(call: Call, value: Any) -> Any:
    """A number that becomes a tensor keeps promoting as a Python scalar, as it does in eager."""
    return value


@converts("aten.Int.Scalar", "aten.Int.float", "aten.Int.bool")
def to_int(call: Call, value: Number) -> Number:
    if isinstance(value, ScalarTensor):
        return ScalarTensor(build.cast(value.value, i64()))
    return value if isinstance(value, Dim) else int(value)


@converts("aten.Float.Scalar", "aten.sym_float")
def to_float(call: Call, value: Number) -> Number:
    if isinstance(value, Dim | ScalarTensor):
        return ScalarTensor(build.cast(build.number(value, i64()), f64()))
    return float(value)


@converts("aten.Bool.int", "aten.Bool.float")
def to_bool(call: Call, value: Number) -> bool:
    return bool(_known(value))


@converts("aten.item", "aten.Int.Tensor", "aten.Float.Tensor", "aten.Bool.Tensor")
@converts("aten.IntImplicit", "aten.FloatImplicit", "aten._local_scalar_dense")
def item(call: Call, x: Any) -> Any:
    if not isinstance(x, ir.Value):
        return x
    rank0 = build.reshape(x, [])
    element = build.element(x)
    return ScalarTensor(build.cast(rank0, f64() if is_float(element) else i64()))


@converts("aten._assert_tensor_metadata", "aten._assert_scalar", "aten.sym_constrain_range")
@converts("aten.sym_constrain_range_for_size", "prim.RaiseException")
def nothing(call: Call, *operands: Any) -> tuple[()]:
    return ()


def _known(value: Any) -> Any:
    if isinstance(value, Dim | ScalarTensor):
        raise NotModelled
    return value


def _integer(call: Call, fn: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if isinstance(a, ScalarTensor) or isinstance(b, ScalarTensor):
        raise NotModelled
    if isinstance(a, Dim) or isinstance(b, Dim):
        return simplified(fn(Dim.of(a), Dim.of(b)))
    return fn(a, b)


_INTEGER: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "fmod": lambda a, b: a % b,
}


def _register_integer(name: str, fn: Callable[[Any, Any], Any]) -> None:
    @converts(f"aten.{name}.int")
    def convert(call: Call, a: Any, b: Any) -> Any:
        return _integer(call, fn, a, b)


for _name, _fn in _INTEGER.items():
    _register_integer(_name, _fn)


@converts("prim.min.int", "prim.max.int", "aten.sym_min", "aten.sym_max")
def extremum(call: Call, a: Any, b: Any) -> Any:
    choose = call.ranges.minimum if "min" in call.name else call.ranges.maximum
    return simplified(choose(a, b))


@converts("aten.neg.int", "aten.neg.float")
def negate(call: Call, a: Any) -> Any:
    if isinstance(a, ScalarTensor):
        return ScalarTensor(build.pointwise("neg", a.value))
    return -a


_FLOAT: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
}


def _register_float(name: str, fn: Callable[[float, float], float]) -> None:
    overloads = ["float", "int_float", "float_int", *(["int"] if name == "div" else [])]

    @converts(*(f"aten.{name}.{overload}" for overload in overloads))
    def convert(call: Call, a: Any, b: Any) -> Any:
        if isinstance(a, int | float) and isinstance(b, int | float):
            return fn(float(a), float(b))
        x, y = build.number(a, f64()), build.number(b, f64())
        return ScalarTensor(build.pointwise(name, x, y))


for _name, _fn in _FLOAT.items():
    _register_float(_name, _fn)


@converts("aten.sqrt.int", "aten.sqrt.float", "prims.sqrt")
def sqrt(call: Call, a: Any) -> Any:
    if isinstance(a, int | float):
        return math.sqrt(a)
    return ScalarTensor(build.pointwise("sqrt", build.number(a, f64())))


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _register_compare(name: str, fn: Callable[[Any, Any], bool]) -> None:
    @converts(f"aten.{name}.int", f"aten.{name}.float", f"aten.{name}.float_int")
    def convert(call: Call, a: Any, b: Any) -> bool:
        return fn(_known(a), _known(b))


for _name, _fn in _COMPARE.items():
    _register_compare(_name, _fn)


@converts("aten.__not__")
def logical_not(call: Call, a: Any) -> bool:
    return not _known(a)


@converts("aten.__is__", "aten.__isnot__")
def identity(call: Call, a: Any, b: Any) -> bool:
    same = a is None and b is None
    return same if call.name.endswith("__is__") else not same
