"""Programs: hand-written kernels and back graphs, run through the native loop."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest
import torch

from metadef import ir
from metadef.codegen.kernel import CompiledKernel
from metadef.codegen.llvm import host_target, llvm_ir, object_code
from metadef.diagnostics import MetadefError
from metadef.passes.lower_to_llvm import LowerToLlvm
from metadef.pipeline import run_passes
from metadef.runtime.back_graph_reader import read_plan
from metadef.runtime.program import Program, build_program
from metadef.symbolic import Dim

#: out[i] = a[i] + b[i], rows of 8 dealt to the threads in turn
ADD = """
func.func @add(%a: memref<?x8xf32> {metadef.dims = ["B", 8]},
               %b: memref<?x8xf32> {metadef.dims = ["B", 8]},
               %o: memref<?x8xf32> {metadef.dims = ["B", 8], bufferization.writable = true},
               %B: index {metadef.symbol = "B"}, %tid: index, %n: index) {
  %c0 = arith.constant 0 : index
  scf.for %i = %tid to %B step %n {
    %x = vector.load %a[%i, %c0] : memref<?x8xf32>, vector<8xf32>
    %y = vector.load %b[%i, %c0] : memref<?x8xf32>, vector<8xf32>
    %z = arith.addf %x, %y : vector<8xf32>
    vector.store %z, %o[%i, %c0] : memref<?x8xf32>, vector<8xf32>
  }
  return
}
"""

#: the sum of 64 numbers, by way of scratch memory: each thread doubles its part, thread 0 adds up
SUM = """
func.func private @metadef_barrier()
func.func @sum(%a: memref<64xf32>, %o: memref<f32>, %s: memref<?xi8> {metadef.scratch},
               %tid: index, %n: index) attributes {metadef.scratch = "256"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %part = memref.view %s[%c0][] : memref<?xi8> to memref<64xf32>
  scf.for %i = %tid to %c64 step %n {
    %x = memref.load %a[%i] : memref<64xf32>
    %y = arith.addf %x, %x : f32
    memref.store %y, %part[%i] : memref<64xf32>
  }
  func.call @metadef_barrier() : () -> ()
  %first = arith.cmpi eq, %tid, %c0 : index
  scf.if %first {
    %total = scf.for %i = %c0 to %c64 step %c1 iter_args(%t = %zero) -> f32 {
      %x = memref.load %part[%i] : memref<64xf32>
      %u = arith.addf %t, %x : f32
      scf.yield %u : f32
    }
    memref.store %total, %o[] : memref<f32>
  }
  return
}
"""

B8 = 'tensor<?x8xf32, #metadef.dims<["B", 8]>>'


def compiled(text: str, name: str, **fields: object) -> CompiledKernel:
    context = ir.make_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        run_passes(module, [LowerToLlvm()])
        code = object_code(llvm_ir(module), host_target())
    return CompiledKernel(name, name, code, **fields)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def kernels() -> dict[str, CompiledKernel]:
    return {
        "add": compiled(ADD, "add", symbols=("B",)),
        "sum": compiled(SUM, "sum", scratch=Dim.of(256)),
        "sum_serial": CompiledKernel(
            "sum_serial", "sum", compiled(SUM, "sum").code, scratch=Dim.of(256), serial=True
        ),
    }


def program(
    body: str,
    kernels: dict[str, CompiledKernel],
    threads: int = 1,
    weights: dict[str, torch.Tensor] | None = None,
) -> Program:
    """Build a program of a back graph written with `func.call` for `metadef.dispatch`."""
    context = ir.make_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(body)
        for op in list(ir.operations(module)):
            if op.operation.name == "func.call":
                _dispatch(op)
        return build_program(read_plan(module), kernels, weights or {}, threads)


def _dispatch(call: ir.OpView) -> None:
    from metadef.dialects.metadef.ops.dispatch import dispatch

    old = call.operation
    with ir.InsertionPoint(old):
        kernel = ir.FlatSymbolRefAttr(old.attributes["callee"]).value
        new = dispatch(kernel, list(old.operands), [r.type for r in old.results])
    new[0].owner.operation.attributes["offsets"] = old.attributes["offsets"]
    for before, after in zip(old.results, new, strict=True):
        before.replace_all_uses_with(after)
    old.erase()


#: ((x + y) + x) + y: the first sum dies in the second
CHAIN = f"""
func.func private @add({B8}, {B8}) -> {B8}
func.func @main(%x: {B8}, %y: {B8}) -> {B8}
    attributes {{metadef.arena = "64*B", metadef.arena_before = "64*B"}} {{
  %0 = func.call @add(%x, %y) {{offsets = ["0"]}} : ({B8}, {B8}) -> {B8}
  %1 = func.call @add(%0, %x) {{offsets = ["32*B"]}} : ({B8}, {B8}) -> {B8}
  %2 = func.call @add(%1, %y) {{offsets = ["output"]}} : ({B8}, {B8}) -> {B8}
  return %2 : {B8}
}}
"""


def chain_reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return 2 * (x.double() + y.double())


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_runs_a_chain_for_each_value_of_a_symbol(
    kernels: dict[str, CompiledKernel], threads: int
) -> None:
    run = program(CHAIN, kernels, threads)
    assert (run.symbols, run.threads) == (("B",), threads)
    for size in (1, 5, 64, 2, 5, 0):
        x, y = torch.randn(2, size, 8).unbind()
        (got,) = run([x, y], {"B": size})
        torch.testing.assert_close(got.double(), chain_reference(x, y), rtol=1e-6, atol=1e-5)


def test_outputs_outlive_later_calls(kernels: dict[str, CompiledKernel]) -> None:
    run = program(CHAIN, kernels)
    x = torch.ones(4, 8)
    first = run([x, x], {"B": 4})[0]
    second = run([2 * x, x], {"B": 4})[0]
    gc.collect()
    assert first.eq(4).all() and second.eq(6).all()


def test_reads_inputs_that_are_not_contiguous(kernels: dict[str, CompiledKernel]) -> None:
    run = program(CHAIN, kernels)
    x, y = torch.randn(8, 4).t(), torch.randn(1, 8).expand(4, 8)
    (got,) = run([x, y], {"B": 4})
    torch.testing.assert_close(got.double(), chain_reference(x, y), rtol=1e-6, atol=1e-5)


def test_calls_from_several_threads_do_not_meet(kernels: dict[str, CompiledKernel]) -> None:
    run = program(CHAIN, kernels, threads=2)
    wrong = []

    def call(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for i in range(100):
            x, y = torch.randn(2, 1 + (seed + i) % 7, 8, generator=generator).unbind()
            (got,) = run([x, y], {"B": len(x)})
            if not torch.allclose(got.double(), chain_reference(x, y), atol=1e-5):
                wrong.append((seed, i))

    callers = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


SUMS = """
func.func private @KERNEL(tensor<64xf32>) -> tensor<f32>
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<f32>, tensor<f32>)
    attributes {metadef.arena = "0", metadef.arena_before = "0"} {
  %0 = func.call @KERNEL(%x) {offsets = ["output"]}
      : (tensor<64xf32>) -> tensor<f32>
  %1 = func.call @KERNEL(%y) {offsets = ["output"]}
      : (tensor<64xf32>) -> tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}
