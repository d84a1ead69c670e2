"""How many arithmetic operations each metadef op takes, as an expression of the symbols.

The count is of the op's definition, whatever algorithm a kernel uses: a multiply-add is two, and a
convolution multiplies its padding too. So a Winograd kernel may exceed the device's peak.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metadef.cost.pointwise_flops import pointwise_flops
from metadef.dialects.metadef.attributes import boolean, choice, integer, integers, text
from metadef.dialects.metadef.fourier import steps as fourier_steps
from metadef.dialects.metadef.ops.resample import MODES
from metadef.dialects.metadef.shapes import Shaped, shape_of
from metadef.dialects.metadef.winograd import steps, transforms
from metadef.symbolic import Dim, product

#: what moves, makes or names data
_NONE = frozenset(
    "broadcast concat constant dim fill gather iota pad reshape slice take transpose unpack weight"
    " kernel yield".split()
)
#: what nobody counts: comparisons that depend on the data; torch ops
UNCOUNTED = frozenset(("sort", "opaque"))
#: operations for an element of the result by the mode, for 2 spatial dims in `cubic`
_CUBIC = 40


def op_flops(op: Any) -> tuple[str, Dim]:
    """Return the element type that a metadef op computes in, as `f32`, and its operations.

    An op of `UNCOUNTED` counts as none.
    """
    name = op.operation.name.removeprefix("metadef.")
    if name in _NONE or name in UNCOUNTED:
        return "", Dim.of(0)
    operands = [shape_of(v) for v in op.operation.operands]
    result = shape_of(op.operation.results[0])
    computed = {"pointwise": operands[-1:], "dequantize": [result]}.get(name, operands)
    element = str(computed[0].element)
    return element, _COUNTS[name](op, operands, result)


def counted_ops() -> frozenset[str]:
    """Return the names of the ops that `op_flops` knows, `UNCOUNTED` ones too."""
    return _NONE | UNCOUNTED | frozenset(_COUNTS)


def _elements(shape: Shaped) -> Dim:
    return product(shape.dims)


def _contraction(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    k = operands[0].dims[-2 if boolean(op, "transpose_lhs") else -1]
    return _elements(result) * k * 2


def _conv(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    w = operands[1]
    taps = product(w.dims[1:] if text(op, "layout") == "nchw" else w.dims[1:-1])
    return _elements(result) * (taps * 2 + (len(operands) > 2))


def _conv_transpose(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    x, w = operands[0], operands[1]
    bias = _elements(result) if len(operands) > 2 else Dim.of(0)
    return _elements(x) * product(w.dims[1:]) * 2 + bias


def _attention(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    q, k, v = operands[:3]
    queries, keys = q.dims[-2], k.dims[-2]
    scores = queries * keys
    if boolean(op, "causal"):
        # Row l has min(l + 1, S) keys.
        both = Dim.call("min", queries, keys)
        scores = both * (both + 1) // 2 + (queries - both) * keys
    # For each score the two products, scale, softmax (maximum, difference, exp, sum), the mask.
    each = q.dims[-1] * 2 + v.dims[-1] * 2 + (pointwise_flops("exp", str(q.element)) + 4)
    each = each + (1 if len(operands) > 3 else 0)
    return product(result.dims[:-2]) * scores * each + _elements(result)


def _norm(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    # layer: sum, difference, square and its sum, scale by the deviation; rms: without the mean
    each = {"layer": 5, "rms": 3}[text(op, "kind")] + len(operands) - 1
    return _elements(result) * each


def _softmax(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    # maximum, difference, exp, sum; then a product, or the difference from the sum's logarithm
    return _elements(result) * (pointwise_flops("exp", str(result.element)) + 4)


def _resample(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    mode = choice(op, "mode", MODES)
    lerps = 2 ** (result.rank - 2) - 1
    return _elements(result) * {"nearest": 0, "linear": 3 * lerps, "cubic": _CUBIC}[mode]


def _scan(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    element = str(result.element)
    sums = pointwise_flops("exp", element) + pointwise_flops("log", element) + 3
    return _elements(result) * (sums if text(op, "fn") == "logsumexp" else 1)


def _scatter(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    return Dim.of(0) if text(op, "reduce") == "none" else _elements(operands[1])


def _index_put(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    return _elements(operands[1]) if boolean(op, "accumulate") else Dim.of(0)


def _winograd_input(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    matrix = transforms(integer(op, "tile")).input
    return product(result.dims[1:]) * steps(matrix, len(matrix[0])) * 2


def _winograd_output(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    matrix = transforms(integer(op, "tile")).output
    return product(operands[0].dims[1:]) * steps(matrix, len(matrix[0])) * 2


def _fourier_input(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    return product(result.dims[1:]) * fourier_steps(integer(op, "length"))[0]


def _fourier_output(op: Any, operands: list[Shaped], result: Shaped) -> Dim:
    return product(operands[0].dims[1:]) * fourier_steps(integer(op, "length"))[1]


_COUNTS: dict[str, Callable[[Any, list[Shaped], Shaped], Dim]] = {
    "attention": _attention,
    "contraction": _contraction,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "dequantize": lambda op, xs, y: _elements(y) * 2,
    "fourier_input": _fourier_input,
    "fourier_output": _fourier_output,
    "index_put": _index_put,
    "norm": _norm,
    "pointwise": lambda op, xs, y: (
        _elements(y) * pointwise_flops(text(op, "fn"), str(xs[-1].element))
    ),
    "pool": lambda op, xs, y: _elements(y) * product([*integers(op, "kernel")]),
    "quantize": lambda op, xs, y: _elements(y) * 4,
    "reduce": lambda op, xs, y: _elements(xs[0]),
    "resample": _resample,
    "scan": _scan,
    "scatter": _scatter,
    "softmax": _softmax,
    "winograd_input": _winograd_input,
    "winograd_output": _winograd_output,
}
