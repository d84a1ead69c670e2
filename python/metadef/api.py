"""The public functions: `metadef.compile` and `metadef.check`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch

    from metadef.device.spec import DeviceSpec
    from metadef.frontend.compiled_model import CompiledModel
    from metadef.frontend.options import Options
    from metadef.frontend.report import Check, Progress
    from metadef.plan.plan import ExecutionPlan


def compile(
    module: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    device: DeviceSpec | str | Path | None = None,
    threads: int | None = None,
    fallback: Literal["eager", "error"] = "eager",
    print_ir_after_all: bool = False,
    ir_dir: str | Path | None = None,
    progress: Progress | None = None,
    plan: ExecutionPlan | str | Path | None = None,
    error_limit: float | None = None,
) -> CompiledModel:
    """Compile a model for example arguments; return a callable that takes arguments like them.

    `dynamic_shapes` names the dims that may vary, as in torch.export. `device` is a
    descriptor, its JSON file, or the name of a shipped one; without it, this machine. Ops that
    nobody can lower run in torch, with a warning, or raise with `fallback="error"`.
    `progress(stage, done, total)` is called as it goes. What a `plan`, or its JSON file, has for
    the model goes before the compiler's own rules; what of it cannot be is left to them, with a
    warning. With an `error_limit` weights of products that wait for memory may be stored in fewer
    bits, where the outputs' error, against the largest of an output, is expected to stay within it.

    Raises:
        MetadefError: the model cannot be exported or compiled; says where and what to do.
    """
    from metadef.frontend.compiled_model import compile_model

    options = _options(device, threads, fallback, print_ir_after_all, ir_dir, plan, error_limit)
    return compile_model(module, args, kwargs, dynamic_shapes, options, progress)


def check(
    module: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    device: DeviceSpec | str | Path | None = None,
) -> Check:
    """Tell for each op of a model who would run it: native code, linalg, or torch, and why.

    Raises:
        MetadefError: the model cannot be exported.
    """
    from metadef.frontend.compiler import check_graph
    from metadef.frontend.export import export
    from metadef.frontend.report import Check

    graph = export(module, args, kwargs, dynamic_shapes).graph
    options = _options(device, None, "eager", False, None)
    return Check(tuple(check_graph(graph, options).values()))


def _options(
    device: DeviceSpec | str | Path | None,
    threads: int | None,
    fallback: str,
    print_ir_after_all: bool,
    ir_dir: str | Path | None,
    plan: ExecutionPlan | str | Path | None = None,
    error_limit: float | None = None,
) -> Options:
    from metadef.frontend.options import default_options

    return default_options(
        device=device,
        threads=threads,
        fallback=fallback,
        print_ir_after_all=print_ir_after_all,
        ir_dir=None if ir_dir is None else Path(ir_dir),
        plan=plan,
        error_limit=error_limit,
    )
