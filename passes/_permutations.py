"""Permutations of axes, as `transpose` has them: axis i of the result is axis `perm[i]` of x."""

from __future__ import annotations

from collections.abc import Sequence

Perm = tuple[int, ...]


def compose(inner: Sequence[int], outer: Sequence[int]) -> Perm:
    """Return the perm of `transpose(transpose(x, inner), outer)`."""
    return tuple(inner[o] for o in outer)


def inverse(perm: Sequence[int]) -> Perm:
    """Return the perm that undoes `perm`."""
    result = [0] * len(perm)
    for i, p in enumerate(perm):
        result[p] = i
    return tuple(result)


def is_identity(perm: Sequence[int]) -> bool:
    return list(perm) == list(range(len(perm)))


def swaps_last_two(perm: Sequence[int]) -> bool:
    """Return whether `perm` is the matrix transpose, batch axes kept."""
    n = len(perm)
    return n >= 2 and list(perm) == [*range(n - 2), n - 1, n - 2]


def to_channels_first(rank: int) -> Perm:
    """Return the perm from [N, spatial.., C] to [N, C, spatial..]."""
    return (0, rank - 1, *range(1, rank - 1))


def to_channels_last(rank: int) -> Perm:
    """Return the perm from [N, C, spatial..] to [N, spatial.., C]."""
    return (0, *range(2, rank), 1)
