"""`DeviceSpec`: what a pass may know of the hardware, read from the module's `device.spec`.

Passes ask for traits; none tests a name, and none asks the machine it happens to run on.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from metadef.device.schema import validate


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
class Figures:
    """Figures of speed, all theoretical or all measured; None and absence are "not known".

    `flops`: operations/s of the whole device by element type. `bandwidth`: bytes/s of the whole
    device by level (`l1`, `l2`, ..., `memory`). `fork_join_ns` and `barrier_ns`: over all threads.
    """

    clock_hz: float | None = None
    flops: Mapping[str, float] = field(default_factory=dict)
    bandwidth: Mapping[str, float] = field(default_factory=dict)
    fork_join_ns: float | None = None
    barrier_ns: float | None = None


@dataclass(frozen=True)
class DeviceSpec:
    """One device. `features` are LLVM's, as `+avx512f,-sse4a`; sizes are bytes unless named so."""

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
    theoretical: Figures = Figures()
    measured: Figures = Figures()

    def cache(self, level: int) -> Cache | None:
        """Return the data cache of a level, None where the device has none."""
        return next((c for c in self.caches if c.level == level), None)

    def instruction(self, kind: str, lhs: str, rhs: str | None = None) -> Instruction | None:
        """Return the first instruction of a kind for operands of these types, or None."""
        wanted = (kind, lhs, lhs if rhs is None else rhs)
        return next((i for i in self.instructions if (i.kind, i.lhs, i.rhs) == wanted), None)

    def code_generation_key(self) -> str:
        """Return text that differs whenever generated code may differ: all but the name and what
        was measured."""
        data = to_data(self)
        del data["name"]
        data.pop("measured", None)
        return json.dumps(data, sort_keys=True, separators=(",", ":"))


def to_data(spec: DeviceSpec) -> dict[str, Any]:
    """Return the spec as plain data for JSON: what is not known is left out."""
    data: dict[str, Any] = _plain(dataclasses.asdict(spec))
    for kind in ("theoretical", "measured"):
        data[kind] = {k: v for k, v in data[kind].items() if v is not None and v != {}}
        if not data[kind]:
            del data[kind]
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
    for kind in ("theoretical", "measured"):
        fields[kind] = Figures(**data.get(kind, {}))
    return DeviceSpec(**fields)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value
