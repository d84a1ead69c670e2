"""torch-mlir's private `tm_tensor` ops (scan, scatter, sort, topk) as scalar loops on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metadef import ir
from metadef.diagnostics import UnsupportedOpError

from .tensor_rewrites import dim_of

Body = Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]]


def lower_tm_tensor(function: ir.OpView) -> None:
    """Replace every tm_tensor op of a function.

    Raises:
        UnsupportedOpError: the op has no lowering.
    """
    lowerings = {
        "tm_tensor.scan": _lower_scan,
        "tm_tensor.scatter": _lower_scatter,
        "tm_tensor.sort": _lower_sort,
        "tm_tensor.topk": _lower_topk,
    }
    for op in list(ir.operations(function)):
        name = op.operation.name
        if not name.startswith("tm_tensor.") or name == "tm_tensor.yield":
            continue
        if name not in lowerings:
            raise UnsupportedOpError(f"torch-mlir leaves '{name}', which has no lowering")
        with ir.InsertionPoint(op), op.location:
            new = lowerings[name](op)
        for old, value in zip(op.operation.results, new, strict=True):
            old.replace_all_uses_with(value)
        op.operation.erase()


def _index(value: int) -> ir.Value:
    return ir.arith.constant(ir.IndexType.get(), value)


def _nest(extents: Sequence[ir.Value], carried: Sequence[ir.Value], body: Body) -> list[ir.Value]:
    """Emit loops over `extents`, the last innermost, that carry values; return the last ones."""
    zero, one = _index(0), _index(1)

    def level(indices: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        if len(indices) == len(extents):
            return body(indices, values)
        loop = ir.scf.ForOp(zero, extents[len(indices)], one, values)
        with ir.InsertionPoint(loop.body):
            inner = level([*indices, loop.induction_variable], list(loop.inner_iter_args))
            ir.scf.yield_(inner)
        return list(loop.results)

    return level([], list(carried))


def _read(tensor: ir.Value, at: Sequence[ir.Value]) -> ir.Value:
    element = ir.RankedTensorType(tensor.type).element_type
    return ir.Operation.create("tensor.extract", results=[element], operands=[tensor, *at]).result


def _write(value: ir.Value, tensor: ir.Value, at: Sequence[ir.Value]) -> ir.Value:
    return ir.Operation.create(
        "tensor.insert", results=[tensor.type], operands=[value, tensor, *at]
    ).result


def _inline(op: ir.OpView, arguments: Sequence[ir.Value]) -> ir.Value:
    """Emit a copy of the op's region on `arguments`; return what it yields."""
    block = op.operation.regions[0].blocks[0]
    known: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))
    *body, terminator = list(block.operations)
    for inside in body:
        copy = inside.operation.clone()
        for i, operand in enumerate(inside.operation.operands):
            copy.operands[i] = known.get(operand, operand)
        known.update(zip(inside.operation.results, copy.results, strict=True))
    value = terminator.operation.operands[0]
    return known.get(value, value)


def _split(extents: list[ir.Value], dim: int) -> tuple[list[ir.Value], ir.Value]:
    return [*extents[:dim], *extents[dim + 1 :]], extents[dim]


def _at(others: list[ir.Value], dim: int, along: ir.Value) -> list[ir.Value]:
    return [*others[:dim], along, *others[dim:]]


def _extents(tensor: ir.Value) -> list[ir.Value]:
    return [dim_of(tensor, i) for i in range(ir.RankedTensorType(tensor.type).rank)]


def _integer(op: ir.OpView, name: str) -> int:
    return ir.IntegerAttr(op.operation.attributes[name]).value


