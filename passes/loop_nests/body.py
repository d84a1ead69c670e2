"""Evaluate the scalar body of a structured op on whole vectors of lanes.

Values that are the same in every lane stay scalar; a value that counts up by one from lane to lane
is kept as its first lane, so that an index computed from it still reads contiguous memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from metadef import ir

from .index_math import value as index_value

# What a function like exp becomes, and the functions that are one instruction.
_FUNCTION_OPS = 16
#: more instructions than this make a body heavy
HEAVY_BODY_OPS = 12
_SHORT = frozenset({"math.fma", "math.sqrt", "math.absf", "math.floor", "math.ceil", "math.trunc"})


@dataclass(frozen=True)
class Lanes:
    """The lanes of one vector: `width` of them (1: scalar code), `mask` where some are inactive.

    `active` is the number of active lanes when it is known while compiling.
    """

    width: int
    mask: ir.Value | None = None
    active: int | None = None

    def type(self, element: ir.Type) -> ir.Type:
        return element if self.width == 1 else ir.VectorType.get([self.width], element)


@dataclass(frozen=True)
class Val:
    """A body value: `uniform` over lanes, `iota` (a first lane, then counting up), or a vector."""

    kind: str
    value: ir.Value

    def vector(self, lanes: Lanes) -> ir.Value:
        """Return the value as a vector of the lanes (as itself in scalar code)."""
        if lanes.width == 1 or self.kind == "vector":
            return self.value
        type_ = ir.VectorType.get([lanes.width], self.value.type)
        spread = ir.vector.broadcast(type_, self.value)
        if self.kind == "uniform":
            return spread
        return ir.arith.addi(spread, ir.vector.step(type_))


Load = Callable[[ir.Value, list[Val], Lanes], Val]


def evaluate_body(
    block: ir.Block,
    arguments: list[Val],
    index_of: Callable[[int], Val],
    load: Load,
    lanes: Lanes,
) -> list[Val]:
    """Build the body's ops on `lanes` and return what it yields.

    `index_of(d)` gives `linalg.index d`; `load(memref, indices, lanes)` reads `memref.load`.
    A product added to an output's running value becomes one fused multiply-add.
    """
    fused = _fused_products(block, len(arguments))
    values: dict[ir.Value, Val] = dict(zip(block.arguments, arguments, strict=True))

    def lookup(v: ir.Value) -> Val:
        return values[v] if v in values else Val("uniform", v)

    for view in block.operations:
        op = view.operation
        if op.name == "linalg.yield":
            return [lookup(v) for v in op.operands]
        if op.name == "linalg.index":
            values[op.results[0]] = index_of(ir.IntegerAttr(op.attributes["dim"]).value)
            continue
        if op.name == "memref.load":
            indices = [lookup(v) for v in list(op.operands)[1:]]
            values[op.results[0]] = load(op.operands[0], indices, lanes)
            continue
        if op in fused.values():
            continue
        if op in fused:
            values[op.results[0]] = _fma(op, fused[op], lookup, lanes)
            continue
        operands = [lookup(v) for v in op.operands]
        if op.regions or lanes.width == 1 or all(o.kind == "uniform" for o in operands):
            assert lanes.width == 1 or not op.regions, f"{op.name} in vector code"
            clone = _clone(op, values)
            for old, new in zip(op.results, clone.results, strict=True):
                values[old] = Val("uniform", new)
            continue
        values[op.results[0]] = _counting(op, operands) or _vector_op(op, operands, lanes)
    raise AssertionError("a linalg body ends in linalg.yield")


def _fused_products(block: ir.Block, n_arguments: int) -> dict[ir.Operation, ir.Operation]:
    """Return {addf: mulf} where a body adds a product, used once, to what it yields back."""
    pairs: dict[ir.Operation, ir.Operation] = {}
    for view in block.operations:
        op = view.operation
        if op.name != "arith.addf" or not isinstance(op.results[0].type, ir.F32Type | ir.F64Type):
            continue
        running = [v for v in op.operands if isinstance(v, ir.BlockArgument) and v.owner == block]
        for operand in op.operands:
            producer = None if isinstance(operand, ir.BlockArgument) else operand.owner
            if (
                running
                and isinstance(producer, ir.Operation | ir.OpView)
                and producer.operation.name == "arith.mulf"
                and producer.operation.block == block
                and len(list(operand.uses)) == 1
                and any(u.owner.operation.name == "linalg.yield" for u in op.results[0].uses)
            ):
                pairs[op] = producer.operation
    return pairs


def _fma(
    add: ir.Operation, product: ir.Operation, lookup: Callable[[ir.Value], Val], lanes: Lanes
) -> Val:
    running = next(v for v in add.operands if v != product.results[0])
    operands = [lookup(v) for v in (*product.operands, running)]
    if all(o.kind == "uniform" for o in operands):
        return Val("uniform", ir.math.fma(*[o.value for o in operands]))
    return Val("vector", ir.math.fma(*[o.vector(lanes) for o in operands]))


def is_vectorizable(block: ir.Block) -> bool:
    """Tell whether every op of a body has a form on vectors (and cannot trap in idle lanes)."""
    for view in block.operations:
        op = view.operation
        if op.regions or not (
            op.name.startswith(("arith.", "math."))
            or op.name in ("linalg.yield", "linalg.index", "memref.load")
        ):
            return False
        if op.name in ("arith.divsi", "arith.remsi", "arith.divui", "arith.remui",
                       "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui"):  # fmt: skip
            return False
        if len(op.results) > 1:
            return False
        if op.name in ("math.fpowi", "math.ipowi"):
            return False
    return True


def instructions(body: ir.Block) -> int:
    """Return about how many instructions a body becomes."""
    names = [op.operation.name for op in body.operations]
    return sum(1 if n in _SHORT or not n.startswith("math.") else _FUNCTION_OPS for n in names)


def varying(block: ir.Block, arguments: set[int], dims: set[int]) -> set[ir.Value]:
    """Return the values of a body that come from some of its arguments, by number, or from
    `linalg.index` of some dims."""
    found = {v for k, v in enumerate(block.arguments) if k in arguments}
    for view in block.operations:
        op = view.operation
        if op.name == "linalg.index":
            varies = ir.IntegerAttr(op.attributes["dim"]).value in dims
        else:
            varies = bool(op.regions) or any(v in found for v in op.operands)
        found.update(op.results if varies else ())
    return found


def values_of(block: ir.Block) -> set[ir.Value]:
    """Return the arguments of a body and all that it computes."""
    return {*block.arguments, *(r for op in block.operations for r in op.operation.results)}


def widest_bits(values: Iterable[ir.Value]) -> int:
    """Return the width of the widest data element among values (i1 and index apart)."""
    bits = [8]
    for v in values:
        type_ = v.type
        if isinstance(type_, ir.FloatType | ir.IntegerType) and type_.width > 1:
            bits.append(type_.width)
    return max(bits)


def _clone(op: ir.Operation, values: dict[ir.Value, Val]) -> ir.Operation:
    """Copy an op on scalars, its operands (and those of its regions) replaced."""
    clone = op.clone()
    _replace_operands(clone, op, values)
    return clone


def _replace_operands(clone: ir.Operation, op: ir.Operation, values: dict[ir.Value, Val]) -> None:
    for k, operand in enumerate(op.operands):
        if operand in values:
            clone.operands[k] = values[operand].value
    for new_region, region in zip(clone.regions, op.regions, strict=True):
        for new_block, block in zip(new_region, region, strict=True):
            for new_op, old_op in zip(new_block.operations, block.operations, strict=True):
                _replace_operands(new_op.operation, old_op.operation, values)


def _counting(op: ir.Operation, operands: list[Val]) -> Val | None:
    """Keep `iota + uniform` as an iota; index casts of it too."""
    kinds = [o.kind for o in operands]
    if op.name == "arith.addi" and sorted(kinds) == ["iota", "uniform"]:
        return Val("iota", ir.arith.addi(operands[0].value, operands[1].value))
    if op.name == "arith.subi" and kinds == ["iota", "uniform"]:
        return Val("iota", ir.arith.subi(operands[0].value, operands[1].value))
    if op.name in ("arith.index_cast", "arith.index_castui") and kinds == ["iota"]:
        return Val("iota", ir.arith.index_cast(op.results[0].type, operands[0].value))
    return None


def _vector_op(op: ir.Operation, operands: list[Val], lanes: Lanes) -> Val:
    values = [o.vector(lanes) for o in operands]
    if op.name == "arith.select" and operands[0].kind == "uniform":
        values[0] = operands[0].value
    result = ir.Operation.create(
        op.name,
        results=[ir.VectorType.get([lanes.width], op.results[0].type)],
        operands=values,
        attributes={name: op.attributes[name] for name in op.attributes},
    )
    return Val("vector", result.results[0])


def constant_splat(type_: ir.Type, number: float | int) -> ir.Value:
    """Build a constant of a scalar or vector type with every element `number`."""
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    attr: ir.Attribute
    if isinstance(element, ir.FloatType):
        attr = ir.FloatAttr.get(element, float(number))
    else:
        attr = ir.IntegerAttr.get(element, int(number))
    if isinstance(type_, ir.VectorType):
        attr = ir.DenseElementsAttr.get_splat(type_, attr)
    return ir.arith.constant(type_, attr)


def lane_index(base: ir.Value | int) -> Val:
    """Return the loop index of the lanes' dim: counts up from `base`."""
    return Val("iota", index_value(base))
