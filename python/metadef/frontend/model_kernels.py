"""The kernels that calls of a model run, as text: of a compiled model, or of one that is not.

for kernel in model_kernels(module, args, spec=this_device()):
    print(kernel.source.name, kernel.key, kernel.runs)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from metadef import ir
from metadef.codegen.choices import ChoiceSpace, choice_space
from metadef.codegen.compile import KernelSource, dispatched_kernels, kernel_source, under_choice
from metadef.device.attribute import set_device
from metadef.device.spec import DeviceSpec
from metadef.pass_runner import PassRunner
from metadef.passes._structure import kernel_key
from metadef.pipelines import passes_of
from metadef.plan.kernel_choice import KernelChoice
from metadef.plan.plan import What
from metadef.runtime.back_graph_reader import read_plan

from .export import export
from .importer import import_graph
from .kernels import KernelSummary, summarize_kernel
from .part import Part
from .planning import what_of


@dataclass(frozen=True)
class ModelKernel:
    """The kernels of one structure that calls of a model run, `runs` times each.

    `source` is for `codegen.compile`, as by default; `key` is their structure key in plans;
    `names` are theirs in a profile.
    """

    source: KernelSource
    key: str
    summary: KernelSummary
    names: tuple[str, ...]
    runs: int

    @property
    def what(self) -> What:
        """What it is called in the words of people."""
        return what_of(self.summary)

    def space(self) -> ChoiceSpace:
        """Return the choices for it."""
        return choice_space(self.source.text)

    def under(self, choice: KernelChoice) -> KernelSource:
        """Return its source under a choice."""
        return under_choice(self.source, choice)


def model_kernels(
    module: Any,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    spec: DeviceSpec,
    dynamic_shapes: Any = None,
) -> list[ModelKernel]:
    """Return the kernels of a model that nobody compiled.

    Raises:
        MetadefError: the model cannot be exported, or has an op that only torch runs.
    """
    capture = export(module, args, kwargs, dynamic_shapes).graph
    graph = import_graph(capture.module, capture.source_of, capture.symbols)
    set_device(graph, spec)
    PassRunner(verify=False, keep_failures=False).run(graph, passes_of("front"))
    return _kernels_of(graph, spec)


def part_kernels(part: Part, spec: DeviceSpec) -> list[ModelKernel]:
    """Return the kernels of a compiled model's native part."""
    with ir.make_context(), ir.Location.unknown():
        found = _kernels_of(ir.Module.parse(part.front.back), spec)
    return [replace(k, names=tuple(part.prefix + name for name in k.names)) for k in found]


def _kernels_of(graph: ir.Module, spec: DeviceSpec) -> list[ModelKernel]:
    """Return the kernels of a planned back graph, in the order in which they first run; @init's are
    left out."""
    runs = Counter(step.kernel for step in read_plan(graph).main.steps)
    functions = {f.name.value: (f, noalias) for f, noalias in dispatched_kernels(graph)}
    found: dict[str, ModelKernel] = {}
    for name, count in runs.items():
        function, claims_noalias = functions[name]
        with graph.context, ir.Location.unknown():
            key = kernel_key(function)
        if (same := found.get(key)) is not None:
            found[key] = replace(same, names=(*same.names, name), runs=same.runs + count)
            continue
        source = kernel_source(function, spec, claims_noalias)
        with graph.context, ir.Location.unknown():
            summary = summarize_kernel(function)
        found[key] = ModelKernel(source, key, summary, (name,), count)
    return list(found.values())
