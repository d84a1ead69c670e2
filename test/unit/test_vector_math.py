"""Elementary functions against double precision (f32) and extended precision (f64)."""

from __future__ import annotations

import ctypes
import functools
import math
import re
from collections.abc import Callable

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
import torch

from metadef import ir
from metadef.codegen.llvm import Target, assembly, llvm_ir
from metadef.passes.expand_math import ExpandMath
from metadef.pipeline import run_passes

LANES = 16
Array = np.ndarray
Native = Callable[..., Array]

LOWERING = (
    "func.func(arith-expand{include-bf16=true}),"
    "convert-vector-to-scf,convert-vector-to-llvm,convert-scf-to-cf,convert-math-to-llvm,"
    "convert-arith-to-llvm,finalize-memref-to-llvm,convert-index-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts"
)
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}


def source(types: tuple[str, ...], text: str) -> str:
    """A loop over memrefs; `text` makes %y of %x0, ..., LANES at a time (`{t}` is their type)."""
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
        {text.format(t=vector)}
        vector.store %y, %out[%i] : memref<?x{types[0]}>, {vector}
      }}
      return
    }}"""


def lowered(types: tuple[str, ...], text: str) -> str:
    """Return the LLVM IR of the loop after ExpandMath."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(source(types, text))
        run_passes(module, [ExpandMath()])
        ir.passmanager.PassManager.parse(f"builtin.module({LOWERING})").run(module.operation)
        return llvm_ir(module)


@functools.cache
def compiled(types: tuple[str, ...], text: str) -> Native:
    """Compile a loop through ExpandMath and LLVM into a function of numpy arrays."""
    code = lowered(types, text)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    parsed = llvm.parse_assembly(code)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
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
        return compiled((dtype, dtype), f"%y = math.{op} %x0, %x1 : {{t}}")
    return compiled((dtype,), f"%y = math.{op} %x0 : {{t}}")


def every_exponent(dtype: str, count: int, low: float = 0.0, high: float = math.inf) -> Array:
    """Numbers spread evenly over the representable ones of [low, high], of both signs."""
    ints = {"f32": np.int32, "f64": np.int64}[dtype]
    kind = DTYPES[dtype]
    ends = np.array([low, high], kind).view(ints)
    random = np.random.default_rng(0)
    bits = random.integers(ends[0], ends[1], count, dtype=ints)
    x = np.concatenate([bits, np.linspace(ends[0], ends[1] - 1, 64).astype(ints)]).view(kind)
    return np.concatenate([x, -x])


def nans(dtype: str) -> Array:
    """NaNs of both signs, quiet and signalling, whose low bits could pass for an exponent."""
    quiet = {"f32": 0x7FC00000, "f64": 0x7FF8000000000000}[dtype]
    bits = np.array([quiet + 1, quiet + 0x80, quiet + 0x3FF, quiet // 2 * 2 - 0x1234], np.int64)
    ints = {"f32": np.int32, "f64": np.int64}[dtype]
    x = bits.astype(ints).view(DTYPES[dtype])
    return np.concatenate([x, -x])


def ulps(got: Array, want: Array) -> float:
    """The largest error in units of the last place of got's format; NaNs must agree."""
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
    "exp": (3, 1), "exp2": (3, 2), "expm1": (2, 2), "log": (2, 2), "log2": (3, 3), "log10": (3, 3),
    "log1p": (2, 2), "erf": (3, 3), "erfc": (1, 8), "tanh": (3, 3), "sin": (3, 3), "cos": (3, 3),
    "tan": (4, 4), "asin": (3, 3), "acos": (3, 3), "atan": (3, 3), "sinh": (1, 4), "cosh": (1, 4),
    "asinh": (1, 4), "acosh": (1, 4), "atanh": (1, 4), "cbrt": (1, 1), "rsqrt": (2, 2),
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
            nans(dtype),
            every_exponent(dtype, 100 if slow else 20000),
            every_exponent(dtype, 100 if slow else 20000, 2.0**-8, 2.0**7),
            np.nextafter(np.array(EDGES, kind), kind(math.inf)),
            np.linspace(-110, 110, 100 if slow else 20000, dtype=kind),
            np.linspace(-4, 4, 300 if slow else 20000, dtype=kind),
        ]
    )
    got = native(op, dtype)(x)
    assert ulps(got, reference(op, x)) <= bound


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("op", "bound"), [("powf", (1, 4)), ("atan2", (4, 4))])
def test_binary_function_within_its_bound(op: str, bound: tuple[int, int], dtype: str) -> None:
    kind = DTYPES[dtype]
    random = np.random.default_rng(1)
    edges = np.array(np.meshgrid(EDGES, EDGES), kind).reshape(2, -1)
    x = np.concatenate(
        [edges[0], every_exponent(dtype, 20000), every_exponent(dtype, 20000, 2**-4, 2**4)]
    )
    y = np.concatenate([edges[1], random.permutation(every_exponent(dtype, 20000, 2**-9, 2**9))])
    y = np.concatenate([y, random.uniform(-40, 40, len(x) - len(y)).astype(kind)])
    got, want = native(op, dtype)(x, y), reference(op, x, y)
    assert ulps(got, want) <= bound[dtype == "f64"]
    assert_same_signs(got, want)


