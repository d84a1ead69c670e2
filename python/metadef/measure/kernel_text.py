"""How micro-benchmarks are written: MLIR as `vectorize` leaves it, with the runtime's ABI.

Each repeats its work `R` times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metadef.device.spec import DeviceSpec

#: bounds of the loop of repetitions
REPEATS = "%c0 to %R step %c1"
#: elements of a thread's results, which are stored so that nothing is left out as unused
_RESULTS = 32
#: elements of the tensor that results go to
SINK = _RESULTS * 1024


@dataclass(frozen=True)
class Kernel:
    """A module with the one function `@name`; `symbols` in the order of its index arguments."""

    name: str
    text: str
    symbols: tuple[str, ...]


def lanes(spec: DeviceSpec, element: str) -> int:
    """Return the elements of a vector; wider registers than of 512 bits work on parts."""
    return max(1, register_bits(spec) // bits(element))


def bits(element: str) -> int:
    """Return the bits of an element: 16 of `bf16`."""
    return int(re.sub(r"\D", "", element))


def register_bits(spec: DeviceSpec) -> int:
    return min(spec.vector_bits, 512)


def kernel_of(
    name: str, body: Sequence[str], memrefs: Sequence[str], *symbols: str, before: str = ""
) -> Kernel:
    names = ("R", *symbols)
    arguments = [*memrefs, *(f'%{s}: index {{metadef.symbol = "{s}"}}' for s in names)]
    lines = [
        before,
        f"func.func @{name}({', '.join([*arguments, '%tid: index', '%n: index'])}) {{",
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        *body,
        "return }",
    ]
    return Kernel(name, "\n".join(lines), names)


def loop(
    index: str,
    bounds: str,
    lines: Sequence[str],
    carried: Mapping[str, str] | None = None,
    yields: Sequence[str] = (),
    type_: str = "",
    results: str = "",
) -> list[str]:
    """Return a loop of `lines`; `carried` are the values that go round it, with their start."""
    if not carried:
        return [f"scf.for {index} = {bounds} {{", *lines, "}"]
    pairs = ", ".join(f"{name} = {start}" for name, start in carried.items())
    types = ", ".join([type_] * len(carried))
    results = results if len(carried) == 1 else f"{results}:{len(carried)}"
    return [
        f"{results} = scf.for {index} = {bounds} iter_args({pairs}) -> ({types}) {{",
        *lines,
        f"scf.yield {', '.join(yields)} : {types} }}",
    ]


def store_sum(values: str, count: int, vector: str, element: str) -> list[str]:
    """Store the sum of `count` values at the thread's place in %sink."""
    add = "arith.addf" if "f" in element else "arith.addi"
    lines = [f"%total1 = {add} {values}#0, {values}#1 : {vector}"]
    for i in range(2, count):
        lines.append(f"%total{i} = {add} %total{i - 1}, {values}#{i} : {vector}")
    return [
        *lines,
        f"%results = arith.constant {_RESULTS} : index",
        "%place = arith.muli %tid, %results : index",
        f"vector.store %total{count - 1}, %sink[%place] : memref<{SINK}x{element}>, {vector}",
    ]


def vector_of(spec: DeviceSpec, element: str) -> str:
    return f"vector<{lanes(spec, element)}x{element}>"


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def sink_of(element: str) -> str:
    return f"%sink: memref<{SINK}x{element}>"
