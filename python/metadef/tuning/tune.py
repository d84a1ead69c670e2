"""`metadef.tune`: searches for what suits a model on this machine."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metadef.diagnostics import MetadefError
from metadef.frontend.options import check_error_limit, default_options

from .objective import parse_objective
from .search import Progress, Request, tune_model

if TYPE_CHECKING:
    import torch

    from metadef.device.spec import DeviceSpec

    from .result import Tuned


def tune(
    module: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    device: DeviceSpec | str | Path | None = None,
    threads: int | None = None,
    objective: str = "latency",
    budget: float = 600.0,
    trials: int = 1000,
    seed: int = 0,
    storage: str | Path | None = None,
    cluster: str | None = None,
    error_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Tuned:
    """Search for choices that suit a model better than the compiler's own; return plan and gain.

    `metadef.compile(module, args, plan=tuned.plan)` uses what was found. `device` is one whose code
    this machine runs; without it, this machine. `objective` is latency, throughput, memory, energy,
    or a mixture such as `latency=0.7,memory=0.3`. `budget` is in seconds, `trials` are measured
    ones. Trials are kept in `storage`, a file or a URL as Optuna takes it (default: beside the
    compile cache): a search that was killed goes on where it was. `seed` decides what is proposed.
    With `cluster`, the address of a Ray cluster or `auto`, kernels are measured on its machines
    that announce the device (`metadef worker`). With an `error_limit`, the types that weights are
    stored in are searched too; outputs on the example arguments stay within it, relative to the
    largest of an output by default.

    Raises:
        MetadefError: the model cannot be compiled, an option has no such value, the budget is too
            small for a trial, or another process holds the storage.
    """
    if importlib.util.find_spec("optuna") is None:
        raise MetadefError(
            "tune: needs Optuna, which is not installed; pip install 'metadef[tune]'"
        )
    options = default_options(device=device, threads=threads)
    if error_limit is not None:
        check_error_limit(error_limit)
    request = Request(
        module=module,
        args=args,
        kwargs=dict(kwargs or {}),
        dynamic_shapes=dynamic_shapes,
        options=options,
        objective=parse_objective(objective),
        seconds=budget,
        trials=trials,
        seed=seed,
        storage=storage,
        cluster=cluster,
        error_limit=error_limit,
    )
    return tune_model(request, progress or (lambda _: None))