@pytest.mark.parametrize("op", [op for op in BOUNDS if op not in ("rsqrt",)])
def test_keeps_the_sign_of_zero(op: str) -> None:
    x = np.array([0.0, -0.0], np.float32)
    assert_same_signs(native(op, "f32")(x), reference(op, x))
    assert_same_signs(native(op, "f64")(x.astype(np.float64)), reference(op, x))


def assert_same_signs(got: Array, want: Array) -> None:
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


@pytest.mark.parametrize("op", ["erf", "tanh"])
def test_never_exceeds_one(op: str) -> None:
    x = np.linspace(2, 12, 100000, dtype=np.float32)
    assert native(op, "f32")(x).max() == 1.0


@pytest.mark.parametrize("exponent", [0.5, -0.5, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0])
def test_short_constant_power_is_multiplications(exponent: float) -> None:
    text = f"%e = arith.constant dense<{exponent}> : {{t}}\n%y = math.powf %x0, %e : {{t}}"
    power = compiled(("f32",), text)
    x = every_exponent("f32", 1000, 2.0**-20, 2.0**20)
    x = x[x > 0]
    assert ulps(power(x), reference("powf", x, np.full_like(x, exponent))) <= 2


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_float_to_integer_power(dtype: str) -> None:
    power = compiled((dtype, "i32"), f"%y = math.fpowi %x0, %x1 : {{t}}, vector<{LANES}xi32>")
    n = np.random.default_rng(2).integers(-40, 40, 1000).astype(np.int32)
    x = np.random.default_rng(3).uniform(-8, 8, 1000).astype(DTYPES[dtype])
    assert ulps(power(x, n), reference("powf", x, n.astype(x.dtype))) <= 4


@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_integer_power_wraps_around(dtype: str) -> None:
    power = compiled((dtype, dtype), "%y = math.ipowi %x0, %x1 : {t}")
    x, n = (a.ravel() for a in np.meshgrid(np.arange(-9, 10), np.arange(-5, 70)))
    width = np.iinfo(DTYPES[dtype]).bits
    want = [
        int(b) ** int(e) if e >= 0 else {1: 1, -1: -1 if e % 2 else 1}.get(int(b), 0)
        for b, e in zip(x, n, strict=True)
    ]
    wrapped = [(w + 2 ** (width - 1)) % 2**width - 2 ** (width - 1) for w in want]
    np.testing.assert_array_equal(power(x, n), np.array(wrapped, DTYPES[dtype]))


def test_huge_angles_are_reduced_exactly() -> None:
    # The floats nearest to multiples of pi/2 (J.-M. Muller, "Elementary Functions", 2016).
    x = np.array([5.319372648326541e255, 6381956970095103 * 2.0**797, 1e22, 1e300])
    mpmath.mp.prec = 1200
    for op, f in (("sin", mpmath.sin), ("cos", mpmath.cos)):
        want = np.array([np.longdouble(mpmath.nstr(f(mpmath.mpf(float(v))), 25)) for v in x])
        assert ulps(native(op, "f64")(x), want) <= 3


@pytest.mark.parametrize(("dtype", "bits"), [("f16", 11), ("bf16", 8)])
@pytest.mark.parametrize("op", ["exp", "erf", "tanh", "log", "sin", "rsqrt"])
def test_narrow_floats_are_rounded_once_from_f32(op: str, dtype: str, bits: int) -> None:
    narrow = f"vector<{LANES}x{dtype}>"
    text = f"""%h = arith.truncf %x0 : {{t}} to {narrow}
        %m = math.{op} %h : {narrow}
        %y = arith.extf %m : {narrow} to {{t}}"""
    x = np.linspace(0.125, 8, 64, dtype=np.float32)
    want = reference(op, x)
    error = np.abs(compiled(("f32",), text)(x) - want) / np.abs(want).clip(2.0**-6)
    assert error.max() <= 0.51 * 2.0 ** (1 - bits)


@pytest.mark.parametrize("op", ["exp", "erf", "log", "sin", "powf"])
def test_scalars_and_vectors_of_rank_two(op: str) -> None:
    rank_two = f"vector<2x{LANES // 2}xf32>"
    operands = "%w, %w" if op == "powf" else "%w"
    text = f"""%v = vector.shape_cast %x0 : {{t}} to {rank_two}
        %w = arith.mulf %v, %v : {rank_two}
        %r = math.{op} {operands} : {rank_two}
        %f = vector.shape_cast %r : {rank_two} to {{t}}
        %s = vector.extract %x0[0] : f32 from {{t}}
        %w0 = arith.mulf %s, %s : f32
        %q = math.{op} {operands.replace("%w", "%w0")} : f32
        %y = vector.insert %q, %f[0] : f32 into {{t}}"""
    x = np.linspace(0.5, 3, 64, dtype=np.float32)
    got = compiled(("f32",), text)(x)
    assert ulps(got, reference(op, *[x * x] * (1 + (op == "powf")))) <= 3


TARGETS = {
    "avx2": Target("x86_64-unknown-linux-gnu", "x86-64-v3", "", 256),
    "neon": Target("aarch64-unknown-linux-gnu", "cortex-a72", "+neon", 128),
    "rvv": Target("riscv64-unknown-linux-gnu", "", "+m,+a,+f,+d,+v", 128),
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("op", ["exp", "log", "erf", "tanh", "sin"])
def test_calls_no_library(op: str, target: Target) -> None:
    code = assembly(lowered(("f32",), f"%y = math.{op} %x0 : {{t}}"), target)
    assert not re.findall(r"\b(?:callq?|bl|jal)\s", code)
