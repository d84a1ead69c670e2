"""Choose how convolutions are computed: directly, or by Winograd's tiles where they cost less."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from metadef import ir
from metadef.cost.convolution import Convolution, cheapest_tile, direct_cycles, winograd_cycles
from metadef.device import attribute as device
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError, location_text, near_names
from metadef.dialects.metadef.attributes import integer, integers, text
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
from ._kernel_abi import least_values
from ._planned import has_plan, note_decision, wanted
from ._reshapes import reshaped
from ._structure import operation_key

#: a convolution's attribute that says which way, against the cost
ALGORITHM = "metadef.algorithm"
ALGORITHMS = DIRECT, WINOGRAD = "direct", "winograd"
#: what a plan calls such decisions
KIND = "convolution"


@dataclass(frozen=True)
class ChooseConvolutions(Pass):
    """Compute 3x3 convolutions as products of transformed tiles where that costs less.

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

    For f32 in nhwc with weights known once, one group, windows one apart and without holes, H and
    W static. `cost/convolution.py` compares by the module's `device.spec` (without one nothing is
    chosen), a symbol counting as its least value: few tiles leave little to share the larger
    weights. What a convolution's `metadef.algorithm` says overrides the cost: `"direct"`,
    `"winograd"`, or `"winograd(4)"` with the side of the tiles. So does the module's
    `metadef.plan` (see `_planned.py`), of which what cannot be is passed over.

    Rounding: fewer products are summed than directly, and the transforms enlarge their error.
    Against double precision, on random images, tiles of 2 are 0.2 to 1.1 times as far off as eager,
    those of 3 and 4 up to 3.8 times at `winograd.LEAST_CHANNELS`, and less with more channels;
    whole ResNets and U-Nets, where errors of layers add up at random, 0.7 to 1.8 times. The zoo's
    bar is 4. Larger tiles, or points other than `winograd.POINTS`, do not hold it.
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


def _choose(
    module: ir.Operation,
    op: Any,
    once: set[ir.Value],
    spec: DeviceSpec | None,
    least: dict[str, int],
) -> None:
    """Replace a convolution where that is wanted: by its attribute, the plan, or its cost."""
    problem = _problem(op, once)
    if problem is None and spec is None:
        problem = "a device.spec on the module"
    if ALGORITHM in op.operation.attributes:
        tile = _side(text(op, ALGORITHM), op, problem, least, spec)
    elif has_plan(module):
        tile = _planned_side(module, op, problem, least, spec)
    else:
        tile = None if problem is not None else _cheapest_side(_convolution(op, least), spec)
    if tile is None:
        return
    with ir.InsertionPoint(op), op.location:
        new = _by_tiles(op, tile)
    op.operation.results[0].replace_all_uses_with(new)
    op.operation.erase()


def _planned_side(
    module: ir.Operation,
    op: Any,
    problem: str | None,
    least: dict[str, int],
    spec: DeviceSpec | None,
) -> int | None:
    """Return the side of the tiles by the module's plan, or by cost where that wants nothing that
    can be; None: computed directly. Note the decision, where there is one."""
    key = operation_key(op)
    choices = wanted(module, KIND, key)
    refused = []
    tile = None if problem is not None else _cheapest_side(_convolution(op, least), spec)
    for choice in choices:
        try:
            tile = _side(choice, op, problem, least, spec)
            break
        except MetadefError as error:
            refused.append(str(error))
    if problem is None or choices:
        chosen = DIRECT if tile is None else f"{WINOGRAD}({tile})"
        note_decision(module, KIND, key, op, chosen, refused)
    return tile


def _cheapest_side(conv: Convolution, spec: DeviceSpec | None) -> int | None:
    """Return the side of the tiles that cost least, None where windows cost less."""
    assert spec is not None
    tile = cheapest_tile(conv, spec)
    return tile if winograd_cycles(conv, tile, spec) < direct_cycles(conv, spec) else None


def _side(
    algorithm: str, op: Any, problem: str | None, least: dict[str, int], spec: DeviceSpec | None
) -> int | None:
    """Return the side of the tiles that an algorithm says, None for windows.

    Raises:
        MetadefError: no such algorithm, or it cannot be used here.
    """
    if algorithm == DIRECT:
        return None
    match = re.fullmatch(rf"{WINOGRAD}(?:\((\d+)\))?", algorithm)
    if match is None:
        near = near_names(algorithm, ALGORITHMS)
        raise _error(op, algorithm, f"is none of {', '.join(ALGORITHMS)}, winograd(TILE){near}")
    if problem is not None:
        raise _error(op, algorithm, f"needs {problem}")
    conv = _convolution(op, least)
    if match[1] is None:
        assert spec is not None
        return cheapest_tile(conv, spec)
    tile = int(match[1])
    if tile not in LEAST_CHANNELS:
        sides = ", ".join(map(str, LEAST_CHANNELS))
        raise _error(op, algorithm, f"needs tiles of {sides}, got {tile}")
    if conv.channels < LEAST_CHANNELS[tile]:
        rule = f"{LEAST_CHANNELS[tile]} channels to be accurate, got {conv.channels}"
        raise _error(op, algorithm, f"needs at least {rule}")
    return tile


def _error(op: Any, algorithm: str, problem: str) -> MetadefError:
    place = location_text(op.location)
    return MetadefError(f"'metadef.conv' op: {ALGORITHM} = \"{algorithm}\" {problem}; from {place}")


def _problem(op: Any, once: set[ir.Value]) -> str | None:
    """Return what a convolution lacks to be computed by tiles, or None."""
    x, w = (shape_of(v) for v in op.operation.operands[:2])
    result = shape_of(op.operation.results[0])
    if text(op, "layout") != "nhwc" or x.rank != 4 or not isinstance(x.element, ir.F32Type):
        return "f32 images in nhwc"
    if op.operation.operands[1] not in once or list(w.dims[1:3]) != [Dim.of(WINDOW)] * 2:
        return f"{WINDOW}x{WINDOW} weights that are known once"
    if integer(op, "groups") != 1:
        return "one group"
    if any(s != 1 for s in (*integers(op, "strides"), *integers(op, "dilations"))):
        return "strides and dilations of 1"
    if min(integers(op, "padding")) < 0:
        return "padding of 0 or more"
    known = all(d.is_static and d.value > 0 for d in (*x.dims[1:], *result.dims[1:]))
    return None if known else "sizes and channels that are static and not 0"


def _convolution(op: Any, least: dict[str, int]) -> Convolution:
    batch, height, width, outputs = shape_of(op.operation.results[0]).dims
    channels = shape_of(op.operation.operands[0]).dims[3]
    return Convolution(
        batch.evaluate(least), height.value, width.value, channels.value, outputs.value
    )


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
