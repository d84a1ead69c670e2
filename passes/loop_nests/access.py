"""The address of one operand of a structured op as a function of the loop indices."""

from __future__ import annotations

from dataclasses import dataclass

from metadef import ir

from .index_math import Index, add, floordiv, mod, mul, scaled, value


@dataclass(frozen=True)
class Access:
    """Element address = offset + sum(strides[d] * i_d) + sum(stride * expr(i)) over `nonlinear`.

    `strides` has one entry for each loop dim (0: the operand does not move with it); `nonlinear`
    holds the affine results that are not linear (floordiv and mod terms, as packed panels have).
    `padded` memory may be read in whole vectors, whatever lanes count.
    """

    buffer: ir.Value
    element: ir.Type
    offset: Index
    strides: tuple[Index, ...]
    nonlinear: tuple[tuple[ir.AffineExpr, Index], ...] = ()
    padded: bool = False

    def moves(self, dim: int) -> bool:
        """Tell whether the address depends on loop dim `dim`."""
        stride = self.strides[dim]
        return not (isinstance(stride, int) and stride == 0) or self.is_nonlinear(dim)

    def is_nonlinear(self, dim: int) -> bool:
        return any(dim in dims_in(e) for e, _ in self.nonlinear)

    def panel(self, dim: int) -> tuple[int, Index] | None:
        """Return (width, stride inside) when `dim` enters as a packed panel, (d // w, d % w)."""
        width: int | None = None
        inner: Index = 0
        for expr, stride in self.nonlinear:
            if dim not in dims_in(expr):
                continue
            if isinstance(expr, (ir.AffineFloorDivExpr, ir.AffineModExpr)):
                lhs, rhs = ir.AffineBinaryExpr(expr).lhs, ir.AffineBinaryExpr(expr).rhs
                if isinstance(lhs, ir.AffineDimExpr) and isinstance(rhs, ir.AffineConstantExpr):
                    if width not in (None, rhs.value):
                        return None
                    width = rhs.value
                    if isinstance(expr, ir.AffineModExpr):
                        inner = stride
                    continue
            return None
        moves = not (isinstance(self.strides[dim], int) and self.strides[dim] == 0)
        return None if width is None or moves else (width, inner)

    def lane_stride(self, dim: int, block: int) -> Index | None:
        """Return the stride along `dim` inside blocks of `block` indices that start at a multiple
        of `block`, or None when it is not constant there."""
        if not self.is_nonlinear(dim):
            return self.strides[dim]
        panel = self.panel(dim)
        return panel[1] if panel is not None and panel[0] % block == 0 else None

    def lane_distance(self, dim: int, offset: Index, block: int) -> Index | None:
        """Return how far `offset` indices along `dim` are from the start of a block of `block`,
        which may be several packed panels side by side; None when that is not constant."""
        stride = self.lane_stride(dim, block)
        if stride is not None:
            return mul(offset, stride)
        panel = self.panel(dim)
        if panel is None or block % panel[0] or not isinstance(offset, int):
            return None
        width, inner = panel
        number, rest = divmod(offset, width)
        between = next(
            s
            for e, s in self.nonlinear
            if dim in dims_in(e) and isinstance(e, ir.AffineFloorDivExpr)
        )
        return add(mul(number, between), mul(rest, inner))

    def address(self, point: tuple[Index, ...]) -> Index:
        """Return the element address at the loop indices `point`."""
        total: Index = self.offset
        for i, stride in zip(point, self.strides, strict=True):
            total = add(total, scaled(i, stride))
        for expr, stride in self.nonlinear:
            total = add(total, mul(evaluate(expr, point), stride))
        return total


def dims_in(expr: ir.AffineExpr) -> set[int]:
    """Return the loop dims that an affine expression reads."""
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position}
    if isinstance(expr, ir.AffineConstantExpr):
        return set()
    assert not isinstance(expr, ir.AffineSymbolExpr), f"symbol in an indexing map: {expr}"
    binary = ir.AffineBinaryExpr(expr)
    return dims_in(binary.lhs) | dims_in(binary.rhs)


