"""Decompositions of ops that torch has only as kernels, into ops that we model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

#: op -> decomposition; NotImplemented leaves the op to torch
COMPOSITE_OPS: dict[Any, Callable[..., Any]] = {}

#: `mode` compares each element with each other: longer rows stay with torch
_LONGEST_ROW = 4096


def _decomposes(op: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        COMPOSITE_OPS[op] = function
        return function

    return wrap


@_decomposes(aten.frexp.Tensor)
def _frexp(x: Tensor) -> Any:
    """Scale by a power of two in double precision, where no single-precision number is denormal."""
    if x.dtype == torch.float64:
        return NotImplemented
    wide = x.to(torch.float64)
    ordinary = (wide != 0) & wide.isfinite()
    exponent = torch.where(ordinary, wide.abs().log2().floor() + 1, 0.0)
    mantissa = wide * (-exponent).exp2()
    # The logarithm may be rounded past a power of two.
    over, under = mantissa.abs() >= 1, mantissa.abs() < 0.5
    exponent = exponent + over.to(torch.float64) - (under & ordinary).to(torch.float64)
    mantissa = torch.where(over, mantissa / 2, torch.where(under, mantissa * 2, mantissa))
    return torch.where(ordinary, mantissa, wide).to(x.dtype), exponent.to(torch.int32)


@_decomposes(aten.kthvalue.default)
def _kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Return a number and its place; that has no dim, which torch-mlir's verifier asks for."""
    return (x.clone(), x.new_zeros((), dtype=torch.int64)) if x.ndim == 0 else NotImplemented


@_decomposes(aten.count_nonzero.default)
def _count_nonzero(x: Tensor, dim: int | None = None) -> Any:
    """Count a number as none or one, for the same reason."""
    return (x != 0).to(torch.int64) if x.ndim == 0 else NotImplemented


@_decomposes(aten.count_nonzero.dim_IntList)
def _count_nonzero_of_dims(x: Tensor, dim: Sequence[int]) -> Any:
    return _count_nonzero(x)


@_decomposes(aten.mode.default)
def _mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """Count for each element those equal to it; the first most frequent of the sorted row."""
    if x.ndim == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    size = x.shape[dim]
    if not isinstance(size, int) or size > _LONGEST_ROW or size == 0:
        return NotImplemented
    x = x.movedim(dim, -1)
    ordered = x.sort(dim=-1)[0]
    counts = _equal(ordered.unsqueeze(-1), ordered.unsqueeze(-2)).sum(-1)
    values = ordered.gather(-1, counts.argmax(-1, keepdim=True))
    places = torch.arange(size, device=x.device)
    indices = torch.where(_equal(x, values), places, 0).amax(-1, keepdim=True)
    results = values.movedim(-1, dim), indices.movedim(-1, dim)
    return results if keepdim else (results[0].squeeze(dim), results[1].squeeze(dim))


def _equal(x: Tensor, y: Tensor) -> Tensor:
    """Say where elements are equal, or both NaN."""
    equal = x == y
    return equal | (x.isnan() & y.isnan()) if x.is_floating_point() else equal


