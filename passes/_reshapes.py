"""What a reshape does to single dims: which groups of dims it merges or splits."""

from __future__ import annotations

from collections.abc import Sequence

from metadef import ir
from metadef.dialects.metadef.ops.reshape import reshape
from metadef.dialects.metadef.shapes import ONE, shape_of
from metadef.symbolic import Dim, DimLike

from ._buffers import RESHAPE, owner_of
from ._permutations import Perm, is_identity

Group = tuple[range, range]


def groups_of(before: Sequence[Dim], after: Sequence[Dim]) -> list[Group] | None:
    """Return the smallest runs of dims of equal product, in order, or None if that is not known."""
    groups: list[Group] = []
    i = j = 0
    while i < len(before) and j < len(after):
        first_i, first_j = i, j
        a, b = before[i], after[j]
        i, j = i + 1, j + 1
        while a != b:
            if divides(b, a) and j < len(after):
                b, j = b * after[j], j + 1
            elif divides(a, b) and i < len(before):
                a, i = a * before[i], i + 1
            else:
                return None
        groups.append((range(first_i, i), range(first_j, j)))
    if any(d != ONE for d in [*before[i:], *after[j:]]) or not groups:
        return None
    last_before, last_after = groups[-1]
    groups[-1] = (range(last_before.start, len(before)), range(last_after.start, len(after)))
    return groups


def reshaped(x: ir.Value, dims: Sequence[DimLike]) -> ir.Value:
    """Return x with other dims, without a reshape of a reshape, or x itself where it has them."""
    wanted = tuple(Dim.of(d) for d in dims)
    while shape_of(x).dims != wanted and (owner := owner_of(x)) is not None:
        if owner.name != RESHAPE:
            break
        x = owner.operands[0]
    return x if shape_of(x).dims == wanted else reshape(x, wanted)


def divides(a: Dim, b: Dim) -> bool:
    """Return whether a is known to divide b, neither being 0."""
    if (a.is_static and a.value == 0) or (b.is_static and b.value == 0):
        return False
    return b // a * a == b


def push_through(
    perm: Perm, before: Sequence[Dim], after: Sequence[Dim]
) -> tuple[list[Dim], Perm] | None:
    """Rewrite `reshape(transpose(x, perm))` as `transpose(reshape(x, dims), outer)`.

    `before` and `after` are the reshape's dims. Returns (dims, outer), or None when a group of
    merged dims is not a run of x's own dims.
    """
    groups = groups_of(before, after)
    if groups is None:
        return None
    for merged, _ in groups:
        axes = [perm[i] for i in merged]
        if axes != list(range(axes[0], axes[0] + len(axes))):
            return None
    dims: list[Dim] = []
    position = [0] * len(after)
    for _, out in sorted(groups, key=lambda g: perm[g[0].start]):
        for j in out:
            position[j] = len(dims)
            dims.append(after[j])
    return dims, tuple(position)


def moves_only_ones(perm: Sequence[int], dims: Sequence[Dim]) -> bool:
    """Return whether the transpose of `dims` by `perm` keeps the row-major order of elements."""
    moved = [p for p in perm if dims[p] != ONE]
    return is_identity(perm) or moved == sorted(moved)
