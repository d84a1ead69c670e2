"""What the machine reaches while programs are measured: the limits that a row of a bench meets."""

from __future__ import annotations

import torch

from metadef.device.probe import probe
from metadef.measure import kernels
from metadef.measure.arithmetic import OPERAND, fma
from metadef.measure.bench import Bench, Effort
from metadef.measure.kernel_text import SINK

#: of a slice
_EFFORT = Effort(warm_up=1, rounds=10, tries=1)
#: elements between the two tensors of a copy, so that their addresses differ in more than high bits
_APART = 512


class MachineLimits:
    """Micro-benchmarks, compiled: multiply-adds in f32, and copies that move `traffic` bytes.

    Half of the traffic is read and half is written, as by a program that reads a tensor once and
    writes one of its size once.
    """

    def __init__(self, threads: int, traffic: int) -> None:
        spec = probe()
        arithmetic = fma(spec, "f32")
        copies = (kernels.copy(spec), kernels.copy(spec, streaming=True))
        self._bench = Bench([arithmetic.kernel, *copies], spec, _EFFORT)
        self._threads = threads
        self._flops = arithmetic.operations * threads
        self._operand, self._sink = torch.full((OPERAND,), 0.5), torch.zeros(SINK)
        grain = kernels.grain(spec) * threads
        self._count = traffic // (2 * 4 * grain) * grain
        memory = torch.ones(2 * (self._count + _APART))
        self._tensors = [memory[i * (self._count + _APART) :][: self._count] for i in range(2)]

    def measure(self) -> dict[str, float]:
        """Return flop/s, and bytes/s of the better kind of copy where there is traffic."""
        times = self._bench.times
        fma = times("fma_f32", [self._operand, self._sink], {}, self._threads)
        found = {"fma": self._flops / fma.best * 1e9}
        if self._count:
            symbols = {"S": self._count}
            copies = (times(n, self._tensors, symbols, self._threads) for n in ("copy", "stream"))
            found["copy"] = 8 * self._count / min(copy.best for copy in copies) * 1e9
        return found
