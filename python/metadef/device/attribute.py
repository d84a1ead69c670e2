"""A module's device as its attribute `device.spec`: how passes come by it."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.diagnostics import DeviceError

from .spec import DeviceSpec, from_data, to_data

#: the module's attribute
ATTRIBUTE = "device.spec"


def attribute_of(spec: DeviceSpec) -> ir.Attribute:
    """Return a spec as a `#device.spec` attribute in the current context."""
    from metadef.dialects.device.dialect import SpecAttr

    return SpecAttr.get(plain_to_attribute(to_data(spec)))


def set_device(module: ir.Module | ir.Operation, spec: DeviceSpec) -> None:
    """Say on the module for which device it is compiled: passes read it there."""
    with module.context:
        module.operation.attributes[ATTRIBUTE] = attribute_of(spec)


def of(module: ir.Module | ir.Operation) -> DeviceSpec:
    """Return the device that a module is compiled for.

    Raises:
        DeviceError: the module has no `device.spec`, or a malformed one.
    """
    attributes = module.operation.attributes
    if ATTRIBUTE not in attributes:
        raise DeviceError(
            f"module: expected the attribute '{ATTRIBUTE} = #device.spec<{{...}}>', got none"
        )
    return from_attribute(attributes[ATTRIBUTE])


def from_attribute(attribute: ir.Attribute) -> DeviceSpec:
    """Return the spec that a `#device.spec` attribute holds.

    Raises:
        DeviceError: another attribute, or a field is missing, unknown or out of range.
    """
    from metadef.dialects.device.dialect import SpecAttr

    if not isinstance(attribute, SpecAttr):
        raise DeviceError(
            f"attribute '{ATTRIBUTE}': expected #device.spec<{{...}}>, got {attribute}"
        )
    text = str(attribute.traits)
    if text not in _KNOWN:
        traits = attribute_to_plain(ir.DictAttr(attribute.traits))
        _KNOWN[text] = from_data(traits, f"attribute '{ATTRIBUTE}'")
    return _KNOWN[text]


#: specs by the text of their attribute: every kernel of a model has the same
_KNOWN: dict[str, DeviceSpec] = {}


def plain_to_attribute(value: Any) -> ir.Attribute:
    """Return plain data (what JSON gives) as an attribute in the current context."""
    if isinstance(value, dict):
        return ir.DictAttr.get({k: plain_to_attribute(v) for k, v in value.items()})
    if isinstance(value, list):
        return ir.ArrayAttr.get([plain_to_attribute(v) for v in value])
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    return ir.FloatAttr.get_f64(value)


def attribute_to_plain(attribute: ir.Attribute) -> Any:
    """Return the plain data in an attribute; what is of another kind, as its text."""
    if isinstance(attribute, ir.DictAttr):
        return {a.name: attribute_to_plain(a.attr) for a in attribute}
    if isinstance(attribute, ir.ArrayAttr):
        return [attribute_to_plain(a) for a in attribute]
    if isinstance(attribute, ir.StringAttr | ir.IntegerAttr | ir.FloatAttr | ir.BoolAttr):
        return attribute.value
    return str(attribute)
