"""Runs MLIR's own passes from Python ones, with what it takes to set them up kept for the next run.

A canonicaliser collects the patterns of every dialect before it looks at the first op: for a small
kernel that took longer than all its passes. Each thread keeps the pass managers of the context that
it worked in last.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from metadef import ir


@dataclass(eq=False)
class _Managers:
    """The pass managers of a context by pipeline; they go before the context goes."""

    context: ir.Context | None = None
    by_pipeline: dict[str, ir.passmanager.PassManager] = field(default_factory=dict)

    def of(self, context: ir.Context) -> dict[str, ir.passmanager.PassManager]:
        if context is not self.context:
            self.by_pipeline.clear()
            self.context = context
        return self.by_pipeline

    def __del__(self) -> None:
        self.by_pipeline.clear()


class _Local(threading.local):
    def __init__(self) -> None:
        self.managers = _Managers()


_local = _Local()


def forget_managers() -> None:
    """Let go of this thread's pass managers, and of the context that they are of."""
    _local.managers = _Managers()


def run_upstream(module: ir.Operation, pipeline: str) -> None:
    """Run a comma-separated list of MLIR's passes on a module.

    What they leave is not verified: the runner of the Python pass does that once for all of them.
    """
    managers = _local.managers.of(module.context)
    if pipeline not in managers:
        manager = ir.passmanager.PassManager.parse(f"builtin.module({pipeline})", module.context)
        manager.enable_verifier(False)
        managers[pipeline] = manager
    managers[pipeline].run(module)
