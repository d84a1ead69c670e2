"""Object code in this process: loaded, called, refused; other targets and assembly."""

from __future__ import annotations

import ctypes
import gc
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from metadef.codegen.llvm import (
    VECTOR_CHAINS,
    VECTOR_LOOPS,
    Optimisation,
    Target,
    assembly,
    host_target,
    object_code,
    optimised_llvm_ir,
)
from metadef.codegen.protocol import Message
from metadef.codegen.workers import WorkerCrash
from metadef.diagnostics import MetadefError, PipelineError
from metadef.runtime import host, jit
from metadef.runtime.cache import Cache
from metadef.runtime.elf import is_object_file
from metadef.runtime.jit import Library, _address_of, _dispatch_code, dispatch_loop
from metadef.runtime.linker import LinkedCode
from metadef.runtime.mcjit import LoadedCode

FMA = """
define <8 x float> @mul_add(<8 x float> %a, <8 x float> %b, <8 x float> %c) {
  %p = fmul contract <8 x float> %a, %b
  %s = fadd contract <8 x float> %p, %c
  ret <8 x float> %s
}
"""

ELEMENT = "define i32 @SYMBOL() {\n  ret i32 VALUE\n}\n"


def test_loads_several_objects_and_calls_them() -> None:
    objects = [
        object_code(ELEMENT.replace("SYMBOL", f"f{i}").replace("VALUE", str(i)), host_target())
        for i in range(3)
    ]
    library = Library(objects)
    call = ctypes.CFUNCTYPE(ctypes.c_int)
    assert [call(library.address(f"f{i}"))() for i in range(3)] == [0, 1, 2]


def test_libraries_with_the_same_symbol_live_side_by_side() -> None:
    libraries = [
        Library([object_code(ELEMENT.replace("SYMBOL", "f").replace("VALUE", v), host_target())])
        for v in ("4", "5")
    ]
    call = ctypes.CFUNCTYPE(ctypes.c_int)
    assert [call(library.address("f"))() for library in libraries] == [4, 5]
    del libraries[0]
    gc.collect()
    assert call(libraries[0].address("f"))() == 5


def test_what_keeps_its_order_leaves_the_next_as_it_was() -> None:
    """The order is a switch of the whole process."""
    text = """
    define void @f(ptr %p, i64 %n, i64 %stride) {
    entry:
      br label %loop
    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]
      %at = mul i64 %i, %stride
      %place = getelementptr float, ptr %p, i64 %at
      store float 0.0, ptr %place
      %next = add i64 %i, 1
      %more = icmp ult i64 %next, %n
      br i1 %more, label %loop, label %end
    end:
      ret void
    }
    """
    x86 = Target("x86_64-unknown-linux-gnu", "znver3", "", 256)
    codes = [object_code(text, x86, o) for o in (VECTOR_LOOPS, VECTOR_CHAINS, VECTOR_LOOPS)]
    assert codes[0] == codes[2] != codes[1]


def test_finds_libm() -> None:
    text = """
    declare double @erf(double)
    define double @f(double %x) {
      %y = call double @erf(double %x)
      ret double %y
    }
    """
    library = Library([object_code(text, host_target())])
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library.address("f"))
    assert function(0.5) == torch.erf(torch.tensor(0.5, dtype=torch.float64)).item()


def test_refuses_code_that_calls_what_nobody_has() -> None:
    text = """
    declare void @nobody_has_this()
    define void @f() {
      call void @nobody_has_this()
      ret void
    }
    """
    with pytest.raises(MetadefError, match="object code calls 'nobody_has_this'"):
        Library([object_code(text, host_target())])


def test_shares_the_openmp_runtime_of_torch() -> None:
    text = """
    declare i32 @omp_get_num_threads()
    declare void @GOMP_parallel(ptr, ptr, i32, i32)
    define internal void @count(ptr %out) {
      %n = call i32 @omp_get_num_threads()
      store i32 %n, ptr %out
      ret void
    }
    define i32 @f() {
      %out = alloca i32
      call void @GOMP_parallel(ptr @count, ptr %out, i32 2, i32 0)
      %n = load i32, ptr %out
      ret i32 %n
    }
    """
    before = _openmp_runtimes()
    library = Library([object_code(text, host_target())])
    assert ctypes.CFUNCTYPE(ctypes.c_int)(library.address("f"))() == 2
    # Others bring one of their own, as scikit-learn does.
    assert _openmp_runtimes() == before and any("/torch/" in path for path in before)


def _openmp_runtimes() -> set[str]:
    with open("/proc/self/maps") as maps:
        return {line.split()[-1] for line in maps if "libgomp" in line}


def test_dispatch_loop_is_compiled_once() -> None:
    assert dispatch_loop() is dispatch_loop()


