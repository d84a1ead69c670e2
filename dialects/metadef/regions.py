"""What the region ops share: the rule that a region is one block that ends in `metadef.yield`."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.dialect import Constraint


def yielded_types(op: Any, rule: Constraint) -> list[ir.Type]:
    """Return the types that the region of `op` yields; a broken region raises by `rule`."""
    regions = op.operation.regions
    if len(regions) != 1 or len(regions[0].blocks) != 1:
        raise rule.broken(f"{[len(r.blocks) for r in regions]} blocks")
    operations = list(regions[0].blocks[0].operations)
    if not operations or operations[-1].operation.name != "metadef.yield":
        raise rule.broken(operations[-1].operation.name if operations else "an empty block")
    return [x.type for x in operations[-1].operation.operands]