def _lower_scan(op: ir.OpView) -> list[ir.Value]:
    """Running values: inclusive starts at the first element, exclusive at the accumulator."""
    source, output, accumulator = op.operation.operands
    dim = _integer(op, "dimension")
    inclusive = ir.BoolAttr(op.operation.attributes["inclusive"]).value
    others, extent = _split(_extents(source), dim)
    zero = _index(0)

    def row(outer: list[ir.Value], tensors: list[ir.Value]) -> list[ir.Value]:
        start = _read(tensors[1], outer)

        def step(i: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
            at = _at(outer, dim, i[0])
            value = _read(source, at)
            total = _inline(op, [carried[1], value])
            if not inclusive:
                return [_write(carried[1], carried[0], at), total]
            first = ir.arith.cmpi(ir.arith.CmpIPredicate.eq, i[0], zero)
            total = ir.arith.select(first, value, total)
            return [_write(total, carried[0], at), total]

        written, last = _nest([extent], [tensors[0], start], step)
        return [written, _write(last, tensors[1], outer)]

    return _nest(others, [output, accumulator], row)


def _lower_scatter(op: ir.OpView) -> list[ir.Value]:
    """Update i (of a window of dims) goes where row i of the indices says, one after the other."""
    updates, indices, original = op.operation.operands
    where = list(ir.DenseI64ArrayAttr(op.operation.attributes["dimension_map"]))
    rank = ir.RankedTensorType(original.type).rank
    extents = _extents(original)
    zero, one = _index(0), _index(1)

    def body(loops: list[ir.Value], tensors: list[ir.Value]) -> list[ir.Value]:
        window = loops[1:]
        starts: list[ir.Value | None] = [None] * (rank - len(window)) + window
        for k, dim in enumerate(where):
            index = ir.arith.index_cast(ir.IndexType.get(), _read(indices, [loops[0], _index(k)]))
            inner = starts[dim]
            starts[dim] = index if inner is None else ir.arith.addi(index, inner)
        at = [_clamped(s, e, zero, one) for s, e in zip(starts, extents, strict=True) if s]
        value = _inline(op, [_read(updates, loops), _read(tensors[0], at)])
        return [_write(value, tensors[0], at)]

    return _nest(_extents(updates), [original], body)


def _clamped(index: ir.Value, extent: ir.Value, zero: ir.Value, one: ir.Value) -> ir.Value:
    """Keep an index inside its bounds, whatever the model's data says."""
    return ir.arith.maxsi(ir.arith.minsi(index, ir.arith.subi(extent, one)), zero)


def _lower_sort(op: ir.OpView) -> list[ir.Value]:
    """Exchange neighbours that are out of order, n passes: stable, for the short rows it meets."""
    tensors = list(op.operation.operands)
    dim = _integer(op, "dimension")
    others, extent = _split(_extents(tensors[0]), dim)
    one = _index(1)
    pairs = ir.arith.subi(extent, one)

    def exchange(loops: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        outer, j = loops[:-2], loops[-1]
        left, right = _at(outer, dim, j), _at(outer, dim, ir.arith.addi(j, one))
        a, b = [_read(t, left) for t in carried], [_read(t, right) for t in carried]
        ordered = _inline(op, [v for pair in zip(a, b, strict=True) for v in pair])
        swapped = _inline(op, [v for pair in zip(b, a, strict=True) for v in pair])
        keep = ir.arith.ori(ordered, ir.arith.xori(swapped, ir.arith.constant(swapped.type, 1)))
        new = []
        for t, x, y in zip(carried, a, b, strict=True):
            t = _write(ir.arith.select(keep, x, y), t, left)
            new.append(_write(ir.arith.select(keep, y, x), t, right))
        return new

    return _nest([*others, extent, pairs], tensors, exchange)


def _lower_topk(op: ir.OpView) -> list[ir.Value]:
    """Insert each element into the k best so far, which the outputs hold in order."""
    segments = list(ir.DenseI32ArrayAttr(op.operation.attributes["operandSegmentSizes"]))
    operands = list(op.operation.operands)
    values = operands[0]
    positions = operands[1] if segments[0] == 2 else None
    outputs = operands[segments[0] :]
    dim = _integer(op, "dimension")
    others, extent = _split(_extents(values), dim)
    count = dim_of(outputs[0], dim)
    index_type = ir.RankedTensorType(outputs[1].type).element_type

    def element(loops: list[ir.Value], tensors: list[ir.Value]) -> list[ir.Value]:
        outer, i = loops[:-1], loops[-1]
        at = _at(outer, dim, i)
        position = ir.arith.index_cast(index_type, i) if positions is None else _read(positions, at)

        def place(k: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
            value, number, best, numbers = carried
            slot = _at(outer, dim, k[0])
            held, held_number = _read(best, slot), _read(numbers, slot)
            better, worse = _inline(op, [value, held]), _inline(op, [held, value])
            wins = ir.arith.andi(better, ir.arith.xori(worse, ir.arith.constant(worse.type, 1)))
            best = _write(ir.arith.select(wins, value, held), best, slot)
            numbers = _write(ir.arith.select(wins, number, held_number), numbers, slot)
            rest = ir.arith.select(wins, held, value)
            return [rest, ir.arith.select(wins, held_number, number), best, numbers]

        return _nest([count], [_read(values, at), position, *tensors], place)[2:]

    return _nest([*others, extent], outputs, element)