def test_forms_fused_multiply_adds() -> None:
    if "+fma" not in host_target().features:
        pytest.skip("no fused multiply-add on this machine")
    assert "vfmadd" in assembly(FMA, host_target())


def test_emits_code_for_other_targets() -> None:
    arm = Target("aarch64-unknown-linux-gnu", "cortex-a72", "+neon", 128)
    assert "fmla" in assembly(FMA, arm)
    assert object_code(FMA, arm)[:4] == b"\x7fELF"
    riscv = Target("riscv64-unknown-linux-gnu", "generic-rv64", "+v", 128)
    assert "vfm" in assembly(FMA, riscv)


def test_names_an_unknown_target() -> None:
    with pytest.raises(MetadefError, match="device triple 'pdp11-unknown-none'"):
        object_code(FMA, Target("pdp11-unknown-none", "", "", 64))


def test_optimises_to_full_width() -> None:
    text = """
    define void @f(ptr noalias %x, ptr noalias %y) {
    entry:
      br label %loop
    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]
      %p = getelementptr float, ptr %x, i64 %i
      %v = load float, ptr %p
      %w = fmul float %v, %v
      %q = getelementptr float, ptr %y, i64 %i
      store float %w, ptr %q
      %next = add i64 %i, 1
      %more = icmp ult i64 %next, 4096
      br i1 %more, label %loop, label %exit
    exit:
      ret void
    }
    """
    skylake = Target("x86_64-unknown-linux-gnu", "skylake-avx512", "+avx512f", 512)
    assert "<16 x float>" in optimised_llvm_ir(text, skylake)


def test_code_of_the_dispatch_loop_is_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    code = _dispatch_code(cache)
    kept = sorted(tmp_path.rglob("*.entry"))
    assert kept
    assert _dispatch_code(cache) == code
    assert sorted(tmp_path.rglob("*.entry")) == kept


CALLS = """
@table = internal constant [4 x i32] [i32 1, i32 2, i32 4, i32 8], align 16
declare double @exp(double)
declare i32 @other(i32)
define double @f(double %x, i64 %i) {
  %at = getelementptr [4 x i32], ptr @table, i64 0, i64 %i
  %n = load i32, ptr %at
  %m = call i32 @other(i32 %n)
  %y = sitofp i32 %m to double
  %e = call double @exp(double %x)
  %z = fmul double %e, %y
  ret double %z
}
define ptr @where() {
  ret ptr @exp
}
"""

OTHER = """
define i32 @other(i32 %n) {
  switch i32 %n, label %none [ i32 1, label %a  i32 2, label %b  i32 4, label %c  i32 8, label %d ]
a:
  ret i32 10
b:
  ret i32 35
c:
  ret i32 -7
d:
  ret i32 12
none:
  ret i32 0
}
"""


@pytest.mark.parametrize("loader", [LinkedCode, LoadedCode])
@pytest.mark.parametrize("level", [0, 3])
def test_links_constants_calls_and_addresses(loader: Any, level: int) -> None:
    objects = [
        object_code(text, host_target(), Optimisation(level=level)) for text in (CALLS, OTHER)
    ]
    if loader is LinkedCode and not is_object_file(objects[0]):
        pytest.skip("object files of another machine")
    code = loader(objects, lambda name: 0 if name == "other" else _address_of(name))
    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(code.address("f"))
    assert [f(1.0, i) for i in range(4)] == pytest.approx([math.e * n for n in (10, 35, -7, 12)])
    where = ctypes.CFUNCTYPE(ctypes.c_void_p)(code.address("where"))
    assert where() == _address_of("exp")
    assert code.address("nobody") is None


def test_refuses_code_with_variables() -> None:
    text = """
    @count = global i32 7
    define i32 @f() {
      %n = load i32, ptr @count
      ret i32 %n
    }
    """
    content = object_code(text, host_target())
    if not is_object_file(content):
        pytest.skip("object files of another machine")
    with pytest.raises(MetadefError, match="expected no variables, got '.data'"):
        LinkedCode([content], _address_of)


@pytest.mark.parametrize("answer", [Message({"kind": "internal", "error": "no room"}), None])
def test_dispatch_loop_that_cannot_be_made_is_not_kept(
    answer: Message | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(request: Message) -> Message:
        if answer is None:
            raise WorkerCrash("signal SIGKILL")
        return answer

    cache = Cache(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(jit.WORKERS, "ask", ask)
        with pytest.raises(PipelineError, match="no room|SIGKILL"):
            _dispatch_code(cache)
    assert is_object_file(_dispatch_code(cache))


def test_cpu_that_nobody_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [sys.executable, "-c", "import sys; sys.exit('no LLVM here')"]
    monkeypatch.setattr(host, "command", lambda program: failing)
    with pytest.raises(MetadefError, match="exit code 1: no LLVM here; pass the device's"):
        host.this_cpu(Cache(tmp_path))
