"""Views and movement of whole dims: reshape, slice, transpose, concat, pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.shapes import broadcast_dims
from metadef.symbolic import Dim, DimLike, product

from . import build
from .build import as_element, dims, rank, reshape, slice_, transpose, unsqueeze
from .call import Call, Tensor
from .registry import converts

Sizes = Sequence[Any]


def view_dims(call: Call, x: ir.Value, sizes: Sizes) -> list[DimLike]:
    """Return the dims of a view; the one -1 is what is left over."""
    if -1 not in sizes:
        return list(sizes)
    if call.dims is not None:
        return list(call.dims)
    at = list(sizes).index(-1)
    rest = product([s for i, s in enumerate(sizes) if i != at])
    return [product(dims(x)) // rest if i == at else s for i, s in enumerate(sizes)]


@converts("aten.view", "aten.reshape", "aten._unsafe_view", "aten._reshape_copy", "aten.view_copy")
def view(call: Call, x: ir.Value, sizes: Sizes) -> ir.Value:
    return reshape(x, view_dims(call, x, sizes))


@converts("aten._reshape_alias", "aten._reshape_alias_copy")
def reshape_alias(call: Call, x: ir.Value, sizes: Sizes, strides: Sizes) -> ir.Value:
    return reshape(x, view_dims(call, x, sizes))


@converts("aten.flatten.using_ints")
def flatten(call: Call, x: ir.Value, start: int, end: int) -> ir.Value:
    size = dims(x)
    if not size:
        return reshape(x, [1])
    start, end = start % len(size), end % len(size)
    return reshape(x, [*size[:start], product(size[start : end + 1]), *size[end + 1 :]])


@converts("aten.ravel")
def ravel(call: Call, x: ir.Value) -> ir.Value:
    return reshape(x, [product(dims(x))])


@converts("aten.unflatten.int", "prims.split_dim")
def unflatten(call: Call, x: ir.Value, dim: int, sizes: Any) -> ir.Value:
    size = dims(x)
    dim %= len(size)
    if isinstance(sizes, int | Dim):
        sizes = [sizes, size[dim] // sizes]
    if -1 in sizes:
        rest = product([s for s in sizes if s != -1])
        sizes = [size[dim] // rest if s == -1 else s for s in sizes]
    return reshape(x, [*size[:dim], *sizes, *size[dim + 1 :]])


@converts("prims.collapse")
def collapse(call: Call, x: ir.Value, start: int, end: int) -> ir.Value:
    return flatten(call, x, start, end)


@converts("aten.view_as", "aten.reshape_as")
def view_as(call: Call, x: ir.Value, other: ir.Value) -> ir.Value:
    return reshape(x, dims(other))


@converts("aten.squeeze", "aten.squeeze.dim", "aten.squeeze.dims", "prims.squeeze")
@converts("aten.squeeze_copy", "aten.squeeze_copy.dim", "aten.squeeze_copy.dims")
def squeeze(call: Call, x: ir.Value, axes: Any = None) -> ir.Value:
    """Drop dims that are the literal 1; an unknown dim is not 1."""
    size = dims(x)
    chosen = range(len(size)) if axes is None else build.index_dims(axes, len(size))
    if axes == []:
        chosen = []
    gone = {i for i in chosen if size[i].is_static and size[i].value == 1}
    return reshape(x, [d for i, d in enumerate(size) if i not in gone])


@converts("aten.unsqueeze", "aten.unsqueeze_copy")
def unsqueeze_dim(call: Call, x: ir.Value, dim: int) -> ir.Value:
    return unsqueeze(x, dim % (rank(x) + 1))


@converts("aten.permute", "aten.permute_copy", "prims.transpose")
def permute(call: Call, x: ir.Value, order: Sequence[int]) -> ir.Value:
    return transpose(x, [p % rank(x) for p in order])


@converts("aten.transpose.int", "aten.transpose_copy.int", "aten.swapaxes", "aten.swapdims")
def transpose_int(call: Call, x: ir.Value, first: int, second: int) -> ir.Value:
    return swap(x, first, second)


def swap(x: ir.Value, first: int, second: int) -> ir.Value:
    """Return x with two dims exchanged; a rank-0 x is its own transpose."""
    if rank(x) == 0:
        return x
    order = list(range(rank(x)))
    order[first], order[second] = order[second], order[first]
    return transpose(x, order)


@converts("aten.t", "aten.t_copy", "aten.numpy_T", "aten.mT", "aten.mH")
@converts("aten.adjoint", "aten.matrix_H")
def transposed(call: Call, x: ir.Value) -> ir.Value:
    if call.name.rsplit(".", 1)[1] == "numpy_T":
        return transpose(x, list(reversed(range(rank(x)))))
    return swap(x, -2, -1) if rank(x) >= 2 else x


@converts("aten.movedim.int", "aten.movedim.intlist", "aten.moveaxis.int")
def movedim(call: Call, x: ir.Value, source: Any, destination: Any) -> ir.Value:
    count = rank(x)
    sources = [source] if isinstance(source, int) else source
    targets = [destination] if isinstance(destination, int) else destination
    placed = {t % count: s % count for s, t in zip(sources, targets, strict=True)}
    rest = iter(i for i in range(count) if i not in placed.values())
    return transpose(x, [placed[i] if i in placed else next(rest) for i in range(count)])


@converts("aten.expand", "aten.expand_copy", "aten.broadcast_to")
def expand(call: Call, x: ir.Value, sizes: Sizes, implicit: bool = False) -> ir.Value:
    offset = len(sizes) - rank(x)
    kept = [dims(x)[i - offset] if s == -1 else s for i, s in enumerate(sizes)]
    return build.broadcast(x, kept)


@converts("aten.expand_as")
def expand_as(call: Call, x: ir.Value, other: ir.Value) -> ir.Value:
    return build.broadcast(x, dims(other))


@converts("prims.broadcast_in_dim")
def broadcast_in_dim(call: Call, x: ir.Value, sizes: Sizes, axes: Sequence[int]) -> ir.Value:
    kept: list[DimLike] = [1] * len(sizes)
    for d, axis in zip(dims(x), axes, strict=True):
        kept[axis] = d
    return build.broadcast(reshape(x, kept), sizes)


@converts("aten.broadcast_tensors")
def broadcast_tensors(call: Call, xs: list[ir.Value]) -> list[ir.Value]:
    size = broadcast_dims(*[dims(x) for x in xs])
    return [build.broadcast(x, size) for x in xs]


@converts("aten.repeat", "aten.tile")
def repeat(call: Call, x: ir.Value, repeats: Sizes) -> ir.Value:
    """[a, b] repeated (p, q) times: [1, a, 1, b] broadcast to [p, a, q, b], then merged."""
    missing = rank(x) - len(repeats)
    repeats = [*[1] * max(missing, 0), *repeats]
    size: list[DimLike] = [*[1] * max(-missing, 0), *dims(x)]
    apart = [part for d in size for part in (1, d)]
    wide = [part for r, d in zip(repeats, size, strict=True) for part in (r, d)]
    merged = [Dim.of(r) * d for r, d in zip(repeats, size, strict=True)]
    return reshape(build.broadcast(reshape(x, apart), wide), merged)


@converts("aten.repeat_interleave.self_int")
def repeat_interleave(
    call: Call, x: ir.Value, repeats: Any, dim: int | None, output_size: Any
) -> ir.Value:
    """[.., n, ..]: [.., n, 1, ..] broadcast to [.., n, r, ..], then merged."""
    if dim is None:
        x, dim = ravel(call, x), 0
    size = dims(x)
    dim %= len(size)
    apart = reshape(x, [*size[: dim + 1], 1, *size[dim + 1 :]])
    wide = build.broadcast(apart, [*size[: dim + 1], repeats, *size[dim + 1 :]])
    return reshape(wide, [*size[:dim], size[dim] * repeats, *size[dim + 1 :]])


@converts("aten.cat", "aten.concat", "aten.concatenate")
def cat(call: Call, xs: list[Tensor], dim: int) -> ir.Value:
    """Join along `dim`; rank-1 tensors of no element have torch's leave to differ."""
    tensors = [as_element(x, call.element) for x in xs]
    kind = call.results[0]
    assert kind is not None
    joined = [t for t in tensors if rank(t) == kind.rank]
    if kind.rank == 1 and len(joined) > 1:
        joined = [t for t in joined if dims(t) != (Dim.of(0),)] or joined[:1]
    return build.concat(joined, dim % kind.rank)


