"""Whether what is wanted of a nest can be: on this device, and with right numbers."""

from __future__ import annotations

from typing import NoReturn

from metadef.diagnostics import MetadefError
from metadef.plan.kernel_choice import BY_RULE, KernelChoice

from .access import Access
from .blocking import is_sum, rows_size, rows_to_copy, sums_size, whole_taps
from .cells import CHUNK
from .decisions import Decisions, decide
from .grouping import Nest
from .private_tiles import private_bytes
from .schedule import Schedule, Target, most_rows, possible_lanes
from .stage import Stage

#: turns of a loop of unknown extent in a box, and parts of a share, at most
MOST_TURNS = 1 << 20
MOST_PARTS = 1 << 12
#: Vectors side by side in a register block, at most: what fits in registers is fewer.
MOST_VECTORS = 8


def decide_legally(
    nest: Nest, target: Target, wanted: KernelChoice, rule: Decisions | None = None
) -> Decisions:
    """Return what is decided of a nest with what is `wanted`; `rule` is what would be without.

    Raises:
        MetadefError: it cannot be; names the field, the rule and the value.
    """
    rule = rule or decide(nest, target)
    if wanted == BY_RULE:
        return rule
    can = choosable(rule)
    for name in wanted.said:
        if name not in can:
            has = f"only {', '.join(can)}" if can else "nothing"
            _refuse(name, f"nothing, as this kernel has {has} to choose", wanted)
    _check_dims(rule, wanted)
    found = decide(nest, target, wanted)
    if (wanted.rows, wanted.vectors) != (None, None):
        _check_block(found, wanted)
    if wanted.tiles is not None:
        _check_tiles(found, wanted)
    _check_memory(rule, found, wanted)
    return found


def choosable(rule: Decisions) -> list[str]:
    """Return the fields that have a meaning for a nest, of which `rule` is decided by the rules."""
    stage, block, target = rule.main, rule.block, rule.target
    one = len(rule.nest.stages) == 1
    fields = []
    if one and rule.windows is None and len(possible_lanes(stage, stage.extents, target)) > 1:
        fields.append("lanes")
    if stage.reduction_dims and block.row_dim is not None and (one or stage.sums_products):
        fields.append("rows")
    turned = not stage.reduction_dims and block.row_dim is not None
    if block.lanes is not None and not turned and (one or stage.sums_products):
        fields.append("vectors")
    if rule.boxes:
        fields += ["tiles", "parts"]
    if rule.blocking is not None and is_sum(stage):
        fields += ["chunks", "copied"]
    return fields


def _check_dims(rule: Decisions, wanted: KernelChoice) -> None:
    """Check what must hold for `decide` to read the choice."""
    nest, target, stage = rule.nest, rule.target, rule.main
    if wanted.lanes is not None:
        can = possible_lanes(stage, stage.extents, target)
        if wanted.lanes not in can:
            _refuse("lanes", f"one of the dims {', '.join(map(str, can))}", wanted)
    for name, least in (("rows", 1), ("vectors", 1), ("parts", 1)):
        value = getattr(wanted, name)
        most = {"vectors": MOST_VECTORS, "parts": MOST_PARTS}.get(name, MOST_TURNS)
        if value is not None and not least <= value <= most:
            _refuse(name, f"{least} to {most}", wanted)
    if wanted.tiles is not None and len(wanted.tiles) != len(nest.common[0]):
        _refuse("tiles", f"a size for each of {len(nest.common[0])} loops", wanted)
    if wanted.chunks is not None:
        _check_chunks(stage, wanted)


def _check_chunks(stage: Stage, wanted: KernelChoice) -> None:
    assert wanted.chunks is not None
    dims = stage.reduction_dims
    if len(wanted.chunks) != len(dims):
        _refuse("chunks", f"a size for each of {len(dims)} reduced dims", wanted)
    for d, size in zip(dims, wanted.chunks, strict=True):
        extent = stage.extents[d]
        if isinstance(extent, int) and size >= max(extent, 1):
            _refuse("chunks", f"less than the {extent} turns of a dim, or 0 for all", wanted)
        if size > 4 * CHUNK:
            _refuse("chunks", f"at most {4 * CHUNK}, for the sake of rounding", wanted)


