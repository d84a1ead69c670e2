"""Odd but right use: many tensors, long chains, threads, forks, interrupts; no crash, no wreck."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import metadef
from metadef.codegen.protocol import Message
from metadef.codegen.workers import Workers


def _agrees(function: Any, *args: torch.Tensor) -> None:
    model = metadef.compile(function, args, threads=1)
    torch.testing.assert_close(model(*args), function(*args), rtol=1e-5, atol=1e-5)


def test_a_hundred_inputs() -> None:
    xs = [torch.randn(8) for _ in range(100)]
    _agrees(lambda *xs: sum(i * x for i, x in enumerate(xs)), *xs)


def test_a_wide_concat() -> None:
    _agrees(lambda *xs: torch.cat(xs), *(torch.randn(3) for _ in range(100)))


def test_forty_outputs() -> None:
    _agrees(lambda x: [x + i for i in range(40)], torch.randn(3))


def test_outputs_that_are_one_another_or_an_input() -> None:
    def function(x: torch.Tensor) -> tuple[Any, ...]:
        y = x + 1
        return y, y, x, x.view(-1), None, 3

    x = torch.randn(2, 3)
    results = metadef.compile(function, (x,), threads=1)(x)
    assert results[2] is x and results[4:] == (None, 3)
    torch.testing.assert_close(results[:4], function(x)[:4])


def test_a_chain_of_a_thousand_ops() -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for i in range(1000):
            x = x.neg() if i % 2 else x * 1.001
        return x

    _agrees(chain, torch.randn(64))


def test_values_used_twice_do_not_double_the_work() -> None:
    def doubling(x: torch.Tensor) -> torch.Tensor:
        for _ in range(60):
            x = (x.reshape(8, 8).t().reshape(64) + x) * 0.5
        return x

    _agrees(doubling, torch.randn(64))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_no_elements(dim: int) -> None:
    shape = [3, 4, 5]
    shape[dim] = 0

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        both = torch.cat([x, x], 1), x.transpose(0, 2).contiguous()
        return x.sum(), x.sum(dim), x.softmax(dim), x @ x.transpose(1, 2), x.cumsum(dim), *both

    _agrees(function, torch.randn(shape))


def test_outputs_outlive_later_calls_and_the_model() -> None:
    model = metadef.compile(lambda x: x * 2, (torch.ones(50),), threads=1)
    first = model(torch.ones(50))
    for i in range(20):
        model(torch.full((50,), float(i)))
    del model
    assert torch.equal(first, torch.full((50,), 2.0))


def test_compiles_and_runs_in_several_threads() -> None:
    found: list[Any] = [None] * 4

    def work(i: int) -> None:
        layer, x = nn.Linear(4 + i, 3), torch.randn(2, 4 + i)
        try:
            found[i] = metadef.compile(layer, (x,), threads=1)(x) - layer(x).detach()
        except Exception as error:
            found[i] = error

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for difference in found:
        assert isinstance(difference, torch.Tensor), difference
        assert difference.abs().max() < 1e-5


def test_a_killed_worker_is_replaced_once() -> None:
    workers = Workers("metadef.codegen.worker")
    workers.start(1)
    (worker,) = workers._idle
    worker.process.kill()
    worker.process.wait()
    answer = workers.ask(Message({"op": "build", "symbol": "f"}, b"not MLIR"))
    assert "error" in answer.header  # it has read the text
    workers.end()


def _python(program: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_forked_process_goes_on() -> None:
    """In a process of its own: OpenMP's threads must have run before the fork."""
    process = _python("""
        import os, signal, warnings, torch, metadef
        x = torch.ones(64, 64)
        model = metadef.compile(lambda x: (x @ x).sin(), (x,), threads=2)
        expected, cosine = model(x), x.cos()
        child = os.fork()
        if child == 0:
            signal.alarm(30)  # of a child that waits for ever nothing is left
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                assert torch.equal(model(x), expected)
                assert torch.equal(model(x), expected)
            assert len(found) == 1 and "one thread" in str(found[0].message), found
            other = metadef.compile(lambda x: x.cos(), (x,), threads=2)
            assert (other(x) - cosine).abs().max() < 1e-5  # torch's own threads are gone too
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert torch.equal(model(x), expected)
    """)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors


def test_an_interrupt_leaves_no_workers(tmp_path: Path) -> None:
    process = _python(
        """
        import signal, torch, metadef
        from torch import nn
        # What a shell runs in the background ignores it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        layers = [nn.Linear(8 + i, 9 + i) for i in range(100)]
        tell = lambda stage, done, total: print(stage, flush=True)
        metadef.compile(nn.Sequential(*layers), (torch.ones(2, 8),), progress=tell)
        """,
        METADEF_CACHE_DIR=str(tmp_path),
    )
    assert process.stdout is not None
    # Before that, imports of others' are going on, some of which swallow an interrupt.
    assert "kernels\n" in iter(process.stdout.readline, "")
    workers = _wait_for_children(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
    end = time.monotonic() + 20
    while any(map(_runs, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(_runs, workers))


def _wait_for_children(pid: int) -> list[int]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if found:
            return [int(child) for child in found]
        time.sleep(0.05)
    raise AssertionError("no worker was started")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_backend_is_found_by_name() -> None:
    process = _python("""
        import warnings
        warnings.simplefilter("ignore")  # torch's own
        import sys, torch
        assert "metadef" not in sys.modules
        model = torch.compile(lambda x: x.sin() + 1, backend="metadef")
        assert torch.allclose(model(torch.ones(3)), torch.ones(3).sin() + 1)
    """)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_lanes_that_are_apart(dtype: torch.dtype) -> None:
    """A convolution over short rows gathers its lanes one by one, and stores some of a vector."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(8, 16, 3, padding=1), nn.SiLU()).to(dtype)
    x = torch.randn(2, 8, 50).to(dtype)
    got = metadef.compile(model, (x,))(x).double()
    expected = copy.deepcopy(model).double()(x.double())
    # Products and sums are in f32: two roundings to the dtype, of the convolution and of SiLU.
    assert (got - expected).abs().max() <= 4 * torch.finfo(dtype).eps * expected.abs().max()
