"""The kernels that a model has on a device, as text, compiled by nobody yet.

for kernel in model_kernels(module, args, spec=this_device()):
    print(kernel.source.name, kernel.structure, kernel.runs)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metadef import ir
from metadef.codegen.compile import KernelSource, dispatched_kernels, kernel_source
from metadef.device.attribute import set_device
from metadef.device.spec import DeviceSpec
from metadef.pass_runner import PassRunner
from metadef.passes._structure import kernel_key
from metadef.pipelines import passes_of
from metadef.runtime.back_graph_reader import read_plan

from .export import export
from .importer import import_graph
from .kernels import KernelSummary, summarize_kernels


@dataclass(frozen=True)
class ModelKernel:
    """A kernel that calls of a model run, `runs` times each; `structure` is its key in plans."""

    source: KernelSource
    structure: str
    summary: KernelSummary
    runs: int


def model_kernels(
    module: Any,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    spec: DeviceSpec,
    dynamic_shapes: Any = None,
) -> list[ModelKernel]:
    """Return the kernels of a model in the order in which they first run; @init's are left out.

    Raises:
        MetadefError: the model cannot be exported, or has an op that only torch runs.
    """
    capture = export(module, args, kwargs, dynamic_shapes).graph
    graph = import_graph(capture.module, capture.source_of, capture.symbols)
    set_device(graph, spec)
    PassRunner(verify=False, keep_failures=False).run(graph, passes_of("front"))
    runs = Counter(step.kernel for step in read_plan(graph).main.steps)
    summaries = {summary.name: summary for summary in summarize_kernels(graph)}
    found = {}
    for function, claims_noalias in dispatched_kernels(graph):
        source = kernel_source(function, spec, claims_noalias)
        if source.name in runs:
            with graph.context, ir.Location.unknown():
                key = kernel_key(function)
            found[source.name] = ModelKernel(source, key, summaries[source.name], runs[source.name])
    return [found[name] for name in runs]