def linear_terms(expr: ir.AffineExpr) -> tuple[dict[int, int], int] | None:
    """Return ({dim: coefficient}, constant) of a linear expression, else None."""
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position: 1}, 0
    if isinstance(expr, ir.AffineConstantExpr):
        return {}, expr.value
    if isinstance(expr, (ir.AffineAddExpr, ir.AffineMulExpr)):
        binary = ir.AffineBinaryExpr(expr)
        lhs, rhs = linear_terms(binary.lhs), linear_terms(binary.rhs)
        if lhs is None or rhs is None:
            return None
        if isinstance(expr, ir.AffineAddExpr):
            terms = dict(lhs[0])
            for dim, coefficient in rhs[0].items():
                terms[dim] = terms.get(dim, 0) + coefficient
            return terms, lhs[1] + rhs[1]
        if rhs[0]:
            lhs, rhs = rhs, lhs
        if rhs[0]:
            return None
        return {d: c * rhs[1] for d, c in lhs[0].items()}, lhs[1] * rhs[1]
    return None


def evaluate(expr: ir.AffineExpr, point: tuple[Index, ...]) -> Index:
    """Evaluate an affine expression at loop indices."""
    if isinstance(expr, ir.AffineDimExpr):
        return point[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return int(expr.value)
    binary = ir.AffineBinaryExpr(expr)
    lhs, rhs = evaluate(binary.lhs, point), evaluate(binary.rhs, point)
    if isinstance(expr, ir.AffineAddExpr):
        return add(lhs, rhs)
    if isinstance(expr, ir.AffineMulExpr):
        return mul(lhs, rhs)
    if isinstance(expr, ir.AffineModExpr):
        return mod(lhs, rhs)
    assert isinstance(expr, ir.AffineFloorDivExpr), f"unexpected affine expression {expr}"
    return floordiv(lhs, rhs)


@dataclass(frozen=True)
class FlatBuffer:
    """A memref seen as rank 1 from its first element, with the strides of its dims."""

    flat: ir.Value
    offset: Index
    strides: tuple[Index, ...]
    sizes: tuple[Index, ...]


def flatten(buffer: ir.Value) -> FlatBuffer:
    """Build the rank-1 view of a memref (identity or strided layout) at the insertion point."""
    type_ = ir.MemRefType(buffer.type)
    rank = type_.rank
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes: list[Index] = [
        ir.memref.dim(buffer, value(d)) if n == dynamic else n for d, n in enumerate(type_.shape)
    ]
    static_strides, static_offset = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    strides: list[Index] = list(static_strides)
    offset: Index = static_offset
    identity = type_.affine_map.is_permutation and type_.layout == ir.AffineMapAttr.get(
        ir.AffineMap.get_identity(rank)
    )
    if identity:
        for d in range(rank - 2, -1, -1):
            if strides[d] == unknown:
                strides[d] = mul(strides[d + 1], sizes[d + 1])
        source, offset = buffer, 0
        flat_offset: Index = 0
    else:
        metadata = ir.memref.ExtractStridedMetadataOp(buffer)
        strides = [
            metadata.strides[d] if strides[d] == unknown else strides[d] for d in range(rank)
        ]
        source = metadata.base_buffer
        flat_offset = metadata.offset if offset == unknown else offset
        offset = flat_offset
    flat_type = ir.MemRefType.get([dynamic], type_.element_type, memory_space=type_.memory_space)
    flat = ir.memref.reinterpret_cast(
        flat_type, source, [], [value(2**40)], [], [0], [dynamic], [1]
    )
    return FlatBuffer(flat, offset, tuple(strides), tuple(sizes))


def access(flat: FlatBuffer, element: ir.Type, map_: ir.AffineMap) -> Access:
    """Return the access of a buffer through an indexing map."""
    strides: list[Index] = [0] * map_.n_dims
    offset = flat.offset
    nonlinear: list[tuple[ir.AffineExpr, Index]] = []
    for expr, stride in zip(map_.results, flat.strides, strict=True):
        terms = linear_terms(expr)
        if terms is None:
            nonlinear.append((expr, stride))
            continue
        for dim, coefficient in terms[0].items():
            strides[dim] = add(strides[dim], mul(stride, coefficient))
        offset = add(offset, mul(stride, terms[1]))
    return Access(flat.flat, element, offset, tuple(strides), tuple(nonlinear))