@converts("aten.stack")
def stack(call: Call, xs: list[Tensor], dim: int) -> ir.Value:
    tensors = [as_element(x, call.element) for x in xs]
    dim %= rank(tensors[0]) + 1
    return build.concat([unsqueeze(t, dim) for t in tensors], dim)


@converts("aten.flip")
def flip(call: Call, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    for axis in axes:
        x = reverse(x, axis % rank(x)) if rank(x) else x
    return x


def reverse(x: ir.Value, dim: int) -> ir.Value:
    """Return x walked back along `dim`."""
    size = dims(x)[dim]
    if size.is_static and size.value <= 1:
        return x
    return slice_(x, dim, size - 1, size, -1)


@converts("aten.fliplr", "aten.flipud")
def flip_side(call: Call, x: ir.Value) -> ir.Value:
    return reverse(x, 1 if call.name.endswith("fliplr") else 0)


@converts("aten.rot90")
def rot90(call: Call, x: ir.Value, turns: int, axes: Sequence[int]) -> ir.Value:
    first, second = (a % rank(x) for a in axes)
    turns %= 4
    if turns == 2:
        return reverse(reverse(x, first), second)
    if turns == 1:
        return swap(reverse(x, second), first, second)
    return reverse(swap(x, first, second), second) if turns == 3 else x


@converts("aten.roll")
def roll(call: Call, x: ir.Value, shifts: Sizes, axes: Sequence[int]) -> ir.Value:
    """Join the last `shift` elements and the rest, for each dim; all dims as one without `axes`."""
    if not axes:
        rolled = _roll(call, ravel(call, x), shifts[0], 0)
        return reshape(rolled, dims(x))
    for shift, axis in zip(shifts, axes, strict=True):
        x = _roll(call, x, shift, axis % rank(x))
    return x


@converts("aten.fft_fftshift", "aten.fft_ifftshift")
def fft_shift(call: Call, x: ir.Value, axes: Any) -> ir.Value:
    """Roll by half of each dim, forth or back."""
    for axis in build.index_dims(axes, rank(x)):
        half = dims(x)[axis] // 2
        if call.name.endswith("ifftshift"):
            half = dims(x)[axis] - half
        x = _roll(call, x, build.simplified(half), axis)
    return x


def _roll(call: Call, x: ir.Value, shift: Any, dim: int) -> ir.Value:
    size = dims(x)[dim]
    if size.is_static and isinstance(shift, int):
        shift = shift % size.value if size.value else 0
    elif call.ranges.is_negative(shift) and call.ranges.is_nonnegative(size + shift):
        shift = size + shift
    elif call.ranges.is_negative(shift) or not call.ranges.is_nonnegative(size - shift):
        shift = Dim.call("mod", shift, Dim.call("max", size, 1))
    if shift == 0:
        return x
    tail = slice_(x, dim, size - shift, shift)
    return build.concat([tail, slice_(x, dim, 0, size - shift)], dim)


@converts("aten.pixel_shuffle")
def pixel_shuffle(call: Call, x: ir.Value, factor: int) -> ir.Value:
    """[.., C r r, H, W] to [.., C, H r, W r]."""
    *batch, channels, height, width = dims(x)
    n, r = len(batch), factor
    apart = reshape(x, [*batch, channels // (r * r), r, r, height, width])
    moved = transpose(apart, [*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return reshape(moved, [*batch, channels // (r * r), height * r, width * r])


@converts("aten.pixel_unshuffle")
def pixel_unshuffle(call: Call, x: ir.Value, factor: int) -> ir.Value:
    """[.., C, H r, W r] to [.., C r r, H, W]."""
    *batch, channels, height, width = dims(x)
    n, r = len(batch), factor
    apart = reshape(x, [*batch, channels, height // r, r, width // r, r])
    moved = transpose(apart, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return reshape(moved, [*batch, channels * (r * r), height // r, width // r])


@converts("aten.channel_shuffle", "aten.native_channel_shuffle")
def channel_shuffle(call: Call, x: ir.Value, groups: int) -> ir.Value:
    size = dims(x)
    apart = reshape(x, [size[0], groups, size[1] // groups, *size[2:]])
    return reshape(swap(apart, 1, 2), size)


@converts("aten.atleast_1d", "aten.atleast_2d", "aten.atleast_3d")
def atleast(call: Call, x: ir.Value) -> ir.Value:
    wanted = int(call.name[-2])
    size = list(dims(x))
    if wanted == 3 and len(size) == 2:
        return reshape(x, [*size, 1])
    if wanted == 3 and len(size) == 1:
        return reshape(x, [1, *size, 1])
    return reshape(x, [*[1] * (wanted - len(size)), *size])


@converts("aten.clone", "aten.contiguous")
def copied(call: Call, x: Tensor, memory_format: int | None) -> Tensor:
    return x


@converts("aten.detach", "aten.alias", "aten.alias_copy", "aten.lift_fresh", "aten.lift")
@converts("aten.detach_copy", "aten.lift_fresh_copy", "prims.view_of", "prims.clone")
def aliased(call: Call, x: Tensor, memory_format: int | None = None) -> Tensor:
    return x
