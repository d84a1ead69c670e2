"""Kernels of several kinds, to be compiled under one choice or another and run."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np

from metadef import ir
from metadef.codegen.build import build_kernel
from metadef.device.attribute import set_device
from metadef.device.spec import DeviceSpec
from metadef.dialects.metadef.interpret import interpret
from metadef.dialects.metadef.types import dims_of
from metadef.passes._kernel_choice import set_choice
from metadef.plan.kernel_choice import KernelChoice
from metadef.runtime.host import this_device
from metadef.runtime.jit import Library, _openmp


def _function(arguments: Sequence[str], body: str, result: str) -> str:
    named = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(arguments))
    return (
        f"func.func @kernel({named}) -> {result} attributes {{metadef.kernel}} {{\n{body}\n"
        f"return %r : {result} }}"
    )


def _tensor(*dims: int) -> str:
    return "tensor<" + "".join(f"{n}x" for n in dims) + "f32>"


def _rows(*dims: int) -> str:
    shape = "".join(f"{n}x" for n in ("?", *dims))
    names = ", ".join(map(str, ('"B"', *dims)))
    return f"tensor<{shape}f32, #metadef.dims<[{names}]>>"


def product(x: str, w: str, y: str, *, transposed: bool = False, relu: bool = True) -> str:
    """Return a matrix product, with relu behind it."""
    flag = "true" if transposed else "false"
    body = (
        f'%p = "metadef.contraction"(%a0, %a1) {{transpose_lhs = false, transpose_rhs = {flag}}}'
        f" : ({x}, {w}) -> {y}\n"
    )
    if relu:
        body += _pointwise("relu", "%p", y)
    return _function([x, w], body if relu else body.replace("%p", "%r"), y)


def _pointwise(fn: str, x: str, type_: str, result: str = "%r") -> str:
    sizes = "operandSegmentSizes = array<i32: 1, 0, 0>"
    return f'{result} = "metadef.pointwise"({x}) {{fn = "{fn}", {sizes}}} : ({type_}) -> {type_}'


def packed_product(rows: str, depth: int, outputs: int, panel: int) -> str:
    """Return a linear layer whose weights are in panels, with GELU behind it."""
    panels = -(-outputs // panel)
    x = _rows(depth) if rows == "B" else _tensor(int(rows), depth)
    y = _rows(outputs) if rows == "B" else _tensor(int(rows), outputs)
    packed, w = _tensor(panels, depth, panel), _tensor(depth, outputs)
    body = (
        f'%w = "metadef.unpack"(%a1) {{at = 0, dim = 1, size = {outputs}}} : ({packed}) -> {w}\n'
        f'%p = "metadef.contraction"(%a0, %w) {{transpose_lhs = false, transpose_rhs = false}}'
        f" : ({x}, {w}) -> {y}\n" + _pointwise("gelu", "%p", y)
    )
    return _function([x, packed], body, y)


def convolution(
    layout: str, x: Sequence[int], w: Sequence[int], y: Sequence[int],
    *, stride: int = 1, padding: int = 0, groups: int = 1,
) -> str:  # fmt: skip
    """Return a convolution, with relu behind it."""
    types = [_tensor(*dims) for dims in (x, w, y)]
    body = (
        f'%p = "metadef.conv"(%a0, %a1) {{dilations = array<i64: 1, 1>, groups = {groups} : i64,'
        f' layout = "{layout}", padding = array<i64: {", ".join([str(padding)] * 4)}>,'
        f" strides = array<i64: {stride}, {stride}>}} : ({types[0]}, {types[1]}) -> {types[2]}\n"
    )
    return _function(types[:2], body + _pointwise("relu", "%p", types[2]), types[2])


def _attention() -> str:
    q, k = _tensor(2, 3, 37, 16), _tensor(2, 3, 45, 16)
    body = (
        '%r = "metadef.attention"(%a0, %a1, %a2) {causal = false, safe = false, scale = 0.25 : f64}'
        f" : ({q}, {k}, {k}) -> {q}"
    )
    return _function([q, k, k], body, q)


def _softmax() -> str:
    x = _tensor(29, 133)
    return _function(
        [x], f'%r = "metadef.softmax"(%a0) {{dim = 1 : i64, log = false}} : ({x}) -> {x}', x
    )


def _norm() -> str:
    x, v = _tensor(33, 70), _tensor(70)
    body = (
        '%n = "metadef.norm"(%a0, %a1, %a2) {axes = 1 : i64, eps = 1.0e-05 : f64, kind = "layer",'
        f" operandSegmentSizes = array<i32: 1, 1, 1>}} : ({x}, {v}, {v}) -> {x}\n"
    )
    return _function([x, v, v], body + _pointwise("gelu", "%n", x), x)


def _transposition() -> str:
    x, y = _tensor(70, 45), _tensor(45, 70)
    body = f'%t = "metadef.transpose"(%a0) {{perm = array<i64: 1, 0>}} : ({x}) -> {y}\n'
    return _function([x], body + _pointwise("abs", "%t", y), y)


def _sum(dim: int) -> str:
    x, y = _tensor(41, 67), _tensor(41 if dim else 67)
    body = (
        f'%r = "metadef.reduce"(%a0) {{dims = array<i64: {dim}>, fn = "sum", keepdim = false}}'
        f" : ({x}) -> {y}"
    )
    return _function([x], body, y)


def kernels(panel: int) -> dict[str, str]:
    """Return kernels by name; weights are packed in panels of so many lanes."""
    return {
        "linear": packed_product("37", 53, 70, panel),
        "deep_linear": packed_product("50", 1500, 70, panel),
        "linear_of_any_rows": packed_product("B", 53, 70, panel),
        "row": packed_product("1", 53, 600, panel),
        "batched_matmul": product(_tensor(3, 19, 40), _tensor(3, 40, 33), _tensor(3, 19, 33)),
        "transposed_matmul": product(
            _tensor(61, 40), _tensor(35, 40), _tensor(61, 35), transposed=True, relu=False
        ),
        "conv3x3": convolution(
            "nhwc", (1, 11, 13, 20), (1, 3, 3, 20, 24), (1, 11, 13, 24), padding=1
        ),
        "conv1x1": convolution("nhwc", (1, 9, 9, 20), (1, 1, 1, 20, 40), (1, 9, 9, 40)),
        "depthwise": convolution(
            "nhwc", (1, 12, 12, 24), (24, 3, 3, 1, 1), (1, 12, 12, 24), padding=1, groups=24
        ),
        "stem": convolution(
            "nchw", (1, 3, 33, 35), (8, 3, 3, 3), (1, 8, 17, 18), stride=2, padding=1
        ),
        "planes": convolution(
            "nchw", (2, 6, 21, 30), (6, 1, 5, 5), (2, 6, 21, 30), padding=2, groups=6
        ),
        "attention": _attention(),
        "softmax": _softmax(),
        "norm_and_gelu": _norm(),
        "transposition": _transposition(),
        "sum_of_rows": _sum(1),
        "sum_of_columns": _sum(0),
    }


def text_of(function: str, spec: DeviceSpec | None = None) -> str:
    """Return the text of a kernel's module for a device, this machine's if none is given."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(function)
        set_device(module, spec or this_device())
        return str(module.operation.get_asm(print_generic_op_form=True, use_local_scope=True))


