"""Choose how convolutions are computed: directly, or by tiles, Winograd's or spectra, for less."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from metadef import ir
from metadef.cost.convolution import (
    Convolution,
    cheapest_tile,
    direct_cycles,
    fourier_cycles,
    winograd_cycles,
)
from metadef.device import attribute as device
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError, location_text, near_names
from metadef.dialects.metadef.attributes import integer, integers, text
from metadef.dialects.metadef.fourier import LENGTHS
from metadef.dialects.metadef.ops.constant import constant
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.winograd_input import winograd_input
from metadef.dialects.metadef.ops.winograd_output import winograd_output
from metadef.dialects.metadef.shapes import shape_of
from metadef.dialects.metadef.winograd import LEAST_CHANNELS, WINDOW, transforms
from metadef.forms import FRONT
from metadef.pipeline import Pass
from metadef.symbolic import Dim, product

from ._buffers import values_known_once
from ._convolution_figures import (
    convolution_of,
    fourier_problem,
    image_problem,
    tiles_problem,
    window_of,
)
from ._fourier_convolution import by_spectra, length_problem, spectra_cycles
from ._kernel_abi import least_values
from ._planned import has_plan, note_decision, wanted
from ._reshapes import reshaped
from ._structure import operation_key

#: a convolution's attribute that says which way, against the cost
ALGORITHM = "metadef.algorithm"
ALGORITHMS = DIRECT, WINOGRAD, FFT = "direct", "winograd", "fft"
#: what a plan calls such decisions
KIND = "convolution"


@dataclass(frozen=True)
class ChooseConvolutions(Pass):
    """Compute convolutions as products of transformed tiles where that costs less.

    Before:
        %y = "metadef.conv"(%x, %w, %b) <{layout = "nhwc", padding = [1, 1, 1, 1], ..}>
            : [N, 56, 56, 64], [1, 3, 3, 64, 64], [64] -> [N, 56, 56, 64]
    After:
        %0 = "metadef.contraction"(%G, "metadef.pointwise"(%w)) : [36, 9] x [9, 64*64], in f64
        %1 = "metadef.pointwise"(%0) <{fn = "cast"}> : [36, 64, 64]
        %2 = "metadef.winograd_input"(%x) <{tile = 4, padding = [1, 1, 1, 1]}> : [36, N, 14, 14, 64]
        %3 = "metadef.contraction"(%2, %1) : [36, N*14*14, 64] x [36, 64, 64]
        %4 = "metadef.winograd_output"(%3) <{tile = 4, sizes = [56, 56]}> : [N, 56, 56, 64]
        %y = "metadef.pointwise"(%4, %b) <{fn = "add"}>

    For f32 in nhwc with weights known once, windows one apart and without holes, H and W static.
    `cost/convolution.py` compares by the module's `device.spec` (without one nothing is chosen), a
    symbol counting as its least value: few tiles leave little to share the larger weights. What a
    convolution's `metadef.algorithm` says overrides the cost: `"direct"`, `"winograd"`, `"fft"`, or
    `"winograd(4)"`, `"fft(16)"` with the side of the tiles. So does the module's `metadef.plan`
    (see `_planned.py`), of which what cannot be is passed over.

    Windows of 5 to 63 along an axis, of full or depthwise convolutions, may go by spectra: tiles of
    H and of W through discrete Fourier transforms of 8, 16, 32 or 64 inputs, each along its axis:

        %1 = "metadef.fourier_input"(%x) <{axis = 1, length = 16, window = 7, ..}>
            : [23, N, 6, 56, 64]
        %2 = "metadef.fourier_input"(reshape(%1)) <{axis = 2, length = 16, window = 7, ..}>
            : [23, 23*N, 6, 6, 64]
        %3 = "metadef.contraction"(reshape(%2), %spectra) : [529, N*36, 64] x [529, 64, 64]
        %4 = "metadef.fourier_output"(reshape(%3)) <{axis = 2, length = 16, window = 7, size = 56}>
            : [23*N, 6, 56, 64]
        %y = "metadef.fourier_output"(reshape(%4)) <{axis = 1, length = 16, window = 7, size = 56}>
            : [N, 56, 56, 64]

    23 * 23 products for 10 * 10 outputs, where windows take 4900. Depthwise the contraction is a
    product of elements. The spectra of the weights must be few enough to be made once.

    Rounding: fewer products are summed than directly, and the transforms enlarge their error.
    Against double precision, on random images, tiles of 2 are 0.2 to 1.1 times as far off as eager,
    those of 3 and 4 up to 3.8 times at `winograd.LEAST_CHANNELS`, and less with more channels;
    whole ResNets and U-Nets, where errors of layers add up at random, 0.7 to 1.8 times. The zoo's
    bar is 4. Larger tiles, or points other than `winograd.POINTS`, do not hold it. Spectra of any
    length and any channels are 0.2 to 2.0 times as far off as a direct sum in f32.
    An infinity or NaN in a tile spreads over the tile.
    """

    accepts = FRONT
    requires: ClassVar[str] = "metadef ops on tensors, convolutions in nhwc"
    leaves: ClassVar[str] = "the same; convolutions that were not chosen as they are"

    def run(self, module: ir.Operation) -> None:
        spec = device.of(module) if device.ATTRIBUTE in module.attributes else None
        least = least_values(module)
        for function in ir.entry_block(module).operations:
            if function.operation.name != "func.func" or function.is_external:
                continue
            block = ir.entry_block(function)
            if not any(op.operation.name == "metadef.conv" for op in block.operations):
                continue
            once = values_known_once(block)
            for op in list(block.operations):
                if op.operation.name == "metadef.conv":
                    _choose(module, op, once, spec, least)


@dataclass(frozen=True)
class _Way:
    """An algorithm and the side of its tiles: outputs for Winograd's, inputs for spectra."""

    algorithm: str
    side: int = 0

    def __str__(self) -> str:
        return f"{self.algorithm}({self.side})" if self.side else self.algorithm


