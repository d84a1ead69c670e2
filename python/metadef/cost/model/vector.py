"""A kernel under a choice as numbers for a regression: each says something of what it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from metadef.cost.table.measurement import KINDS, Measurement
from metadef.device.figures import Figures
from metadef.device.levels import level_names
from metadef.device.spec import DeviceSpec

from .analytic import home, moved, roofline

Array = np.ndarray[Any, Any]

#: amounts, whose ratios matter
_AMOUNTS = (
    *("flops", "argument_bytes", "result_bytes", "points", "reduction_depth", "chunk_depth"),
    *("chunks", "boxes", "boxes_per_core", "box_points", "box_rows", "panel_per_l1"),
    *("rows_per_l2", "panel_bytes", "rows_bytes", "parts", "nests"),
    *("block_lines", "block_pages", "block_runs_per_set"),
    *("box_lines", "box_pages", "box_runs_per_set"),
)
#: numbers that matter as they are
_PLAIN = (
    *("stages", "has_products", "body_ops", "epilogue_ops", "vector_elements", "over_reduction"),
    *("lane_use", "panel_use", "row_use", "rows", "vectors", "registers", "register_fill"),
    *("loads_per_product", "far_lanes", "copied", "box_imbalance", "windows"),
    *("block_line_use", "box_line_use"),
)
_PRECISIONS = ("f32", "f64", "bf16")
_LAYOUTS = ("plain", "packed", "nn", "nt", "nchw", "nhwc", "last", "first", "rows")
_SMALL = 2.0**-20

NAMES = (
    *(f"log {name}" for name in _AMOUNTS),
    *_PLAIN,
    *("kind", "layout", "threads", "level", "fused"),
    *_PRECISIONS,
    *("log roofline", "log intensity", "log vector ops", "log vectors of products"),
    *("log loads", "log box traffic", "log arithmetic", "log steps per box", "log box ns"),
)


def vectors(abouts: Sequence[Measurement], spec: DeviceSpec, limits: Figures) -> Array:
    """Return a row for each kernel, with the columns of `NAMES`; amounts as logarithms of 2."""
    return np.array([_vector(m, spec, limits) for m in abouts], dtype=np.float64)


def _vector(m: Measurement, spec: DeviceSpec, limits: Figures) -> list[float]:
    f = m.features

    def get(name: str, otherwise: float = 1.0) -> float:
        return float(f.get(name, otherwise))

    points, lanes = get("points"), get("vector_elements")
    uses = max(get("lane_use") * get("row_use"), 1e-3)
    turns = points / lanes / uses
    products = turns if f.get("has_products") else 0.0
    boxes = get("boxes")
    traffic = boxes * (get("panel_bytes", 0) + get("rows_bytes", 0)) * get("chunks")
    found = roofline(m, spec, limits).ns
    return [
        *(_log(get(name, 0)) for name in _AMOUNTS),
        *(get(name, 0) for name in _PLAIN),
        KINDS.index(m.kind) if m.kind in KINDS else -1,
        _LAYOUTS.index(m.layout) if m.layout in _LAYOUTS else -1,
        m.threads,
        level_names(spec).index(home(m, spec)),
        float(m.fused),
        *(float(p in m.precision) for p in _PRECISIONS),
        _log(found),
        _log(get("flops", 0) / max(moved(m), 1)),
        _log(turns * (get("body_ops") + get("epilogue_ops", 0) / get("reduction_depth"))),
        _log(products),
        _log(turns * get("loads_per_product")),
        _log(traffic / max(moved(m), 1)),
        _log(get("flops", 0) / max(points, 1)),
        _log(get("box_points") / lanes / max(get("rows") * get("vectors"), 1)),
        _log(found / boxes),
    ]


def _log(value: float) -> float:
    return math.log2(max(value, _SMALL))