def _check_block(found: Decisions, wanted: KernelChoice) -> None:
    """Check that a register block fits into the registers and the main stage."""
    stage, block, target = found.main, found.block, found.target
    if block.lanes is None:
        name = "vectors" if wanted.vectors is not None else "rows"
        _refuse(name, "nothing, as there are no lanes with these tiles", wanted)
    vectors = block.chains * block.vectors
    for name, got in (("rows", block.rows), ("vectors", vectors)):
        value = getattr(wanted, name)
        if value is not None and value > got:
            _refuse(name, f"at most the {got} that the dim (in a box) has", wanted)
    width = block.panel
    for x in stage.accesses():
        if stage.reduction_dims and x.lane_distance(block.lanes, width - 1, width) is None:
            _refuse("vectors", "whole panels of a packed operand, or parts of one", wanted)
        if not stage.reduction_dims and x.lane_stride(block.lanes, width) is None:
            _refuse("vectors", "vectors that are side by side in all operands", wanted)
    registers = target.vector_registers
    if not stage.reduction_dims:
        outputs = len(stage.outputs)
        if vectors > 1 and vectors * (outputs + 1) > registers:
            rule = f"vectors * ({outputs} results + 1) of at most {registers} vector registers"
            _refuse("vectors", rule, wanted)
    elif block.row_dim is not None and not block.over_reduction:
        most = most_rows(stage, block.row_dim, block.lanes, block.vectors, target)
        if block.rows > most:
            rule = (
                f"at most {most} rows with {block.vectors} vectors, as there are {registers} "
                "vector registers for the sums and what they are made of"
            )
            _refuse("vectors" if wanted.rows is None else "rows", rule, wanted)
    elif block.rows * block.vectors + 2 > registers:
        rule = f"rows * vectors + 2 of at most {registers} vector registers"
        _refuse("vectors" if wanted.vectors is not None else "rows", rule, wanted)


def _check_tiles(found: Decisions, wanted: KernelChoice) -> None:
    assert wanted.tiles is not None
    stages = found.nest.stages
    for c, ((extent, _), size) in enumerate(zip(found.boxes, wanted.tiles, strict=True)):
        most = extent if isinstance(extent, int) else MOST_TURNS
        if not 1 <= size <= max(most, 1):
            _refuse("tiles", f"1 to the {most} turns of loop {c}", wanted)
        if found.windows is not None:
            fixed = found.windows.box[stages[0].parallel_dims[c]]
            if size != fixed:
                _refuse("tiles", f"{fixed} of loop {c}, of which a box has all or one", wanted)
            continue
        unit = _unit(found, c)
        if size % unit and size != extent and not (size == 1 and len(stages) > 1):
            _refuse("tiles", f"a multiple of {unit} lanes, or all, of loop {c}", wanted)


def _unit(found: Decisions, c: int) -> int:
    """Return the turns of a common loop that boxes have a multiple of: whole panels of lanes."""
    unit = 1
    for common, schedule in zip(found.nest.common, found.in_box, strict=True):
        if schedule.lanes == common[c]:
            unit = max(unit, schedule.panel)
    return unit


def _check_memory(rule: Decisions, found: Decisions, wanted: KernelChoice) -> None:
    """Check that what a box keeps of its own is no larger than the caches, or than by the rules."""
    nest, target, blocking = found.nest, found.target, found.blocking
    stage = nest.stages[0]
    if found.windows is not None:
        held, usual = found.windows.bytes, rule.windows.bytes if rule.windows is not None else 0
        if held > max(target.l2_bytes, usual):
            _refuse("tiles", f"windows of at most {target.l2_bytes} bytes in a box", wanted)
    if len(nest.stages) > 1:
        usual = private_bytes(nest, rule.boxes)
        if private_bytes(nest, found.boxes) > max(target.l2_bytes, usual):
            _refuse("tiles", f"what fits the {target.l2_bytes} bytes of the second cache", wanted)
    if blocking is None:
        for name in ("chunks", "copied"):
            if any(wanted.chunks or ()) if name == "chunks" else wanted.copied:
                _refuse(name, "no more than one chunk with these lanes", wanted)
        return
    if wanted.chunks is not None and set(blocking.chunks) & whole_taps(stage, found.schedules[0]):
        _refuse("chunks", "0 for the taps along the rows", wanted)
    if blocking.sums_apart:
        held = sums_size(stage, blocking.box) * _bytes(stage.outputs[0])
        if held > max(target.last_cache_bytes // 4, 1):
            rule_text = f"sums of at most {target.last_cache_bytes // 4} bytes in a box"
            _refuse("tiles" if wanted.tiles is not None else "chunks", rule_text, wanted)
    if wanted.copied and blocking.copied is None:
        _refuse("copied", "rows that are cut in chunks and dense along them", wanted)
    if blocking.copied is not None:
        x = stage.inputs[blocking.copied]
        assert isinstance(x, Access)
        if rows_size(stage, blocking) * _bytes(x) > target.l2_bytes:
            _refuse("tiles" if wanted.tiles is not None else "chunks", _ROWS_RULE, wanted)


_ROWS_RULE = "copied rows of a box and chunk that fit the second cache level"


def can_copy(stage: Stage, schedule: Schedule, chunks: dict[int, int]) -> bool:
    """Tell whether a box could copy its rows."""
    inputs = [x for x in stage.inputs if isinstance(x, Access)]
    assert schedule.lanes is not None and schedule.row_dim is not None
    rows = [x for x in inputs if x.moves(schedule.row_dim) and not x.moves(schedule.lanes)]
    return rows_to_copy(stage, rows, chunks) is not None


def _bytes(x: Access) -> int:
    return max(1, int(x.element.width) // 8)


def _refuse(name: str, rule: str, wanted: KernelChoice) -> NoReturn:
    raise MetadefError(
        f"metadef.choice: field '{name}': expected {rule}, got {wanted.to_data()[name]}"
        + (f" in {wanted.to_data()}" if len(wanted.said) > 1 else "")
    )
