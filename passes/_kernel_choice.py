"""The choice for a kernel's main nest, as an attribute of its function."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.diagnostics import MetadefError
from metadef.plan.kernel_choice import BY_RULE, KernelChoice, choice_from_data

#: a kernel's attribute with what a plan, or a person, wants of its loops
CHOICE = "metadef.choice"


def choice_of(function: ir.OpView) -> KernelChoice:
    """Return what the function says, which may be nothing.

    Raises:
        MetadefError: it is no dictionary, or has an unknown field or a value of another type.
    """
    if CHOICE not in function.attributes:
        return BY_RULE
    attribute = function.attributes[CHOICE]
    if not isinstance(attribute, ir.DictAttr):
        raise MetadefError(f"{CHOICE}: expected a dictionary, got {attribute}")
    return choice_from_data({named.name: _data(named.attr) for named in attribute}, CHOICE)


def set_choice(function: ir.OpView, choice: KernelChoice) -> None:
    """Say the choice on the function."""
    said = {name: _attribute(value) for name, value in choice.said.items()}
    function.attributes[CHOICE] = ir.DictAttr.get(said)


def _data(attribute: ir.Attribute) -> Any:
    if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr):
        return attribute.value
    if isinstance(attribute, ir.StringAttr):
        return attribute.value
    return list(attribute) if isinstance(attribute, ir.DenseI64ArrayAttr) else str(attribute)


def _attribute(value: int | bool | tuple[int, ...]) -> ir.Attribute:
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, tuple):
        return ir.DenseI64ArrayAttr.get(list(value))
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
