"""Views of values: transpose, slice and reshape by rewriting the maps of an expression's leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from metadef import ir
from metadef.symbolic import Dim, product, same

from .expression import (
    AffineExprs,
    Constant,
    Expr,
    Extract,
    Index,
    Load,
    Tiled,
    Value,
    apply,
    compose,
    constant_expr,
    dim_exprs,
    index,
    rebuild,
    size,
    substitute,
)

if TYPE_CHECKING:
    from .kernel import Kernel

Dims = Sequence[Dim]
#: dims of the source and of the target that hold the same elements
Group = tuple[list[int], list[int]]


class NotAView(Exception):
    """No rewriting of the leaves expresses the view; the value must be stored first."""


def transpose(value: Value, perm: Sequence[int]) -> Value:
    """Return `value` with result dim i taken from dim perm[i]."""
    positions = list(dim_exprs(len(perm)))
    for i, p in enumerate(perm):
        positions[p] = ir.AffineExpr.get_dim(i)
    dims = tuple(value.dims[p] for p in perm)
    return Value(dims, substitute(value.expr, positions, len(perm)))


def unpack(value: Value, dim: int, at: int, extent: int) -> Value:
    """Return the view of panels that `metadef.unpack` says: `n` is read at (n // w, n % w)."""
    rank = len(value.dims) - 1
    width = value.dims[-1].value
    n = ir.AffineExpr.get_dim(dim)
    others = [ir.AffineExpr.get_dim(i) for i in range(rank) if i != dim]
    panel = ir.AffineExpr.get_floor_div(n, width)
    lane = ir.AffineExpr.get_mod(n, width)
    kept = [d for i, d in enumerate(value.dims[:-1]) if i != at]
    dims = (*kept[:dim], Dim.of(extent), *kept[dim:])
    return Value(dims, substitute(value.expr, [*others[:at], panel, *others[at:], lane], rank))


def slice_dim(kernel: Kernel, value: Value, dim: int, start: Dim, step: int, extent: Dim) -> Value:
    """Return `extent` elements of `dim` from `start` on, `step` apart.

    Raises:
        NotAView: a leaf moves along `dim` in a way that a symbolic start cannot be added to.
    """
    rank = len(value.dims)
    dims = tuple(extent if i == dim else d for i, d in enumerate(value.dims))
    if any(same(d, 0) for d in dims):
        return Value(dims, Constant(value.element, 0))
    along = ir.AffineExpr.get_dim(dim)
    positions = list(dim_exprs(rank))
    positions[dim] = along * step + (start.value if start.is_static else 0)

    def leaf(node: Expr) -> Expr:
        if isinstance(node, Load):
            if not any(_uses(e, dim, rank) for e in node.map):
                return node
            plain = [p for p, e in enumerate(node.map) if e == along]
            if len(plain) == 1 and (step == 1 or (step > 0 and not start.is_static)):
                return _slice_load(kernel, node, plain[0], start, step, extent)
            if start.is_static:
                return replace(node, map=tuple(compose(e, positions, rank) for e in node.map))
            indices = [_shifted(e, dim, start, positions, rank) for e in node.map]
            return Extract(node.element, node.tensor, tuple(indices))
        if isinstance(node, Index):
            return _shifted(node.position, dim, start, positions, rank)
        if isinstance(node, Tiled):
            raise NotAView
        return node

    return Value(dims, rebuild([value.expr], leaf)[0])


def _slice_load(kernel: Kernel, node: Load, at: int, start: Dim, step: int, extent: Dim) -> Load:
    """Return a load from a view of the tensor: a plain dim must cover its tensor's dim."""
    if start == Dim.of(0) and step == 1 and extent == node.dims[at]:
        return node
    starts = [start if p == at else Dim.of(0) for p in range(len(node.dims))]
    dims = tuple(extent if p == at else d for p, d in enumerate(node.dims))
    steps = [step if p == at else 1 for p in range(len(node.dims))]
    tensor = kernel.extract_slice(node.tensor, starts, dims, steps)
    return replace(node, tensor=tensor, dims=dims)


def _shifted(
    expr: ir.AffineExpr, dim: int, start: Dim, positions: Sequence[ir.AffineExpr], rank: int
) -> Expr:
    """Return an index expression moved by a slice, as a computed index if `start` is symbolic."""
    moved = index(compose(expr, positions, rank))
    if start.is_static or not _uses(expr, dim, rank):
        return moved
    if expr != ir.AffineExpr.get_dim(dim):
        raise NotAView
    return apply("add", moved, size(start))


def _uses(expr: ir.AffineExpr, dim: int, rank: int) -> bool:
    shifted = list(dim_exprs(rank))
    shifted[dim] = ir.AffineExpr.get_dim(rank)
    return compose(expr, shifted, rank + 1) != expr


def reshape(kernel: Kernel, value: Value, dims: Dims) -> Value:
    """Return `value` with the same elements in row-major order under `dims`.

    Raises:
        NotAView: a leaf does not hold the merged dims side by side.
    """
    dims = tuple(dims)
    if any(same(d, 0) for d in dims):
        return Value(dims, Constant(value.element, 0))
    groups = reshape_groups(value.dims, dims)
    rank = len(dims)
    # Dims of size 1 and dims renamed or split by constants have a position in the new space.
    positions: list[ir.AffineExpr | None] = [constant_expr(0)] * len(value.dims)
    for source, target in groups:
        for s in source:
            positions[s] = None
        if len(source) == 1:
            positions[source[0]] = _linear(target, dims)

    def leaf(node: Expr) -> Expr:
        if isinstance(node, Load):
            return _reshape_load(kernel, node, value.dims, dims, groups, positions)
        if isinstance(node, Index):
            return index(_composed(node.position, positions, len(value.dims), rank))
        if isinstance(node, Tiled):
            raise NotAView
        return node

    return Value(dims, rebuild([value.expr], leaf)[0])


def reshape_groups(source: Dims, target: Dims) -> list[Group]:
    """Split a reshape into the smallest groups of dims with equal products, without unit dims."""
    rest_s = [i for i, d in enumerate(source) if not same(d, 1)]
    rest_t = [i for i, d in enumerate(target) if not same(d, 1)]
    groups: list[Group] = []
    group_s: list[int] = []
    for s in rest_s:
        group_s = [*group_s, s]
        have = product([source[i] for i in group_s])
        for j in range(1, len(rest_t) + 1):
            if product([target[i] for i in rest_t[:j]]) == have:
                groups.append((group_s, rest_t[:j]))
                group_s, rest_t = [], rest_t[j:]
                break
    if (group_s or rest_t) and groups and not (group_s and rest_t):
        last_s, last_t = groups.pop()
        group_s, rest_t = last_s + group_s, last_t + rest_t
    if group_s or rest_t:
        groups.append((group_s, rest_t))
    return groups


def reshape_tensor(kernel: Kernel, tensor: ir.Value, source: Dims, target: Dims) -> ir.Value:
    """Return a dense tensor under other dims: one collapse_shape and one expand_shape at most."""
    if tuple(source) == tuple(target):
        return tensor
    if any(same(d, 0) for d in source):
        element = ir.RankedTensorType(tensor.type).element_type
        return kernel.empty(target, element)
    groups = reshape_groups(source, target)
    merged = [product([source[i] for i in s]) for s, _ in groups]
    if len(merged) < len(source):
        parts = _contiguous([s for s, _ in groups], len(source))
        tensor = kernel.regroup(tensor, parts, merged)
    if len(merged) < len(target):
        parts = _contiguous([t for _, t in groups], len(target))
        tensor = kernel.regroup(tensor, parts, target)
    return tensor


def _contiguous(groups: list[list[int]], rank: int) -> list[list[int]]:
    """Extend groups of ascending dims to cover all of `rank` dims (the others have size 1)."""
    if not groups:
        return []
    starts = [0] + [g[0] for g in groups[1:]]
    ends = starts[1:] + [rank]
    return [list(range(a, b)) for a, b in zip(starts, ends, strict=True)]


def _linear(target: list[int], dims: Dims) -> ir.AffineExpr | None:
    """Return the row-major position in the `target` dims, or None if an extent is symbolic."""
    position = constant_expr(0)
    for i, t in enumerate(target):
        if i and not dims[t].is_static:
            return None
        position = position * (dims[t].value if i else 1) + ir.AffineExpr.get_dim(t)
    return position


def _composed(
    expr: ir.AffineExpr, positions: Sequence[ir.AffineExpr | None], old_rank: int, rank: int
) -> ir.AffineExpr:
    if any(p is None and _uses(expr, i, old_rank) for i, p in enumerate(positions)):
        raise NotAView
    return compose(expr, [p if p is not None else constant_expr(0) for p in positions], rank)


def _reshape_load(
    kernel: Kernel,
    node: Load,
    source: Dims,
    target: Dims,
    groups: list[Group],
    positions: Sequence[ir.AffineExpr | None],
) -> Load:
    """Return the load with tensor dims merged and split where a group changes them."""
    parts: list[list[int]] = [[p] for p in range(len(node.map))]
    merged: list[Dim] = list(node.dims)
    maps: list[tuple[AffineExprs, tuple[Dim, ...]] | None] = [None] * len(node.map)
    for s_dims, t_dims in groups:
        if len(s_dims) == 1 and len(t_dims) == 1:
            continue
        run = _run_of(node, s_dims)
        if run is None:
            continue
        if len(s_dims) == 1 and node.dims[run[0]] != source[s_dims[0]]:
            continue
        first = run[0]
        parts[first] = list(range(first, run[-1] + 1))
        for p in parts[first][1:]:
            parts[p] = []
        merged[first] = product([source[s] for s in s_dims])
        exprs = tuple(ir.AffineExpr.get_dim(t) for t in t_dims)
        maps[first] = exprs, tuple(target[t] for t in t_dims)
    new_maps: list[ir.AffineExpr] = []
    new_dims: list[Dim] = []
    split: list[list[int]] = []
    for p, part in enumerate(parts):
        if not part:
            continue
        known = maps[p]
        if known is None:
            known = (
                (_composed(node.map[p], positions, len(source), len(target)),),
                (node.dims[p],),
            )
        split.append(list(range(len(new_dims), len(new_dims) + len(known[0]))))
        new_maps += known[0]
        new_dims += known[1]
    kept = [p for p, part in enumerate(parts) if part]
    tensor = node.tensor
    if len(kept) < len(parts):
        tensor = kernel.regroup(tensor, [parts[p] for p in kept], [merged[p] for p in kept])
    if len(new_dims) > len(kept):
        tensor = kernel.regroup(tensor, split, new_dims)
    return Load(node.element, tensor, tuple(new_dims), tuple(new_maps))


def _run_of(node: Load, dims: list[int]) -> list[int] | None:
    """Return the tensor dims that are exactly `dims`, side by side (unit dims between), or None."""
    wanted = [ir.AffineExpr.get_dim(d) for d in dims]
    found = [p for p, e in enumerate(node.map) if e in wanted]
    if [node.map[p] for p in found] != wanted:
        return None
    for p in range(found[0], found[-1] + 1):
        if p not in found and not same(node.dims[p], 1):
            return None
    return list(range(found[0], found[-1] + 1))