@dataclass(frozen=True)
class _Question:
    """A convolution, and by algorithm what it lacks for that, None for nothing."""

    op: Any
    problems: dict[str, str | None]
    least: dict[str, int]
    spec: DeviceSpec | None

    @property
    def is_open(self) -> bool:
        return None in self.problems.values()

    def cost_of(self) -> Convolution:
        return convolution_of(self.op, lambda dim: dim.evaluate(self.least))


def _choose(
    module: ir.Operation,
    op: Any,
    once: set[ir.Value],
    spec: DeviceSpec | None,
    least: dict[str, int],
) -> None:
    """Replace a convolution where that is wanted: by its attribute, the plan, or its cost."""
    problem = _nhwc_problem(op)
    problems = {
        WINOGRAD: problem or _winograd_problem(op, once),
        FFT: problem or fourier_problem(op, once),
    }
    if spec is None:
        problems = {name: p or "a device.spec on the module" for name, p in problems.items()}
    question = _Question(op, problems, least, spec)
    if ALGORITHM in op.operation.attributes:
        way = _way(text(op, ALGORITHM), question)
    elif has_plan(module):
        way = _planned_way(module, question)
    else:
        way = _cheapest_way(question)
    if way.algorithm == DIRECT:
        return
    with ir.InsertionPoint(op), op.location:
        new = _by_tiles(op, way.side) if way.algorithm == WINOGRAD else by_spectra(op, way.side)
    op.operation.results[0].replace_all_uses_with(new)
    op.operation.erase()


def _planned_way(module: ir.Operation, question: _Question) -> _Way:
    """Return the way by the module's plan, or by cost where that wants nothing that can be. Note
    the decision, where there is one."""
    key = operation_key(question.op)
    choices = wanted(module, KIND, key)
    refused = []
    way = None
    for choice in choices:
        try:
            way = _way(choice, question)
            break
        except MetadefError as error:
            refused.append(str(error))
    if way is None:
        way = _cheapest_way(question)
    if question.is_open or choices:
        note_decision(module, KIND, key, question.op, str(way), refused)
    return way


def _cheapest_way(question: _Question) -> _Way:
    """Return what costs least; windows where nothing costs less."""
    if not question.is_open:
        return _Way(DIRECT)
    assert question.spec is not None
    conv, spec = question.cost_of(), question.spec
    ways = {_Way(DIRECT): direct_cycles(conv, spec)}
    if question.problems[WINOGRAD] is None:
        tile = cheapest_tile(conv, spec)
        ways[_Way(WINOGRAD, tile)] = winograd_cycles(conv, tile, spec)
    if question.problems[FFT] is None:
        ways |= {_Way(FFT, n): cycles for n, cycles in spectra_cycles(conv, spec).items()}
    return min(ways, key=lambda way: ways[way])


