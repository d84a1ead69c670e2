"""Kernels to object code: by workers, from the cache, and what a failure says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from metadef import ir
from metadef.codegen import compile as codegen
from metadef.codegen.compile import compile_kernels, kernel_sources
from metadef.codegen.kernel import CompiledKernel
from metadef.codegen.protocol import Message
from metadef.codegen.rehearsal import rehearse
from metadef.codegen.workers import WorkerCrash, Workers
from metadef.device.figures import figures
from metadef.device.probe import probe
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError, PipelineError
from metadef.pipeline import parse_passes, run_passes
from metadef.runtime.back_graph_reader import read_plan
from metadef.runtime.cache import Cache
from metadef.runtime.program import build_program
from metadef.symbolic import Dim

T = 'tensor<?x32xf32, #metadef.dims<["B", 32]>>'

#: two equal kernels
MODEL = f"""
func.func @main(%x: {T}) -> {T} {{
  %0 = "metadef.softmax"(%x) {{dim = 1 : i64, log = false}} : ({T}) -> {T}
  %1 = "metadef.softmax"(%0) {{dim = 1 : i64, log = false}} : ({T}) -> {T} loc("model.py":7:0)
  return %1 : {T}
}}
"""


@pytest.fixture(scope="module")
def module() -> ir.Module:
    with ir.make_context(), ir.Location.unknown():
        parsed = ir.Module.parse(MODEL)
    run_passes(parsed, parse_passes("form-kernels,outline-kernels,plan-memory"))
    return parsed


def test_compiles_once_and_then_reads_the_cache(module: ir.Module, tmp_path: Path) -> None:
    heard: list[tuple[str, bool]] = []
    cache = Cache(tmp_path)
    first = compile_kernels(module, probe(), cache=cache, on_kernel=lambda *k: heard.append(k))
    again = compile_kernels(module, probe(), cache=cache, on_kernel=lambda *k: heard.append(k))
    assert first == again
    names = list(first)
    assert heard == [(n, False) for n in names] + [(n, True) for n in names]
    x = torch.randn(5, 32)
    (got,) = build_program(read_plan(module), again, {}, threads=2)([x], {"B": 5})
    expected = x.double().softmax(1).softmax(1)
    torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=1e-7)


def test_has_the_caller_go_on_while_kernels_are_compiled(module: ir.Module, tmp_path: Path) -> None:
    order: list[str] = []
    compile_kernels(
        module,
        probe(),
        cache=Cache(tmp_path),
        on_kernel=lambda *_: order.append("kernel"),
        meanwhile=lambda: order.append("meanwhile"),
    )
    assert order[0] == "meanwhile" and order[1:]


def test_a_rehearsal_leaves_a_context_for_the_next_kernel() -> None:
    context = ir.make_context()
    rehearse(context)
    rehearse(context)


def test_rebuilds_a_damaged_entry(module: ir.Module, tmp_path: Path) -> None:
    first = compile_kernels(module, probe(), cache=Cache(tmp_path))
    for file in tmp_path.rglob("*.entry"):
        file.write_bytes(file.read_bytes()[:-7])
    assert compile_kernels(module, probe(), cache=Cache(tmp_path)) == first


def test_key_depends_on_what_code_generation_reads(module: ir.Module) -> None:
    spec = probe()

    def keys(device: DeviceSpec) -> list[str]:
        return [s.key for s in kernel_sources(module, device)]

    measured = replace(spec, name="another name", measured=figures(clock_hz=1e9))
    assert keys(measured) == keys(spec)
    assert keys(replace(spec, vector_bits=128)) != keys(spec)


def test_key_depends_on_the_compiler(module: ir.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [s.key for s in kernel_sources(module, probe())]
    monkeypatch.setattr(codegen, "compiler_version", lambda: "another version")
    assert [s.key for s in kernel_sources(module, probe())] != before


def test_compiled_kernel_survives_as_bytes() -> None:
    kernel = CompiledKernel(
        name="k",
        symbol="s",
        code=b"\n\x00code",
        symbols=("B", "S"),
        scratch=Dim.of("64*B"),
        thread_scratch=128,
        tickets=3,
        serial=True,
    )
    assert CompiledKernel.from_bytes("k", kernel.to_bytes()) == kernel


def failing(
    module: ir.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> Workers:
    """Have kernels compiled by a module with `text` in place of the worker."""
    (tmp_path / "failing_worker.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    workers = Workers("failing_worker")
    monkeypatch.setattr(codegen, "WORKERS", workers)
    return workers


CRASH = """
import os, sys
from metadef.codegen.protocol import receive
from metadef.codegen.worker import STAGE_MARK
receive(sys.stdin.buffer)
print(STAGE_MARK + "vectorize", "last words", sep="\\n", file=sys.stderr, flush=True)
os.abort()
"""


def test_a_crash_names_kernel_stage_and_reproducer(
    module: ir.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(module, tmp_path, monkeypatch, CRASH)
    with pytest.raises(PipelineError) as caught:
        compile_kernels(module, probe(), cache=Cache(tmp_path / "cache"))
    message, hint = str(caught.value).splitlines()
    assert message.startswith("kernel 'softmax_0' (from ")
    assert message.endswith("the compiler crashed: signal SIGABRT in stage 'vectorize': last words")
    reproducer = Path(hint.removeprefix("to reproduce: metadef-opt --run-reproducer "))
    assert "lower-to-linalg" in reproducer.read_text().splitlines()[0]
    reproducer.unlink()


def test_a_worker_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = CRASH.replace("os.abort()", "sys.exit(3)")
    (tmp_path / "failing_worker.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    workers = Workers("failing_worker")
    workers.start(1)
    for _ in range(2):
        with pytest.raises(WorkerCrash, match="exit code 3"):
            workers.ask(Message({"op": "build"}))


def test_a_worker_that_left_idle_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "idle_worker.py").write_text(
        """
import os, sys
from metadef.codegen import worker
if not os.path.exists(sys.argv[0] + ".once"):
    open(sys.argv[0] + ".once", "w").close()
    worker.IDLE_SECONDS = 0.0
worker.main()
"""
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    workers = Workers("idle_worker")
    answer = workers.ask(Message({"op": "build", "symbol": "k"}, b"module {}"))
    assert answer.header["kind"] == "user"
    assert (tmp_path / "idle_worker.py.once").exists()
    workers.end()


def test_a_worker_tells_mistakes_of_users_from_ours() -> None:
    workers = Workers()
    answer = workers.ask(Message({"op": "build", "symbol": "k"}, b"module {}"))
    assert answer.header["kind"] == "user" and "device.spec" in answer.header["error"]
    answer = workers.ask(Message({"op": "build", "symbol": "k"}, b"not mlir"))
    assert answer.header["kind"] == "internal" and "Unable to parse" in answer.header["error"]
    workers.end()


def test_an_unknown_triple_is_the_users_mistake(module: ir.Module, tmp_path: Path) -> None:
    spec = replace(probe(), triple="pdp11-unknown-none")
    with pytest.raises(
        MetadefError, match="kernel 'softmax_0'.*device triple 'pdp11-unknown-none'"
    ):
        compile_kernels(module, spec, cache=Cache(tmp_path), keep_failures=False)
