"""Where kernels are measured: in a process of this machine, or on the machines of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from metadef.codegen.kernel import CompiledKernel
from metadef.measure.alone import KernelRun, Outcome, Rounds, measure_alone


class Measurer(Protocol):
    """Measures kernels that do the same, interleaved; several threads may ask at once."""

    @property
    def slots(self) -> int:
        """How many measurements can run at the same time, each on a machine of its own."""

    def measure(
        self, kernels: Sequence[CompiledKernel], run: KernelRun, threads: int, rounds: Rounds
    ) -> list[Outcome]:
        """Return an outcome for each kernel, as `measure_alone` does."""


class Here:
    """This machine, where two measurements at once would disturb each other."""

    slots = 1

    def measure(
        self, kernels: Sequence[CompiledKernel], run: KernelRun, threads: int, rounds: Rounds
    ) -> list[Outcome]:
        """Measure in a process of this machine."""
        return measure_alone(kernels, run, threads, rounds)
