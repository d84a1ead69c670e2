"""Runs passes over a module: prints, verifies, times, and keeps the IR before a pass that fails."""

from __future__ import annotations

import os
import shlex
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from metadef import ir
from metadef.diagnostics import MetadefError, PipelineError, error_text
from metadef.instrumentation import Printing, Timing


class Step(Protocol):
    """Anything that runs on a `builtin.module`; `str` gives the text that parses back to it."""

    def name(self) -> str:
        """Return the name that print options select."""

    def path(self) -> tuple[str, ...]:
        """Return the ops the pass nests in, below the module, outermost first."""

    def misfit(self, module: ir.Operation) -> str | None:
        """Return what of `module` the pass is not written for, or None."""

    def run(self, module: ir.Operation) -> None:
        """Transform `module` in place."""


@dataclass(frozen=True)
class PassRunner:
    """How to run passes: what to print, whether to verify after each, where a reproducer goes.

    `lazily` verifies after the last pass alone, which halves the time of a long pipeline. Where
    that, or a pass, fails, all run again, verified one by one, to say which pass is at fault.
    With `reproducer` the file is there while each pass runs, so that it outlives a crash; without
    it a pass that fails leaves its reproducer in the folder for temporary files, unless
    `keep_failures` is off. `load` names the user files that the passes come from. `on_stage` is
    called after each pass.
    """

    printing: Printing = field(default_factory=Printing)
    verify: bool = True
    lazily: bool = False
    timing: Timing | None = None
    reproducer: Path | None = None
    keep_failures: bool = True
    load: tuple[str, ...] = ()
    on_stage: Callable[[Step, ir.Operation], None] | None = None

    def run(self, module: ir.Module, steps: Sequence[Step]) -> None:
        """Run `steps` one after another.

        Raises:
            MetadefError: what the pass itself raised, with a note that names the pass.
            PipelineError: any other failure of a pass, or IR that does not verify after it.
        """
        if not self.lazily:
            self._run(module.operation, steps)
            return
        with module.context:
            before = module.operation.clone(ip=False)
        quick = replace(self, verify=False, keep_failures=False)
        try:
            quick._run(module.operation, steps)
            module.operation.verify()
        except (PipelineError, ir.MLIRError):
            replace(self, printing=Printing(), on_stage=None)._run(before, steps)
            raise

    def _run(self, root: ir.Operation, steps: Sequence[Step]) -> None:
        with root.context, ir.Location.unknown():
            for index, step in enumerate(steps, start=1):
                self.printing.show_before(index, step.name(), str(step), root)
                before = root.clone(ip=False)
                if self.reproducer is not None:
                    self._write_reproducer(self.reproducer, step, before)
                self._run_step(step, root, before)
                if self.on_stage is not None:
                    self.on_stage(step, root)
                self.printing.show_after(index, step.name(), str(step), root)
        if self.reproducer is not None:
            self.reproducer.unlink(missing_ok=True)

    def _run_step(self, step: Step, root: ir.Operation, before: ir.Operation) -> None:
        start = time.perf_counter()
        doing = f"pass '{step}' failed"
        try:
            step.run(root)
            if self.verify:
                doing = f"the IR after pass '{step}' does not verify"
                root.verify()
        except MetadefError as error:
            error.add_note(f"while running pass '{step}'")
            raise
        except Exception as error:
            misfit = step.misfit(before)
            if misfit is not None:
                raise PipelineError(misfit) from None
            text = f"{doing}: {error_text(error)}{_place(error)}{self._reproduce(step, before)}"
            raise PipelineError(text) from error
        finally:
            if self.timing is not None:
                path = ("builtin.module", *step.path(), step.name())
                self.timing.add(path, time.perf_counter() - start)

    def _reproduce(self, step: Step, before: ir.Operation) -> str:
        """Write the reproducer; return the line that says how to use it, a newline before it."""
        path = self.reproducer
        if path is None and not self.keep_failures:
            return ""
        try:
            if path is None:
                handle, name = tempfile.mkstemp(prefix=f"metadef-{step.name()}-", suffix=".mlir")
                os.close(handle)
                path = Path(name)
                self._write_reproducer(path, step, before)
        except OSError as error:
            return f"\nthe IR before the pass could not be kept: {error}"
        command = ["metadef-opt", *(f"--load={file}" for file in self.load)]
        return f"\nto reproduce: {shlex.join([*command, '--run-reproducer', str(path)])}"

    def _write_reproducer(self, path: Path, step: Step, before: ir.Operation) -> None:
        text = str(step)
        for op in reversed(step.path()):
            text = f"{op}({text})"
        arguments = [f"--pass-pipeline=builtin.module({text})"]
        if not self.verify:
            arguments.append("--verify-each=false")
        asm = ""
        with suppress(ir.MLIRError):
            asm = before.get_asm(enable_debug_info=True)
        path.write_text(f"// configuration: {shlex.join(arguments)}\n{asm}")


def _place(error: Exception) -> str:
    """Return ` (at fuse.py:31)`, where Python raised `error`; MLIR's errors tell their place."""
    if isinstance(error, ir.MLIRError):
        return ""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f" (at {Path(frame.filename).name}:{frame.lineno})"
