"""Matrix products and linear layers as `metadef.contraction`."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.symbolic import product

from . import build
from .build import (
    as_element,
    cast,
    contraction,
    dims,
    is_one,
    pointwise,
    rank,
    reduce,
    reshape,
    unsqueeze,
)
from .call import Call, Number
from .dtypes import is_bool, is_float, opmath
from .registry import NotModelled, converts
from .slicing import diagonal


@converts("aten.linear")
def linear(call: Call, x: ir.Value, weight: ir.Value, bias: ir.Value | None) -> ir.Value:
    """x [.., K] times weight [N, K] transposed, plus bias [N]."""
    if rank(weight) == 1:
        return add_bias(matmul_values(x, weight), bias)
    result = contraction(_matrix(x), weight, transpose_rhs=True)
    if rank(x) == 1:
        result = reshape(result, dims(result)[1:])
    return add_bias(result, bias)


def _matrix(x: ir.Value) -> ir.Value:
    return unsqueeze(x, 0) if rank(x) == 1 else x


def add_bias(x: ir.Value, bias: ir.Value | None) -> ir.Value:
    return x if bias is None else pointwise("add", x, bias)


def matmul_values(x: ir.Value, y: ir.Value) -> ir.Value:
    """torch.matmul: vectors are rows on the left and columns on the right; batch dims broadcast."""
    if rank(x) == 1 and rank(y) == 1:
        return reduce("sum", pointwise("mul", x, y), [0])
    result = contraction(_matrix(x), unsqueeze(y, 1) if rank(y) == 1 else y)
    size = list(dims(result))
    if rank(y) == 1:
        size.pop()
    elif rank(x) == 1:
        size.pop(-2)
    return reshape(result, size)


@converts("aten.mm", "aten.bmm", "aten.matmul", "aten.mv", "aten.dot", "aten.vdot", "aten.inner")
@converts("aten.linalg_matmul")
def matmul(call: Call, x: ir.Value, y: ir.Value) -> ir.Value:
    if is_bool(build.element(x)):
        raise NotModelled
    if call.name.endswith("inner"):
        if rank(x) == 0 or rank(y) == 0:
            return pointwise("mul", x, y)
        rows = product(dims(x)[:-1]), dims(x)[-1]
        columns = product(dims(y)[:-1]), dims(y)[-1]
        flat = contraction(reshape(x, rows), reshape(y, columns), transpose_rhs=True)
        return reshape(flat, [*dims(x)[:-1], *dims(y)[:-1]])
    return matmul_values(x, y)


@converts("aten.mm.dtype", "aten.bmm.dtype")
def matmul_dtype(call: Call, x: ir.Value, y: ir.Value, dtype: int) -> ir.Value:
    return matmul_values(cast(x, call.element), cast(y, call.element))


@converts("aten.addmm", "aten.addmv", "aten.baddbmm", "aten.addbmm")
def add_product(
    call: Call, x: ir.Value, a: ir.Value, b: ir.Value, beta: Number, alpha: Number
) -> ir.Value:
    """beta x + alpha (a @ b); with beta = 0 x is not read, not even its NaN."""
    value = matmul_values(a, b)
    if call.name.endswith("addbmm") and "baddbmm" not in call.name:
        value = reduce("sum", value, [0])
    return _scale_and_add(call, x, value, beta, alpha)


@converts("aten.addr")
def addr(
    call: Call, x: ir.Value, a: ir.Value, b: ir.Value, beta: Number, alpha: Number
) -> ir.Value:
    if is_bool(call.element):
        raise NotModelled
    value = as_element(outer_product(a, b), call.element)
    return _scale_and_add(call, as_element(x, call.element), value, beta, alpha)


def _scale_and_add(
    call: Call, x: ir.Value, value: ir.Value, beta: Number, alpha: Number
) -> ir.Value:
    if alpha == 1 and beta == 1:
        return pointwise("add", value, x)
    wide = opmath(call.element)
    value = cast(value, wide)
    if alpha != 1:
        value = pointwise("mul", value, build.number(alpha, wide))
    if beta != 0:
        term = cast(x, wide)
        if beta != 1:
            term = pointwise("mul", term, build.number(beta, wide))
        value = pointwise("add", value, term)
    return cast(value, call.element)


@converts("aten.outer", "aten.ger")
def outer(call: Call, x: ir.Value, y: ir.Value) -> ir.Value:
    return outer_product(as_element(x, call.element), as_element(y, call.element))


def outer_product(x: ir.Value, y: ir.Value) -> ir.Value:
    return pointwise("and" if is_bool(build.element(x)) else "mul", unsqueeze(x, 1), y)


@converts("aten.tensordot")
def tensordot(call: Call, x: ir.Value, y: ir.Value, over_x: Any, over_y: Any) -> ir.Value:
    """Sum over pairs of dims; one of size 1 goes with any other."""
    over_x = [a % rank(x) for a in over_x]
    over_y = [a % rank(y) for a in over_y]
    for a, b in zip(over_x, over_y, strict=True):
        if is_one([dims(x)[a]]):
            y = reduce("sum", y, [b], keepdim=True)
        elif is_one([dims(y)[b]]):
            x = reduce("sum", x, [a], keepdim=True)
    letters = iter(range(rank(x) + rank(y)))
    left = [next(letters) for _ in range(rank(x))]
    right = [
        left[over_x[over_y.index(i)]] if i in over_y else next(letters) for i in range(rank(y))
    ]
    kept = [s for i, s in enumerate(left) if i not in over_x]
    kept += [s for i, s in enumerate(right) if i not in over_y]
    return contract_pair(x, left, y, right, kept)


@converts("aten.einsum")
def einsum(call: Call, equation: str, xs: list[ir.Value], path: Any) -> ir.Value:
    """Contract operands left to right; a label that no later operand or result has is summed."""
    inputs, output = _labels(equation, [rank(x) for x in xs])
    value, labels = xs[0], inputs[0]
    value, labels = _without_repeats(call, value, labels)
    if len(xs) == 1:
        return _sum_and_order(value, labels, output)
    for i, (y, right) in enumerate(zip(xs[1:], inputs[1:], strict=True), start=2):
        y, right = _without_repeats(call, y, right)
        later = set(output).union(*inputs[i:])
        kept = [s for s in dict.fromkeys([*labels, *right]) if s in later]
        if i == len(xs):
            kept = list(output)
        value, labels = contract_pair(value, labels, y, right, kept), kept
    return value


def _labels(equation: str, ranks: list[int]) -> tuple[list[list[Any]], list[Any]]:
    """Return labels of each operand's dims and of the result's; `...` becomes numbers."""
    text, _, result = equation.replace(" ", "").partition("->")
    terms = text.split(",")
    inputs: list[list[Any]] = []
    widest = 0
    for term, count in zip(terms, ranks, strict=True):
        extra = count - len(term.replace("...", "")) if "..." in term else 0
        widest = max(widest, extra)
        before, _, after = term.partition("...")
        # Numbers count from the right, so that `...` of different ranks line up.
        inputs.append([*before, *range(-extra, 0), *after])
    if "->" in equation:
        before, dots, after = result.partition("...")
        return inputs, [*before, *(range(-widest, 0) if dots else ()), *after]
    letters = "".join(t.replace("...", "") for t in terms)
    once = sorted(c for c in set(letters) if letters.count(c) == 1)
    return inputs, [*range(-widest, 0), *once]


def _without_repeats(call: Call, x: ir.Value, labels: list[Any]) -> tuple[ir.Value, list[Any]]:
    """Take the diagonal of two dims of one label; it comes last."""
    for i, label in enumerate(labels):
        if label in labels[i + 1 :]:
            j = labels.index(label, i + 1)
            others = [s for k, s in enumerate(labels) if k not in (i, j)]
            return _without_repeats(call, diagonal(call, x, 0, i, j), [*others, label])
    return x, labels


def _sum_and_order(x: ir.Value, labels: list[Any], output: list[Any]) -> ir.Value:
    """Sum the dims that the result lacks, and put the others in its order."""
    gone = [i for i, s in enumerate(labels) if s not in output]
    if gone:
        x = reduce("sum", x, gone)
    kept = [s for s in labels if s in output]
    return build.transpose(x, [kept.index(s) for s in output])


def contract_pair(
    x: ir.Value, left: list[Any], y: ir.Value, right: list[Any], kept: list[Any]
) -> ir.Value:
    """Contract labelled dims: of those in both, the kept ones are batch, the others are summed."""
    if is_bool(build.element(x)):
        raise NotModelled
    x, left = _sum_absent(x, left, [*right, *kept])
    y, right = _sum_absent(y, right, [*left, *kept])
    size: dict[Any, Any] = dict(zip(left, dims(x), strict=True))
    for label, d in zip(right, dims(y), strict=True):
        if label not in size or build.is_one([size[label]]):
            size[label] = d
    batch = [s for s in left if s in right and s in kept]
    summed = [s for s in left if s in right and s not in kept]
    rows = [s for s in left if s not in right]
    columns = [s for s in right if s not in left]
    if any(
        build.is_one([d]) != build.is_one([size[s]])
        for s, d in zip(left, dims(x), strict=True)
        if s in summed
    ) or any(
        build.is_one([d]) != build.is_one([size[s]])
        for s, d in zip(right, dims(y), strict=True)
        if s in summed
    ):
        raise NotModelled  # a contracted dim of 1 that stretches
    lhs = _grouped(x, left, batch, rows, summed, size)
    rhs = _grouped(y, right, batch, summed, columns, size)
    flat = contraction(lhs, rhs)
    order = [*batch, *rows, *columns]
    apart = reshape(flat, [size[s] for s in order])
    return build.transpose(apart, [order.index(s) for s in kept])


def _sum_absent(x: ir.Value, labels: list[Any], others: list[Any]) -> tuple[ir.Value, list[Any]]:
    gone = [i for i, s in enumerate(labels) if s not in others]
    kept = [s for s in labels if s in others]
    return (reduce("sum", x, gone) if gone else x), kept


def _grouped(
    x: ir.Value,
    labels: list[Any],
    batch: list[Any],
    first: list[Any],
    second: list[Any],
    size: dict[Any, Any],
) -> ir.Value:
    """Return x as [batch.., prod(first), prod(second)]."""
    order = [*batch, *first, *second]
    moved = build.transpose(x, [labels.index(s) for s in order])
    wide = build.broadcast(moved, [size[s] for s in order])
    shape = [size[s] for s in batch]
    return reshape(
        wide, [*shape, product([size[s] for s in first]), product([size[s] for s in second])]
    )


@converts("aten.bilinear")
def bilinear(
    call: Call, x: ir.Value, y: ir.Value, weight: ir.Value, bias: ir.Value | None
) -> ir.Value:
    """sum over i, j of x[.., i] weight[o, i, j] y[.., j]."""
    if not is_float(call.element):
        raise NotModelled
    batch = list(range(-rank(x) + 1, 0))
    half = contract_pair(x, [*batch, "i"], weight, ["o", "i", "j"], [*batch, "o", "j"])
    value = contract_pair(half, [*batch, "o", "j"], y, [*batch, "j"], [*batch, "o"])
    return add_bias(value, bias)
