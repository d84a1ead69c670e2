"""Kernels measured alone, in another process: figures, wrong numbers told, crashes survived."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import pytest
import torch

from metadef.codegen.kernel import CompiledKernel
from metadef.codegen.llvm import host_target, object_code
from metadef.codegen.workers import Workers
from metadef.device.probe import probe
from metadef.device.spec import Cache as DataCache
from metadef.measure.alone import KernelRun, Rounds, measure_alone
from metadef.measure.kernel_runs import copies_from_memory, kernel_run
from metadef.runtime.back_graph import Tensor
from metadef.symbolic import Dim

FEW = Rounds(warm_up=1, rounds=4, tries=1)

#: y[i] = x[i] + K by one thread, for 64 elements
ADDS = """
define void @{name}(ptr %args, ptr %syms, ptr %scratch, i64 %tid, i64 %n, ptr %tickets) {{
entry:
  %x = load ptr, ptr %args
  %y.at = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %y.at
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %x, i64 %i
  %to = getelementptr float, ptr %y, i64 %i
  %v = load float, ptr %from
  %w = fadd float %v, {k}
  store float %w, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""
#: writes to address 0, or never ends
CRASHES = """
define void @{name}(ptr %args, ptr %syms, ptr %scratch, i64 %tid, i64 %n, ptr %tickets) {{
  store volatile i32 1, ptr null
  ret void
}}
"""
HANGS = """
define void @{name}(ptr %args, ptr %syms, ptr %scratch, i64 %tid, i64 %n, ptr %tickets) {{
  br label %loop
loop:
  %x = load volatile i64, ptr %tickets
  br label %loop
}}
"""
RUN = KernelRun(
    (Tensor((Dim.of(64),), torch.float32),), (Tensor((Dim.of(64),), torch.float32),), {}
)


def kernel(name: str, text: str, k: float = 1.0) -> CompiledKernel:
    code = object_code(text.format(name=name, k=f"{k:.6e}"), host_target())
    return CompiledKernel(name, name, code, serial=True)


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    found = Workers("metadef.measure.kernel_process", limit_seconds=60.0)
    yield found
    found.end()


def test_gives_figures_of_each_kernel(workers: Workers) -> None:
    same = [kernel("one", ADDS), kernel("two", ADDS)]
    found = measure_alone(same, dataclasses.replace(RUN, copies=3), 2, FEW, workers)
    for outcome in found:
        assert outcome.failed is None and outcome.difference == 0.0
        assert 0 < outcome.least_ns <= outcome.ns <= outcome.p90_ns < math.inf
        assert outcome.rounds == 4


def test_tells_how_far_the_results_are_apart(workers: Workers) -> None:
    found = measure_alone([kernel("right", ADDS), kernel("wrong", ADDS, 1.5)], RUN, 1, FEW, workers)
    # x + 1 is between 1.1 and 2, and the other is 0.5 more.
    assert 0.25 < found[1].difference < 0.46


def test_one_that_crashes_costs_its_own_figures_only(workers: Workers) -> None:
    kernels = [kernel("good", ADDS), kernel("bad", CRASHES), kernel("also", ADDS)]
    good, bad, also = measure_alone(kernels, RUN, 1, FEW, workers)
    assert good.failed is None and also.failed is None and good.ns > 0
    assert bad.failed is not None and "SIGSEGV" in bad.failed and "run kernel1" in bad.failed


def test_one_that_hangs_is_ended() -> None:
    short = Workers("metadef.measure.kernel_process", limit_seconds=10.0)
    try:
        good, bad = measure_alone([kernel("good", ADDS), kernel("bad", HANGS)], RUN, 1, FEW, short)
    finally:
        short.end()
    assert good.failed is None
    assert bad.failed is not None and "no end after 10 s" in bad.failed


def test_reads_the_tensors_of_a_text() -> None:
    batch = 'tensor<?x4xf32, #metadef.dims<["B*2", 4]>>'
    text = f"func.func @kernel(%x: {batch}, %i: tensor<3xi64>) -> {batch} {{ return %x : {batch} }}"
    run = kernel_run(text, {"B": 5}, copies=2)
    x = Tensor((Dim.of(10), Dim.of(4)), torch.float32)
    assert run == KernelRun((x, Tensor((Dim.of(3),), torch.int64)), (x,), {"B": 5}, 2)
    assert run.bytes == 2 * 160 + 24


def test_copies_do_not_fit_the_last_cache() -> None:
    spec = dataclasses.replace(probe(), caches=(DataCache(1, 32 << 10, 64, 1),))
    assert copies_from_memory(RUN, spec, 1) * RUN.bytes == 64 << 10
    large = dataclasses.replace(RUN, reads=(Tensor((Dim.of(1 << 28),), torch.float32),))
    assert copies_from_memory(large, spec, 1) == 1