def _way(algorithm: str, question: _Question) -> _Way:
    """Return the way that an algorithm's text says.

    Raises:
        MetadefError: no such algorithm, or it cannot be used here.
    """
    op = question.op
    if algorithm == DIRECT:
        return _Way(DIRECT)
    match = re.fullmatch(rf"({WINOGRAD}|{FFT})(?:\((\d+)\))?", algorithm)
    if match is None:
        near = near_names(algorithm, ALGORITHMS)
        forms = f"{', '.join(ALGORITHMS)}, {WINOGRAD}(TILE), {FFT}(TILE)"
        raise _error(op, algorithm, f"is none of {forms}{near}")
    name = match[1]
    if question.problems[name] is not None:
        raise _error(op, algorithm, f"needs {question.problems[name]}")
    conv, sides = question.cost_of(), tuple(LEAST_CHANNELS if name == WINOGRAD else LENGTHS)
    problem_of = _side_problem if name == WINOGRAD else length_problem
    side = int(match[2]) if match[2] else None
    problems = {s: problem_of(s, conv) for s in (sides if side is None else (side,))}
    legal = [s for s, problem in problems.items() if problem is None]
    if not legal:
        raise _error(op, algorithm, f"needs {problems[side or sides[-1]]}")
    spec = question.spec
    assert spec is not None
    cost = winograd_cycles if name == WINOGRAD else fourier_cycles
    return _Way(name, min(legal, key=lambda s: cost(conv, s, spec)))


def _side_problem(tile: int, conv: Convolution) -> str | None:
    """Return what Winograd's tiles of a side need, or None."""
    if tile not in LEAST_CHANNELS:
        return f"tiles of {', '.join(map(str, LEAST_CHANNELS))}, got {tile}"
    if conv.channels < LEAST_CHANNELS[tile]:
        rule = f"{LEAST_CHANNELS[tile]} channels to be accurate, got {conv.channels}"
        return f"at least {rule}"
    return None


def _error(op: Any, algorithm: str, problem: str) -> MetadefError:
    place = location_text(op.location)
    return MetadefError(f"'metadef.conv' op: {ALGORITHM} = \"{algorithm}\" {problem}; from {place}")


def _winograd_problem(op: Any, once: set[ir.Value]) -> str | None:
    """Return what a convolution lacks to be computed by Winograd's tiles, or None."""
    if window_of(op) != (WINDOW, WINDOW) or op.operation.operands[1] not in once:
        return f"{WINDOW}x{WINDOW} weights that are known once"
    return tiles_problem(op) if integer(op, "groups") == 1 else "one group"


def _nhwc_problem(op: Any) -> str | None:
    fits = image_problem(op) is None and text(op, "layout") == "nhwc"
    return None if fits else "f32 images in nhwc"


def _by_tiles(op: Any, tile: int) -> ir.Value:
    """Build the transforms of weight, input and products, and the bias."""
    x, w, *bias = op.operation.operands
    tiles = winograd_input(x, tile, integers(op, "padding"))
    count, *places, channels = shape_of(tiles).dims
    _, height, width, outputs = shape_of(op.operation.results[0]).dims
    weights = _transformed(w, tile, [count, channels, outputs])
    products = contraction(reshaped(tiles, [count, product([*places]), channels]), weights)
    tiled = reshaped(products, [count, *places, outputs])
    y = winograd_output(tiled, tile, [height.value, width.value])
    return pointwise("add", y, bias[0]) if bias else y


def _transformed(w: ir.Value, tile: int, dims: list[Dim]) -> ir.Value:
    """Build G g G' of every 3x3 weight g of w [1, 3, 3, C, O], rounded once from f64."""
    matrix = np.array(transforms(tile).weight)
    f64 = ir.F64Type.get()
    flat = reshaped(w, [WINDOW**2, product([*dims[1:]])])
    both = constant(np.kron(matrix, matrix), f64)
    made = contraction(both, pointwise("cast", flat, element=f64))
    return reshaped(pointwise("cast", made, element=shape_of(w).element), dims)
