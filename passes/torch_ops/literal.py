"""Torch constants as Python values, and tensor literals as `metadef.constant`."""

from __future__ import annotations

from typing import Any

import numpy as np

from metadef import ir
from metadef.dialects.metadef.literals import array_of
from metadef.dialects.metadef.ops.constant import constant

from . import build
from .call import parse_vtensor
from .dtypes import is_bool


def literal(op: ir.Operation) -> Any:
    """Return the value of a `torch.constant.*` or `torch.vtensor.literal` op."""
    kind = op.name.rsplit(".", 1)[1]
    if kind == "none":
        return None
    attribute = op.attributes["value"]
    if kind == "int":
        return ir.IntegerAttr(attribute).value
    if kind == "float":
        return ir.FloatAttr(attribute).value
    if kind == "bool":
        return bool(ir.IntegerAttr(attribute).value)
    if kind in ("str", "device"):
        return ir.StringAttr(attribute).value
    parsed = parse_vtensor(str(op.results[0].type))
    assert parsed is not None and kind == "literal", f"unknown constant {op.name}"
    return _tensor(attribute, parsed[0])


def _tensor(attribute: ir.Attribute, element: ir.Type) -> ir.Value:
    dense = ir.DenseElementsAttr(attribute)
    if dense.is_splat:
        value = dense.get_splat_value()
        return build.fill(ir.ShapedType(dense.type).shape, value.value, element)
    if is_bool(element):
        return constant(np.array(list(dense)).reshape(ir.ShapedType(dense.type).shape), element)
    return constant(array_of(dense), element)
