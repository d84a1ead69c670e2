"""What a plan wants of front passes, and what they decided: attributes of the module.

    module attributes {
      metadef.plan = {convolution = {"<key>" = ["winograd(4)", "direct"]}},
      metadef.decisions = [{kind = "convolution", key = "<key>", chosen = "winograd(4)", ...}]}

What is wanted of a decision is listed first choice first. A module without `metadef.plan` has no
plan, and nobody notes decisions on it; with an empty one they are noted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metadef import ir
from metadef.diagnostics import location_text
from metadef.dialects.metadef.shapes import shape_of

PLAN = "metadef.plan"
#: the largest relative error of the outputs that a user allows, where one does
ERROR_LIMIT = "metadef.error_limit"
DECISIONS = "metadef.decisions"


def set_plan(module: ir.Module, wanted: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    """Say on a module what is wanted: kind of decision -> its key -> choices as text."""
    kinds = {
        kind: ir.DictAttr.get({key: _texts(choices) for key, choices in of_kind.items()})
        for kind, of_kind in wanted.items()
    }
    module.operation.attributes[PLAN] = ir.DictAttr.get(kinds)


def has_plan(module: ir.Operation) -> bool:
    """Tell whether decisions are to be noted."""
    return PLAN in module.attributes


def wanted(module: ir.Operation, kind: str, key: str) -> list[str]:
    """Return what is wanted of a decision, first choice first."""
    if PLAN not in module.attributes:
        return []
    kinds = ir.DictAttr(module.attributes[PLAN])
    of_kind = ir.DictAttr(kinds[kind]) if kind in kinds else {}
    return _of_texts(of_kind[key]) if key in of_kind else []


def note_decision(
    module: ir.Operation,
    kind: str,
    key: str,
    op: ir.OpView | ir.Operation,
    chosen: str,
    refused: Sequence[str],
    called: str | None = None,
    others: Sequence[ir.Operation] = (),
) -> None:
    """Note what was chosen for an op, and why the choices wanted before that were refused.

    `called` says which ops it was chosen for where there are others than `op`; `others` are like it
    and have their shapes noted, too.
    """
    values = [v for o in (op.operation, *others) for v in (*o.operands, *o.results)]
    decision = ir.DictAttr.get(
        {
            "kind": ir.StringAttr.get(kind),
            "key": ir.StringAttr.get(key),
            "chosen": ir.StringAttr.get(chosen),
            "refused": _texts(refused),
            "op": ir.StringAttr.get(called or op.operation.name.removeprefix("metadef.")),
            "line": ir.StringAttr.get(location_text(op.location)),
            "shapes": _texts([_shape(v) for v in values]),
        }
    )
    made = (
        list(ir.ArrayAttr(module.attributes[DECISIONS])) if DECISIONS in module.attributes else []
    )
    module.attributes[DECISIONS] = ir.ArrayAttr.get([*made, decision])


def decisions_of(module: ir.Operation) -> list[dict[str, str | list[str]]]:
    """Return the decisions that are noted, in order."""
    if DECISIONS not in module.attributes:
        return []
    return [
        {
            named.name: _of_texts(named.attr)
            if isinstance(named.attr, ir.ArrayAttr)
            else ir.StringAttr(named.attr).value
            for named in ir.DictAttr(decision)
        }
        for decision in ir.ArrayAttr(module.attributes[DECISIONS])
    ]


def _texts(texts: Sequence[str]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(text) for text in texts])


def _of_texts(attribute: ir.Attribute) -> list[str]:
    return [ir.StringAttr(text).value for text in ir.ArrayAttr(attribute)]


def _shape(value: ir.Value) -> str:
    shape = shape_of(value)
    return "x".join([*map(str, shape.dims), str(shape.element)])