@_decomposes(aten._pdist_forward.default)
def _pdist(x: Tensor, p: float = 2.0) -> Any:
    """Return the p-norm of the difference of each pair of rows of x [N, M]: [N (N - 1) / 2]."""
    count, width = x.shape
    if not isinstance(count, int) or not isinstance(width, int):
        return NotImplemented
    if count < 2 or width == 0:
        return x.new_zeros(max(count * (count - 1) // 2, 0))
    first, second = torch.triu_indices(count, count, 1, device=x.device).unbind(0)
    gap = x.index_select(0, first) - x.index_select(0, second)
    return torch.linalg.vector_norm(gap, p, dim=-1)


@_decomposes(aten.embedding_renorm.default)
def _embedding_renorm(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale the rows that are looked up down to `max_norm`."""
    rows = weight.new_zeros(weight.shape[0], dtype=torch.int64)
    flat = indices.reshape(-1).to(torch.int64)
    used = rows.scatter(0, flat, torch.ones_like(flat)).unsqueeze(-1) != 0
    norms = torch.linalg.vector_norm(weight, norm_type, dim=-1, keepdim=True)
    scaled = weight * (max_norm / (norms + 1e-7))
    return torch.where(used & (norms > max_norm), scaled, weight)


@_decomposes(aten.nonzero_static.default)
def _nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Any:
    """Scatter each place to the number of nonzeros before it; past the last one stands the fill."""
    if x.ndim == 0 or not all(isinstance(n, int) for n in (*x.shape, size)):
        return NotImplemented
    found = (x != 0).reshape(-1)
    rank = found.to(torch.int64).cumsum(0) - 1
    target = torch.where(found & (rank < size), rank, size)
    places = torch.arange(x.numel(), device=x.device)
    flat = places.new_full((size + 1,), -1).scatter(0, target, places)[:size]
    columns, stride = [], x.numel()
    for extent in x.shape:
        stride = stride // extent if extent else 0
        at = flat.div(stride, rounding_mode="floor") % extent if stride else flat
        columns.append(torch.where(flat < 0, fill_value, at))
    return torch.stack(columns, -1)


@_decomposes(aten.grid_sampler_3d.default)
def _grid_sampler_3d(
    x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool
) -> Any:
    """Sample x [N, C, D, H, W] at grid [N, d, h, w, (x y z)]: trilinear (0) or nearest (1)."""
    sizes = list(x.shape[2:])
    if interpolation not in (0, 1) or not all(isinstance(n, int) and n for n in sizes):
        return NotImplemented
    places = [
        _place(grid[..., 2 - i], size, padding, align_corners) for i, size in enumerate(sizes)
    ]
    if interpolation == 1:
        return _read(x, [p.round() for p in places], sizes)
    low = [p.floor() for p in places]
    total: Tensor | None = None
    for corner in range(8):
        bits = [corner >> i & 1 for i in range(3)]
        weight = torch.ones_like(places[0])
        for bit, place, start in zip(bits, places, low, strict=True):
            part = place - start
            weight = weight * (part if bit else 1 - part)
        value = _read(x, [a + bit for a, bit in zip(low, bits, strict=True)], sizes)
        value = value * weight.unsqueeze(1)
        total = value if total is None else total + value
    return total


def _place(c: Tensor, size: int, padding: int, align_corners: bool) -> Tensor:
    """Return the coordinate in elements for one in [-1, 1]; padding: zeros, border, reflection."""
    place = (c + 1) / 2 * (size - 1) if align_corners else ((c + 1) * size - 1) / 2
    if padding == 0:
        return place
    if padding == 2:
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span == 0:
            return torch.zeros_like(place)
        distance = (place - low).abs()
        rest, turns = distance.fmod(span), (distance / span).floor()
        place = torch.where(turns % 2 == 0, rest + low, span - rest + low)
    return place.clamp(0, size - 1)


def _read(x: Tensor, places: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Return x [N, C, ..] at whole places [N, ..]: [N, C, ..]; 0 outside."""
    inside: Tensor | None = None
    flat: Tensor | None = None
    for place, size in zip(places, sizes, strict=True):
        here = (place >= 0) & (place <= size - 1)
        inside = here if inside is None else inside & here
        at = place.clamp(0, size - 1).nan_to_num().to(torch.int64)
        flat = at if flat is None else flat * size + at
    assert inside is not None and flat is not None
    batch, channels = x.shape[:2]
    index = flat.reshape(batch, 1, -1).expand(batch, channels, -1)
    values = x.reshape(batch, channels, -1).gather(2, index)
    return torch.where(inside.unsqueeze(1), values.reshape(batch, channels, *flat.shape[1:]), 0.0)
