"""The rules of a device's data that span fields: what no hardware can be, and no schema can say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from metadef.device.figures import BANDWIDTHS, QUANTITIES, Figures, from_data

KINDS_OF_FIGURES = ("theoretical", "measured")
#: A measured figure may exceed the theoretical one by so much: the clock may be over that stated.
_TURBO = 1.5
#: How much faster a farther level, or a wider type, may seem: other work slows one measurement and
#: not the next, and a last cache that neighbours fill gives less than memory.
_NOISE = {"theoretical": 1.0, "measured": 3.0}
#: what the rounding of a data sheet's figures may come to
_ROUNDING = 1.02
_BITS = {"f32": 32, "f64": 64}

#: field, rule and value
Broken = tuple[str, str, str]


def endless_numbers(data: Any) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Yield path and value of each number that is infinite or none at all (NaN)."""
    left: list[tuple[tuple[Any, ...], Any]] = [((), data)]
    while left:
        path, value = left.pop()
        if isinstance(value, float) and not math.isfinite(value):
            yield path, value
        elif isinstance(value, dict):
            left += [((*path, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            left += [((*path, place), inner) for place, inner in enumerate(value)]


def broken_rules(data: Mapping[str, Any]) -> Iterator[Broken]:
    """Yield field, rule and value of what is impossible in data that keeps to the schema."""
    if data["threads"] < data["cores"]:
        yield "threads", f"at least one thread a core ({data['cores']})", str(data["threads"])
    yield from _caches(data["caches"])
    yield from _gpu(data)
    yield from _energy(data.get("energy"))
    kinds = {kind: from_data(data.get(kind, {})) for kind in KINDS_OF_FIGURES}
    for kind, figures in kinds.items():
        yield from _places(kind, figures, data)
        yield from _order(kind, figures, data)
    yield from _peak(kinds["theoretical"], data)
    yield from _sides(kinds["theoretical"], kinds["measured"])


def _caches(caches: list[dict[str, int]]) -> Iterator[Broken]:
    for i, (near, far) in enumerate(zip(caches, caches[1:], strict=False), start=1):
        if far["level"] <= near["level"]:
            yield f"caches[{i}].level", f"more than {near['level']}", str(far["level"])
        if far["bytes"] < near["bytes"]:
            rule = f"at least the {near['bytes']} bytes of level {near['level']}"
            yield f"caches[{i}].bytes", rule, str(far["bytes"])


def _gpu(data: Mapping[str, Any]) -> Iterator[Broken]:
    gpu = data.get("gpu")
    if gpu is None:
        return
    if data["kind"] != "gpu":
        yield "gpu", "nothing, as the kind is not gpu", "traits of a GPU"
    if gpu["multiprocessors"] != data["cores"]:
        rule = f"as many as there are cores ({data['cores']})"
        yield "gpu.multiprocessors", rule, str(gpu["multiprocessors"])


def _energy(energy: Mapping[str, Any] | None) -> Iterator[Broken]:
    if energy is None:
        return
    if energy["counter"] == "none" and "reason" not in energy:
        yield "energy.reason", "why no counter can be read", "nothing"
    if energy["counter"] != "none" and not energy.get("domains"):
        yield "energy.domains", f"what {energy['counter']} counts", "nothing"


def _places(kind: str, figures: Figures, data: Mapping[str, Any]) -> Iterator[Broken]:
    """Levels are the device's, and so are numbers of threads."""
    levels = [f"l{c['level']}" for c in data["caches"]] + ["memory"]
    for f, after in itertools.zip_longest(figures.entries, figures.entries[1:]):
        field = f"{kind}.{f.quantity}" + f".{f.of}" * bool(f.of)
        if after and (f.quantity, f.of, f.threads) == (after.quantity, after.of, after.threads):
            yield field, "each number of threads once", f"{f.threads} twice"
        if f.of and f.quantity != "flops" and f.of not in levels:
            rule = f"a level that the device has ({', '.join(levels)})"
            yield f"{kind}.{f.quantity}", rule, f"'{f.of}'"
        if f.threads is not None and f.threads > data["threads"]:
            yield field, f"at most the {data['threads']} threads of the device", str(f.threads)


def _order(kind: str, figures: Figures, data: Mapping[str, Any]) -> Iterator[Broken]:
    """A farther level is slower than each nearer one, and f64 no faster than f32."""
    slack = _NOISE[kind]
    levels = [f"l{c['level']}" for c in data["caches"]] + ["memory"]
    for threads in dict.fromkeys(f.threads for f in figures.entries):
        for quantity in (*BANDWIDTHS, "latency_ns"):
            found = [(n, v) for n in levels if (v := figures.value(quantity, n, threads))]
            for (nearer, near), (farther, far) in zip(found, found[1:], strict=False):
                if quantity == "latency_ns" and near > slack * far:
                    rule = f"no less than the {near:g} of {nearer}, which is nearer"
                    yield f"{kind}.latency_ns.{farther}", rule, f"{far:g}"
                if quantity != "latency_ns" and far > slack * near:
                    rule = f"no more than the {near:g} of {nearer}, which is nearer"
                    yield f"{kind}.{quantity}.{farther}", rule, f"{far:g}"
        single, double = (figures.value("flops", e, threads) for e in ("f32", "f64"))
        if single and double and double > slack * single:
            yield f"{kind}.flops.f64", f"no more than the {single:g} of f32", f"{double:g}"


def _peak(theoretical: Figures, data: Mapping[str, Any]) -> Iterator[Broken]:
    """Cores * clock * units * lanes * 2 is the peak of a CPU whose units are known."""
    if not theoretical.clock_hz or "fma_units" not in data:
        return
    vectors = data["cores"] * theoretical.clock_hz * data["fma_units"]
    for element, bits in _BITS.items():
        peak = vectors * (data["vector_bits"] // bits) * 2
        stated = theoretical.flops.get(element)
        if stated and stated > _ROUNDING * peak:
            rule = f"at most {peak:g} (cores * clock_hz * fma_units * lanes * 2)"
            yield f"theoretical.flops.{element}", rule, f"{stated:g}"


def _sides(theoretical: Figures, measured: Figures) -> Iterator[Broken]:
    """What was measured is within what the hardware can do."""
    bounds: dict[str, tuple[float | None, float | None]] = {
        "clock_hz": (theoretical.clock_hz, measured.clock_hz)
    }
    for quantity in ("flops", "bandwidth"):
        found: Mapping[str, float] = getattr(measured, quantity)
        for of, reached in found.items():
            bounds[f"{quantity}.{of}"] = (getattr(theoretical, quantity).get(of), reached)
    for field, (bound, rate) in bounds.items():
        if bound and rate and rate > _TURBO * bound:
            unit = QUANTITIES[field.partition(".")[0]][0]
            rule = f"at most {_TURBO:g} times the theoretical {bound:g} {unit}"
            yield f"measured.{field}", rule, f"{rate:g}"
