"""What a kernel's text takes, for values of its symbols: how to run it alone."""

from __future__ import annotations

from collections.abc import Mapping

from metadef import ir
from metadef.device.levels import capacities
from metadef.device.spec import DeviceSpec
from metadef.runtime.back_graph import Tensor
from metadef.runtime.back_graph_reader import tensor_of
from metadef.symbolic import Dim

from .alone import KernelRun

#: bytes that all copies of a run's tensors take together, at most
_MOST_BYTES = 512 << 20


def kernel_run(text: str, symbols: Mapping[str, int], *, copies: int = 1) -> KernelRun:
    """Return the run of the one kernel in `text` (as codegen/compile.py makes it)."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)  # as long as its function is read
        (function,) = module.body.operations
        type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        reads, writes = (
            tuple(_static(tensor_of(t), symbols) for t in types)
            for types in (type_.inputs, type_.results)
        )
    return KernelRun(reads, writes, symbols, copies)


def copies_from_memory(run: KernelRun, spec: DeviceSpec, threads: int) -> int:
    """Return how many copies of a run's tensors are twice the last cache, so that each of them is
    found in memory."""
    *caches, _ = capacities(spec, threads).values()
    held, wanted = max(run.bytes, 1), 2 * max(caches, default=0)
    return max(1, min(-(-wanted // held), _MOST_BYTES // held))


def _static(tensor: Tensor, symbols: Mapping[str, int]) -> Tensor:
    return Tensor(tuple(Dim.of(d.evaluate(symbols)) for d in tensor.dims), tensor.dtype)
