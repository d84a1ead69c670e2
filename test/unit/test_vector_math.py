"""Elementary functions against double precision (f32) and extended precision (f64)."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
import torch
from metadef import ir
from metadef.codegen.llvm import llvm_ir
from metadef.passes.expand_math import ExpandMath
from metadef.pipeline import run_passes

LANES = 16
Array = np.ndarray
Native = Callable[..., Array]

LOWERING = (
    "convert-vector-to-scf,convert-vector-to-llvm,convert-scf-to-cf,convert-math-to-llvm,"
    "convert-arith-to-llvm,finalize-memref-to-llvm,convert-index-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts"
)
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}


def source(op: str, types: list[str], text: str) -> str:
    """A loop over memrefs that applies `text` (`{t}` is the vector type) to LANES at a time."""
    vector = f"vector<{LANES}x{types[0]}>"
    loads = "\n".join(
        f"%x{i} = vector.load %a{i}[%i] : memref<?x{t}>, vector<{LANES}x{t}>"
        for i, t in enumerate(types)
    )
    arguments = ", ".join(f"%a{i}: memref<?x{t}>" for i, t in enumerate(types))
    return f"""
    func.func @run({arguments}, %out: memref<?x{types[0]}>, %n: index) {{
      %zero = arith.constant 0 : index
      %step = arith.constant {LANES} : index
      scf.for %i = %zero to %n step %step {{
        {loads}
        %y = {text.format(t=vector)}
        vector.store %y, %out[%i] : memref<?x{types[0]}>, {vector}
      }}
      return
    }}"""


@functools.cache
def compiled(op: str, types: tuple[str, ...], text: str) -> Native:
    """Compile `op` on vectors through ExpandMath and LLVM into a function of numpy arrays."""
    context = ir.make_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(source(op, list(types), text))
        run_passes(module, [ExpandMath()])
        left = {o.operation.name for o in ir.operations(module.operation)} & {f"math.{op}"}
        assert not left
        ir.passmanager.PassManager.parse(f"builtin.module({LOWERING})").run(module.operation)
        code = llvm_ir(module)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    parsed = llvm.parse_assembly(code)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    # LLVM's own functions remain (fmaf where the machine has no fma), libm's must not.
    assert f"call float @{op}f" not in code
    address = engine.get_function_address("run")
    dtypes = [DTYPES[t] for t in types]

    def call(*arrays: Array) -> Array:
        n = len(arrays[0])
        padded = -(-n // LANES) * LANES
        ins = [np.resize(np.asarray(a, d), padded) for a, d in zip(arrays, dtypes, strict=True)]
        out = np.empty(padded, dtypes[0])
        arguments: list[ctypes.c_void_p | ctypes.c_int64] = []
        for array in [*ins, out]:
            pointer = ctypes.c_void_p(array.ctypes.data)
            arguments += [pointer, pointer, *(ctypes.c_int64(v) for v in (0, padded, 1))]
        ctypes.CFUNCTYPE(None, *(type(a) for a in (*arguments, ctypes.c_int64())))(address)(
            *arguments, ctypes.c_int64(padded)
        )
        return out[:n]

    call.engine = engine  # type: ignore[attr-defined]  # keeps the code alive
    return call


def native(op: str, dtype: str) -> Native:
    """A unary or binary float function as compiled."""
    if op in ("atan2", "powf"):
        return compiled(op, (dtype, dtype), f"math.{op} %x0, %x1 : {{t}}")
    return compiled(op, (dtype,), f"math.{op} %x0 : {{t}}")


def every_exponent(dtype: str, count: int, low: float = 0.0, high: float = math.inf) -> Array:
    """Numbers spread evenly over the representable ones of [low, high], of both signs."""
    ints = {"f32": np.int32, "f64": np.int64}[dtype]
    kind = DTYPES[dtype]
    ends = np.array([low, high], kind).view(ints)
    random = np.random.default_rng(0)
    bits = random.integers(ends[0], ends[1], count, dtype=ints)
    x = np.concatenate([bits, np.linspace(ends[0], ends[1] - 1, 64).astype(ints)]).view(kind)
    return np.concatenate([x, -x])


def ulps(got: Array, want: Array) -> float:
    """The largest error in units of the last place of got's format; NaNs and infinities must agree."""
    kind = got.dtype.type
    with np.errstate(all="ignore"):
        rounded = want.astype(kind)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
        # The largest finite number and infinity are neighbours: count the step as one place.
        top = np.finfo(kind).max
        finite = ~np.isnan(rounded)
        g = np.clip(got[finite], -top, top).astype(want.dtype)
        w = np.clip(want[finite], -want.dtype.type(top), want.dtype.type(top))
        place = np.spacing(np.abs(rounded[finite]).clip(max=top * kind(0.5))).astype(want.dtype)
        return float(np.max(np.abs(g - w) / place, initial=0.0))


