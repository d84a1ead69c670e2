"""`DeviceSpec`: what a pass may know of the hardware, read from the module's `device.spec`.

Passes ask for traits; none tests a name, and none asks the machine it happens to run on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metadef.device import figures
from metadef.device.figures import Figures
from metadef.device.rules import KINDS_OF_FIGURES
from metadef.device.schema import validate

#: fields that are left out where they are not known
_OPTIONAL = ("fma_units", "gpu", "energy", "source", *KINDS_OF_FIGURES)


@dataclass(frozen=True)
class Instruction:
    """A multiply-accumulate instruction: each accumulator gains `depth` products of lhs and rhs."""

    kind: str
    lhs: str
    rhs: str
    accumulator: str
    depth: int
    intrinsic: str


@dataclass(frozen=True)
class Cache:
    """One level of data cache: the size of one, and how many hardware threads share it."""

    level: int
    bytes: int
    line_bytes: int
    shared_by: int


@dataclass(frozen=True)
class MatrixInstruction:
    """One instruction of a GPU: [m, k] x [k, n] added to [m, n], by the lanes of a warp or more."""

    m: int
    n: int
    k: int
    lhs: str
    rhs: str
    accumulator: str


@dataclass(frozen=True)
class Gpu:
    """What only a GPU has.

    `warp` are the lanes that run in step (a warp or a wavefront), `shared_memory_bytes` the most
    that one block or workgroup gets.
    """

    multiprocessors: int
    warp: int
    shared_memory_bytes: int
    matrix: tuple[MatrixInstruction, ...] = ()


@dataclass(frozen=True)
class Energy:
    """Which counter tells the device's energy: `rapl` or `nvml` with its domains; or why none."""

    counter: str
    domains: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class DeviceSpec:
    """One device. `features` are LLVM's, as `+avx512f,-sse4a`; sizes are bytes unless named so.

    A hardware thread of a GPU is a warp, and its vectors are as wide as the lanes of one.
    `fma_units` are the multiply-adds of whole vectors that a core starts in a cycle. `source` says
    where traits and theoretical figures are from.
    """

    name: str
    kind: str
    triple: str
    cpu: str
    features: str
    cores: int
    threads: int
    vector_bits: int
    vector_registers: int
    instructions: tuple[Instruction, ...]
    caches: tuple[Cache, ...]
    memory_bytes: int
    types: tuple[str, ...]
    alignment: int
    fma_units: int | None = None
    gpu: Gpu | None = None
    energy: Energy | None = None
    source: str = ""
    theoretical: Figures = Figures()
    measured: Figures = Figures()

    def cache(self, level: int) -> Cache | None:
        """Return the data cache of a level, None where the device has none."""
        return next((c for c in self.caches if c.level == level), None)

    def instruction(self, kind: str, lhs: str, rhs: str | None = None) -> Instruction | None:
        """Return the first instruction of a kind for operands of these types, or None."""
        wanted = (kind, lhs, lhs if rhs is None else rhs)
        return next((i for i in self.instructions if (i.kind, i.lhs, i.rhs) == wanted), None)

    def for_code_generation(self) -> DeviceSpec:
        """Return the spec with what generated code depends on, and nothing else."""
        return dataclasses.replace(
            self,
            name="device",
            fma_units=None,
            energy=None,
            source="",
            theoretical=Figures(),
            measured=Figures(),
        )

    def code_generation_key(self) -> str:
        """Return text that differs whenever generated code may differ."""
        data = to_data(self.for_code_generation())
        del data["name"]
        return _text(data)

    def fingerprint(self) -> str:
        """Return a hash of what the device is: traits and clock, not what was measured of it."""
        data = to_data(dataclasses.replace(self.for_code_generation(), name=self.name))
        data["clock_hz"] = self.theoretical.clock_hz
        return hashlib.sha256(_text(data).encode()).hexdigest()


def to_data(spec: DeviceSpec) -> dict[str, Any]:
    """Return the spec as plain data for JSON: what is not known is left out."""
    data: dict[str, Any] = _plain(dataclasses.asdict(spec))
    for kind in KINDS_OF_FIGURES:
        data[kind] = figures.to_data(getattr(spec, kind))
    for name in _OPTIONAL:
        if not data[name]:
            del data[name]
    if spec.energy is not None:
        data["energy"] = {k: v for k, v in data["energy"].items() if v}
    return data


def from_data(data: Any, source: str) -> DeviceSpec:
    """Return the spec that plain data describes; `source` says in errors where it is from.

    Raises:
        DeviceError: names the field, the rule and the value.
    """
    validate(data, source)
    fields = {name: value for name, value in data.items() if name != "$schema"}
    fields["instructions"] = tuple(Instruction(**i) for i in data["instructions"])
    fields["caches"] = tuple(Cache(**c) for c in data["caches"])
    fields["types"] = tuple(data["types"])
    if "gpu" in data:
        matrix = tuple(MatrixInstruction(**m) for m in data["gpu"].get("matrix", ()))
        fields["gpu"] = Gpu(**{**data["gpu"], "matrix": matrix})
    if "energy" in data:
        domains = tuple(data["energy"].get("domains", ()))
        fields["energy"] = Energy(**{**data["energy"], "domains": domains})
    for kind in KINDS_OF_FIGURES:
        fields[kind] = figures.from_data(data.get(kind, {}))
    return DeviceSpec(**fields)


def _text(data: dict[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value