"""


@pytest.mark.parametrize("kernel", ["sum", "sum_serial"])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_share_scratch_memory(
    kernels: dict[str, CompiledKernel], kernel: str, threads: int
) -> None:
    run = program(SUMS.replace("KERNEL", kernel), kernels, threads)
    assert run.bytes.scratch == Dim.of(256)
    for _ in range(200):
        x, y = torch.randn(2, 64).unbind()
        for got, source in zip(run([x, y]), (x, y), strict=True):
            torch.testing.assert_close(
                got.double(), 2 * source.double().sum(), rtol=1e-5, atol=1e-5
            )


ALIASES = """
func.func private @sum(tensor<64xf32>) -> tensor<f32>
func.func @init() -> tensor<f32>
    attributes {metadef.results = ["init.0"], metadef.arena = "0", metadef.arena_before = "0"} {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<64xf32>
  %0 = func.call @sum(%w) {offsets = ["output"]}
      : (tensor<64xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<8x8xf32>)
    -> (tensor<64xf32>, tensor<f32>, tensor<1xf32>, tensor<f32>, tensor<64xf32>)
    attributes {metadef.arena = "0", metadef.arena_before = "0"} {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<64xf32>
  %i = "metadef.weight"() {name = "init.0"} : () -> tensor<f32>
  %r = "metadef.reshape"(%x) : (tensor<8x8xf32>) -> tensor<64xf32>
  %0 = func.call @sum(%r) {offsets = ["output"]}
      : (tensor<64xf32>) -> tensor<f32>
  %1 = "metadef.reshape"(%0) : (tensor<f32>) -> tensor<1xf32>
  return %r, %0, %1, %i, %w
      : tensor<64xf32>, tensor<f32>, tensor<1xf32>, tensor<f32>, tensor<64xf32>
}
"""


def test_results_may_be_inputs_weights_and_views(kernels: dict[str, CompiledKernel]) -> None:
    weight = torch.randn(64, requires_grad=True)
    run = program(ALIASES, kernels, threads=2, weights={"w": weight})
    x = torch.randn(8, 8)
    flat, total, view, once, same = run([x])
    assert flat.data_ptr() == x.data_ptr() and flat.shape == (64,)
    assert view.shape == (1,) and view.data_ptr() == total.data_ptr()
    torch.testing.assert_close(total.double(), 2 * x.double().sum(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        once.double(), 2 * weight.detach().double().sum(), rtol=1e-5, atol=1e-5
    )
    assert same.data_ptr() == weight.data_ptr()
    assert run.bytes.constants == 64 * 4 + 4


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, "weight 'w': expected a tensor in the weight store, got none"),
        ({"w": torch.zeros(63)}, r"weight 'w': expected torch.float32 \[64\] on cpu, got .*\[63\]"),
        ({"w": torch.zeros(64).double()}, "got torch.float64"),
        ({"w": torch.zeros(64, device="meta")}, "on meta"),
    ],
)
def test_refuses_a_weight_that_does_not_fit(
    kernels: dict[str, CompiledKernel], weights: dict[str, torch.Tensor], message: str
) -> None:
    with pytest.raises(MetadefError, match=message):
        program(ALIASES, kernels, weights=weights)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_each_thread_tells_when_it_ran_each_step(
    kernels: dict[str, CompiledKernel], threads: int
) -> None:
    run = program(CHAIN, kernels, threads=threads)
    x, y = torch.randn(2, 16, 8).unbind()
    before = time.monotonic_ns()
    (result,), stamps = run.timed([x, y], {"B": 16})
    assert stamps.shape == (threads, 2 * 3 + 1)
    assert (np.diff(stamps, axis=1) >= 0).all()
    assert before <= stamps.min() and stamps.max() <= time.monotonic_ns()
    torch.testing.assert_close(result.double(), chain_reference(x, y), rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(run([x, y], {"B": 16})[0], result)


def test_no_thread_goes_on_before_all_have_come_to_a_barrier(
    kernels: dict[str, CompiledKernel],
) -> None:
    run = program(CHAIN, kernels, threads=2)
    _, stamps = run.timed(list(torch.randn(2, 16, 8).unbind()), {"B": 16})
    through, next_step = stamps[:, 1:-2:2], stamps[:, 2:-1:2]
    assert (through.max(axis=0) <= next_step.min(axis=0)).all()


def test_runs_inside_a_parallel_region_of_another_program(
    kernels: dict[str, CompiledKernel],
) -> None:
    """A team inside a team has one thread; the native loop asks how many there are."""
    import ctypes

    from metadef.runtime.jit import Library

    text = """
    declare void @GOMP_parallel(ptr, ptr, i32, i32)
    define void @outer(ptr %function) {
      call void @GOMP_parallel(ptr %function, ptr null, i32 2, i32 0)
      ret void
    }
    """
    library = Library([object_code(text, host_target())])
    run = program(CHAIN, kernels, threads=2)
    x, y = torch.randn(2, 9, 8).unbind()
    got: list[torch.Tensor] = []
    body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: got.extend(run([x, y], {"B": 9})))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("outer"))(
        ctypes.cast(body, ctypes.c_void_p)
    )
    assert len(got) == 2
    for tensor in got:
        torch.testing.assert_close(tensor.double(), chain_reference(x, y), rtol=1e-6, atol=1e-5)