TORCH = {"erf": torch.erf, "erfc": torch.erfc}
NUMPY = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "cos": np.cos,
    "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "powf": np.power, "sin": np.sin,
    "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


def reference(op: str, *xs: Array) -> Array:
    """The function in a format wider than that of `xs`: double for f32, extended for f64."""
    with np.errstate(all="ignore"):
        if op in TORCH and xs[0].dtype == np.float32:
            return TORCH[op](torch.from_numpy(xs[0]).double()).numpy()
        wide = [x.astype(np.float64 if x.dtype == np.float32 else np.longdouble) for x in xs]
        if op in TORCH:
            f = {"erf": mpmath.erf, "erfc": mpmath.erfc}[op]
            # mpmath cannot take huge numbers, and has one zero.
            text = [mpmath.nstr(f(mpmath.mpf(float(v.clip(-40, 40)))), 25) for v in xs[0]]
            values = np.array([np.longdouble(t) for t in text])
            return np.where(xs[0] == 0, xs[0], values) if op == "erf" else values
        return np.asarray(NUMPY[op](*wide))


#: op: bound in ulp for f32, for f64
BOUNDS = {
    "exp": (2, 1), "exp2": (2, 1), "expm1": (2, 2), "log": (2, 2), "log2": (3, 3), "log10": (3, 3),
    "log1p": (2, 2), "erf": (3, 3), "erfc": (1, 8), "tanh": (3, 3), "sin": (2, 2), "cos": (2, 2),
    "tan": (4, 4), "asin": (3, 3), "acos": (3, 3), "atan": (3, 3), "sinh": (1, 3), "cosh": (1, 4),
    "asinh": (1, 4), "acosh": (1, 4), "atanh": (1, 4), "cbrt": (1, 1), "rsqrt": (1, 1),
}  # fmt: skip
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("op", BOUNDS)
def test_within_its_bound(op: str, dtype: str) -> None:
    bound = BOUNDS[op][dtype == "f64"]
    slow = op in TORCH and dtype == "f64"
    kind = DTYPES[dtype]
    x = np.concatenate(
        [
            np.array(EDGES, kind),
            every_exponent(dtype, 100 if slow else 20000),
            every_exponent(dtype, 100 if slow else 20000, 2.0**-8, 2.0**7),
            np.nextafter(np.array(EDGES, kind), kind(math.inf)),
            np.linspace(-110, 110, 100 if slow else 20000, dtype=kind),
            np.linspace(-4, 4, 300 if slow else 20000, dtype=kind),
        ]
    )
    got = native(op, dtype)(x)
    assert ulps(got, reference(op, x)) <= bound


if __name__ == "__main__":
    for op in BOUNDS:
        for dtype in ("f32", "f64"):
            slow = op in TORCH and dtype == "f64"
            kind = DTYPES[dtype]
            n = 300 if slow else 400000
            x = np.concatenate([np.array(EDGES, kind), every_exponent(dtype, n), every_exponent(dtype, n, 2.0**-8, 2.0**7), np.linspace(-110, 110, n, dtype=kind), np.linspace(-4, 4, n, dtype=kind)])
            got = native(op, dtype)(x)
            try:
                u = ulps(got, reference(op, x))
            except AssertionError as e:
                w = reference(op, x).astype(kind)
                bad = np.isnan(got) != np.isnan(w)
                print(op, dtype, "NAN", x[bad][:5], got[bad][:5], w[bad][:5]); continue
            w = reference(op, x)
            with np.errstate(all="ignore"):
                wr = w.astype(kind)
                err = np.abs(np.clip(got,-np.finfo(kind).max,np.finfo(kind).max).astype(w.dtype) - np.clip(w,-np.finfo(kind).max,np.finfo(kind).max)) / np.spacing(np.abs(wr).clip(max=np.finfo(kind).max/2)).astype(w.dtype)
            i = np.nanargmax(err)
            sz = np.signbit(got) != np.signbit(wr)
            sz &= ~np.isnan(wr)
            print(f"{op:6} {dtype} {u:8.3f} bound {BOUNDS[op][dtype=='f64']} at {x[i]!r} got {got[i]!r} want {wr[i]!r}", "SIGN" if sz.any() else "", x[sz][:3])
