"""Whether a kernel under a choice gives what it gives by default: tried once, and remembered."""

from __future__ import annotations

import hashlib
from typing import Any

from metadef import ir
from metadef.codegen.kernel import CompiledKernel
from metadef.codegen.protocol import Message
from metadef.codegen.workers import WORKERS, WorkerCrash, WorkerKilled
from metadef.device.spec import DeviceSpec
from metadef.dialects.metadef.types import dims_of, element_of
from metadef.passes._kernel_abi import SYMBOLS
from metadef.runtime.cache import Cache
from metadef.runtime.host import this_device

#: a kernel that runs alone for so many seconds hangs
LIMIT_SECONDS = 60.0
#: A symbol counts as the least value from here on that it can have: more than a box of rows.
_SYMBOL_VALUE = 48
_RIGHT = b"right"


def trust_key(chosen: str, default: str) -> str:
    """Return what the comparison of two kernels is remembered under, by their keys."""
    return hashlib.sha256(f"trust {chosen} {default}".encode()).hexdigest()


def remembered(cache: Cache, chosen: str, default: str) -> str | None:
    """Return what came of an earlier comparison, '' for no difference; None: there was none."""
    content = cache.get(trust_key(chosen, default))
    return None if content is None else "" if content == _RIGHT else content.decode()


def compare(
    function: ir.OpView,
    chosen: CompiledKernel,
    default: CompiledKernel,
    spec: DeviceSpec,
    cache: Cache,
) -> str:
    """Run both builds of `function` alone on random data; return how they differ, '' for not.

    A worker runs them: a crash or a hang is a difference like another. What this machine cannot run
    is not run.
    """
    if not runs_here(spec):
        return ""
    header = {"op": "compare", **_trial(function, chosen, default), "split": len(chosen.code)}
    try:
        request = Message(header, chosen.code + default.code)
        answer = WORKERS.ask(request, limit_seconds=LIMIT_SECONDS)
        found = str(answer.header.get("error") or answer.header["difference"] or "")
    except WorkerKilled as killed:
        return f"it could not be run alone: {killed}"
    except WorkerCrash as crash:
        found = f"run alone, it crashed: {crash}"
    cache.put(trust_key(chosen.key, default.key), found.encode() or _RIGHT)
    return found


def runs_here(spec: DeviceSpec) -> bool:
    """Tell whether this machine has what a device has."""
    here = this_device()
    wanted = {f for f in spec.features.split(",") if f.startswith("+")}
    return spec.triple == here.triple and wanted <= set(here.features.split(","))


def _trial(function: ir.OpView, chosen: CompiledKernel, default: CompiledKernel) -> dict[str, Any]:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    types = [*type_.inputs, *type_.results]
    names = {name for t in types for dim in dims_of(t) for name in dim.symbols}
    names |= {name for kernel in (chosen, default) for name in kernel.symbols}
    values = _symbol_values(function, names)
    tensors = [
        [str(element_of(t)), [max(dim.evaluate(values), 0) for dim in dims_of(t)]] for t in types
    ]
    builds = [
        {
            "symbol": kernel.symbol,
            "scratch": kernel.scratch.evaluate(values) + kernel.thread_scratch,
            "tickets": kernel.tickets,
        }
        for kernel in (chosen, default)
    ]
    return {
        "tensors": tensors,
        "inputs": len(list(type_.inputs)),
        "symbols": [values[name] for name in chosen.symbols],
        "builds": builds,
    }


def _symbol_values(function: ir.OpView, names: set[str]) -> dict[str, int]:
    """Return values for the symbols of a kernel that the module allows."""
    module = function.operation.parent
    declared = ir.DictAttr(module.attributes[SYMBOLS]) if SYMBOLS in module.attributes else {}
    values = {}
    for name in names:
        bounds = ir.DictAttr(declared[name]) if name in declared else {}
        least, most, divisor = (
            ir.IntegerAttr(bounds[bound]).value if bound in bounds else default
            for bound, default in (("min", 0), ("max", _SYMBOL_VALUE), ("divisor", 1))
        )
        value = -(-max(least, min(_SYMBOL_VALUE, most)) // divisor) * divisor
        values[name] = value if value <= most else most
    return values
