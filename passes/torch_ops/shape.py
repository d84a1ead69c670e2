"""Views and movement of whole dims: reshape, slice, transpose, concat, pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.scatter import scatter
from metadef.dialects.metadef.ops.take import take
from metadef.dialects.metadef.shapes import broadcast_dims
from metadef.symbolic import Dim, DimLike, ceildiv, product, same

from . import build
from .build import as_element, dims, rank, reshape, select, slice_, transpose, unsqueeze
from .call import Call, Tensor
from .dtypes import i64
from .registry import NotModelled, converts

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


@converts("aten.t", "aten.t_copy", "aten.numpy_T", "aten.mT", "aten.mH", "aten.adjoint", "aten.matrix_H")
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


def slice_bounds(call: Call, size: Dim, start: Any, end: Any) -> tuple[Dim, Dim]:
    """Return first and past-the-end index of `[start:end]` as Python clamps them."""

    def clamped(bound: Any, default: DimLike) -> Dim:
        at = Dim.of(default if bound is None else bound)
        if call.ranges.is_negative(at):
            return call.ranges.maximum(size + at, 0)
        if at.is_static and at.value >= 2**62:
            return size
        return call.ranges.minimum(at, size)

    first = clamped(start, 0)
    return first, call.ranges.maximum(clamped(end, size), first)


@converts("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_tensor(
    call: Call, x: ir.Value, dim: int, start: Any, end: Any, step: int
) -> ir.Value:
    dim %= rank(x)
    size = dims(x)[dim]
    first, last = slice_bounds(call, size, start, end)
    count = ceildiv(last - first, step)
    if call.dims is not None and same(count, call.dims[dim]) is not False:
        count = call.dims[dim]
    if count.is_static and count.value == 0:
        first = Dim.of(0)
    return slice_(x, dim, first, count, step)


@converts("aten.narrow", "aten.narrow.Tensor", "aten.narrow_copy")
def narrow(call: Call, x: ir.Value, dim: int, start: Any, length: Any) -> ir.Value:
    if isinstance(start, ir.Value):
        raise NotModelled
    dim %= rank(x)
    at = Dim.of(start)
    return slice_(x, dim, dims(x)[dim] + at if call.ranges.is_negative(at) else at, length)


@converts("aten.select.int", "aten.select_copy.int")
def select_int(call: Call, x: ir.Value, dim: int, index: Any) -> ir.Value:
    return select(x, dim % rank(x), position(call, dims(x)[dim], index))


def position(call: Call, size: Dim, index: Any) -> Dim:
    """Return an index counted from the front."""
    if not isinstance(index, int | Dim):
        raise NotModelled
    at = Dim.of(index)
    return size + at if call.ranges.is_negative(at) else at


def pieces(x: ir.Value, dim: int, sizes: Sequence[DimLike]) -> list[ir.Value]:
    """Return consecutive slices of `dim` of the given sizes."""
    start = Dim.of(0)
    result = []
    for size in sizes:
        result.append(slice_(x, dim, start, size))
        start = start + size
    return result


def static_size(x: ir.Value, dim: int) -> int:
    """Return a dim that has to be static, or leave the op to torch-mlir."""
    size = dims(x)[dim]
    if not size.is_static:
        raise NotModelled
    return size.value


@converts("aten.split.Tensor", "aten.split_copy.Tensor", "aten.unsafe_split.Tensor")
def split(call: Call, x: ir.Value, size: Any, dim: int) -> list[ir.Value]:
    dim %= rank(x)
    whole = dims(x)[dim]
    step = Dim.of(size)
    count = whole // step
    if not whole.is_static and count.is_static:  # such as 3*S by S
        return pieces(x, dim, [step] * count.value)
    if not whole.is_static or not step.is_static:
        raise NotModelled
    if step.value == 0:
        return [x]
    starts = range(0, max(whole.value, 1), step.value)
    return pieces(x, dim, [min(step.value, whole.value - s) for s in starts])


@converts("aten.split_with_sizes", "aten.split.sizes", "aten.split_with_sizes_copy")
@converts("aten.unsafe_split_with_sizes")
def split_with_sizes(call: Call, x: ir.Value, sizes: Sizes, dim: int) -> list[ir.Value]:
    return pieces(x, dim % rank(x), sizes)


@converts("aten.chunk", "aten.unsafe_chunk")
def chunk(call: Call, x: ir.Value, count: int, dim: int) -> list[ir.Value]:
    dim %= rank(x)
    size = dims(x)[dim]
    each = size // count
    if not size.is_static:
        if same(each * count, size) is not True:
            raise NotModelled
        return pieces(x, dim, [each] * count)
    step = max(-(-size.value // count), 1)
    starts = range(0, max(size.value, 1), step)
    return pieces(x, dim, [min(step, size.value - s) for s in starts])


@converts("aten.tensor_split.sections")
def tensor_split(call: Call, x: ir.Value, sections: int, dim: int) -> list[ir.Value]:
    dim %= rank(x)
    each, extra = divmod(static_size(x, dim), sections)
    return pieces(x, dim, [each + (i < extra) for i in range(sections)])


@converts("aten.tensor_split.indices")
def tensor_split_indices(
    call: Call, x: ir.Value, indices: Sequence[int], dim: int
) -> list[ir.Value]:
    dim %= rank(x)
    size = static_size(x, dim)
    edges = [min(max(i + size if i < 0 else i, 0), size) for i in indices]
    bounds = zip([0, *edges], [*edges, size], strict=True)
    return [slice_(x, dim, min(a, b) if a < size else 0, max(b - a, 0)) for a, b in bounds]


@converts("aten.hsplit.int", "aten.vsplit.int", "aten.dsplit.int")
def split_side(call: Call, x: ir.Value, sections: int) -> list[ir.Value]:
    return tensor_split(call, x, sections, _side(call, x))


@converts("aten.hsplit.array", "aten.vsplit.array", "aten.dsplit.array")
def split_side_indices(call: Call, x: ir.Value, indices: Sequence[int]) -> list[ir.Value]:
    return tensor_split_indices(call, x, indices, _side(call, x))


def _side(call: Call, x: ir.Value) -> int:
    """Return the dim of a split by columns (rows of a vector), rows, or depth."""
    dim = {"h": 1, "v": 0, "d": 2}[call.name.split(".")[2][0]]
    return 0 if rank(x) == 1 else dim


@converts("aten.unbind.int", "aten.unbind_copy.int")
def unbind(call: Call, x: ir.Value, dim: int) -> list[ir.Value]:
    dim %= rank(x)
    return [select(x, dim, i) for i in range(static_size(x, dim))]


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
    elif not call.ranges.is_nonnegative(size - shift) or call.ranges.is_negative(shift):
        if not call.ranges.is_nonnegative(size + shift):
            raise NotModelled
        shift = size + shift
    if shift == 0:
        return x
    tail = slice_(x, dim, size - shift, shift)
    return build.concat([tail, slice_(x, dim, 0, size - shift)], dim)


@converts("aten.unfold")
def unfold(call: Call, x: ir.Value, dim: int, size: int, step: int) -> ir.Value:
    """Windows of `size`, `step` apart, as a last dim: one strided slice for each place in it."""
    if rank(x) == 0:
        return reshape(x, [1])
    dim %= rank(x)
    count = (dims(x)[dim] - size) // step + 1
    windows = [unsqueeze(slice_(x, dim, i, count, step), rank(x)) for i in range(size)]
    if not windows or size > 64:
        raise NotModelled
    return build.concat(windows, rank(x))


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


@converts("aten.constant_pad_nd")
def constant_pad(call: Call, x: ir.Value, padding: Sequence[int], value: Any) -> ir.Value:
    return pad_last(x, padding, "constant", value)


def pad_last(x: ir.Value, padding: Sequence[Any], mode: str, value: Any = 0) -> ir.Value:
    """Pad by torch's list: (low, high) of the last dim, then of the one before it."""
    if not all(isinstance(p, int) for p in padding) or not isinstance(value, int | float):
        raise NotModelled
    low, high = [0] * rank(x), [0] * rank(x)
    for i in range(len(padding) // 2):
        low[-1 - i], high[-1 - i] = padding[2 * i], padding[2 * i + 1]
    return build.pad(x, low, high, mode, value)


def _register_pad(torch_name: str, mode: str) -> None:
    @converts(*(f"aten.{torch_name}{n}d" for n in (1, 2, 3)))
    def convert(call: Call, x: ir.Value, padding: Sequence[int]) -> ir.Value:
        return pad_last(x, padding, mode)


_register_pad("reflection_pad", "reflect")
_register_pad("replication_pad", "replicate")


@converts("aten.pad")
def pad(
    call: Call, x: ir.Value, padding: Sequence[int], mode: str, value: float | None
) -> ir.Value:
    return pad_last(x, padding, mode, value or 0)


@converts("aten._pad_circular")
def pad_circular(call: Call, x: ir.Value, padding: Sequence[int]) -> ir.Value:
    return pad_last(x, padding, "circular")


@converts("aten.diagonal", "aten.diagonal_copy")
def diagonal(call: Call, x: ir.Value, offset: int, first: int, second: int) -> ir.Value:
    """Flatten the two dims: the diagonal is every (columns + 1)-th element from the offset on."""
    n = rank(x)
    first, second = first % n, second % n
    moved = transpose(x, [*(i for i in range(n) if i not in (first, second)), first, second])
    *batch, rows, columns = dims(moved)
    if not (rows.is_static and columns.is_static):
        raise NotModelled
    down, right = max(-offset, 0), max(offset, 0)
    count = max(min(rows.value - down, columns.value - right), 0)
    flat = reshape(moved, [*batch, rows * columns])
    start = down * columns.value + right if count else 0
    return slice_(flat, len(batch), start, count, columns.value + 1)


@converts("aten.diagonal_scatter")
def diagonal_scatter(
    call: Call, x: ir.Value, source: ir.Value, offset: int, first: int, second: int
) -> ir.Value:
    """Select source, gathered along the rows, where column - row is the offset."""
    n = rank(x)
    first, second = first % n, second % n
    order = [*(i for i in range(n) if i not in (first, second)), first, second]
    moved = transpose(x, order)
    size = dims(moved)
    if dims(source)[-1] == Dim.of(0):
        return x
    rows, columns = build.iota(size[-2:], 0), build.iota(size[-2:], 1)
    distance = build.pointwise("sub", columns, rows)
    hit = build.pointwise("eq", distance, build.number(offset, i64()))
    last = build.number(dims(source)[-1] - 1, i64())
    place = build.iota(size[-2:-1], 0)
    if offset < 0:
        place = build.pointwise("add", place, build.number(offset, i64()))
        place = build.pointwise("maximum", place, build.number(0, i64()))
    by_row = take(build.cast(source, call.element), build.pointwise("minimum", place, last), n - 2)
    value = build.pointwise("select", hit, unsqueeze(by_row, n - 1), moved)
    return transpose(value, [order.index(i) for i in range(n)])


@converts("aten.select_scatter")
def select_scatter(call: Call, x: ir.Value, source: ir.Value, dim: int, index: Any) -> ir.Value:
    dim %= rank(x)
    at = position(call, dims(x)[dim], index)
    return replace_range(x, unsqueeze(build.cast(source, call.element), dim), dim, at, Dim.of(1))


def replace_range(x: ir.Value, source: ir.Value, dim: int, start: Dim, count: Dim) -> ir.Value:
    """Return x with `count` elements of `dim` from `start` on taken from source: a concat."""
    size = list(dims(x))
    size[dim] = count
    parts = [build.broadcast(source, size)]
    rest = dims(x)[dim] - start - count
    if start != Dim.of(0):
        parts.insert(0, slice_(x, dim, 0, start))
    if rest != Dim.of(0):
        parts.append(slice_(x, dim, start + count, rest))
    return build.concat(parts, dim)


@converts("aten.slice_scatter")
def slice_scatter(
    call: Call, x: ir.Value, source: ir.Value, dim: int, start: Any, end: Any, step: int
) -> ir.Value:
    """A concat for step 1; else a scatter of the source at the slice's indices."""
    dim %= rank(x)
    first, last = slice_bounds(call, dims(x)[dim], start, end)
    source = build.cast(source, call.element)
    count = ceildiv(last - first, step)
    if step == 1:
        return replace_range(x, source, dim, first, count)
    if not first.is_static:
        raise NotModelled
    size = list(dims(x))
    size[dim] = count
    indices = build.iota(size, dim, first.value, step)
    return scatter(x, indices, build.broadcast(source, size), dim)


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