def with_choice(text: str, choice: KernelChoice) -> str:
    """Return the text of a kernel with a choice said on it."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (function,) = module.body.operations
        set_choice(function, choice)
        return str(module.operation.get_asm(print_generic_op_form=True, use_local_scope=True))


def inputs_of(text: str, symbols: Mapping[str, int]) -> list[np.ndarray]:
    """Return random inputs of a kernel."""
    rng = np.random.default_rng(0)
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (function,) = module.body.operations
        shapes = [_shape(type_, symbols) for type_ in ir.FunctionType(function.type).inputs]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def expected(
    text: str, inputs: Sequence[np.ndarray], symbols: Mapping[str, int]
) -> list[np.ndarray]:
    """Return what a kernel gives in double precision."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (function,) = module.body.operations
        return interpret(function, inputs, symbols=symbols)


def run(
    text: str,
    inputs: Sequence[np.ndarray],
    symbols: Mapping[str, int],
    shapes: Sequence[Sequence[int]],
    threads: int = 2,
) -> list[np.ndarray]:
    """Compile a kernel and run it on a team of threads; return what it wrote over NaN."""
    kernel = build_kernel(text, "kernel_under_test")
    library = Library([kernel.code])
    outputs = [np.full(shape, np.nan, np.float32) for shape in shapes]
    arrays = [*map(np.ascontiguousarray, inputs), *outputs]
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    values = (ctypes.c_int64 * (len(kernel.symbols) + 1))(*(symbols[s] for s in kernel.symbols))
    own = -(-kernel.thread_scratch // 64) * 64
    memory = np.zeros(kernel.scratch.evaluate(dict(symbols)) + own * threads + 128, np.uint8)
    scratch = memory.ctypes.data + -memory.ctypes.data % 64
    tickets = np.zeros(8 * threads * max(kernel.tickets, 1), np.int64)
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    function = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, number, number, pointer)(
        library.address(kernel.symbol)
    )
    openmp = _openmp()

    @ctypes.CFUNCTYPE(None, pointer)
    def share(_: int) -> None:
        tid = 0 if kernel.serial else openmp.omp_get_thread_num()
        count = 1 if kernel.serial else threads
        function(pointers, values, scratch, tid, count, tickets.ctypes.data)

    openmp.GOMP_parallel(share, None, 1 if kernel.serial else threads, 0)
    return outputs


def _shape(type_: ir.Type, symbols: Mapping[str, int]) -> list[int]:
    return [dim.evaluate(dict(symbols)) for dim in dims_of(type_)]
