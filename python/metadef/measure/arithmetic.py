"""Micro-benchmarks of arithmetic: multiply-adds of each data type in registers, and the clock."""

from __future__ import annotations

from dataclasses import dataclass

from metadef.device.spec import DeviceSpec, Instruction

from .kernel_text import (
    REPEATS,
    SINK,
    Kernel,
    bits,
    kernel_of,
    lanes,
    loop,
    names,
    register_bits,
    sink_of,
    store_sum,
    vector_of,
)

#: elements of an operand that stays in registers
OPERAND = 64
#: operations in the body of `clock`
CHAIN = 32
#: element type -> operands of the instruction that sums its products, the best first
_DOTS = {"bf16": (("bf16", "bf16"),), "i8": (("ui8", "i8"), ("i8", "i8"))}


@dataclass(frozen=True)
class Arithmetic:
    """A benchmark of multiply-adds of an element type.

    `operands` are the types of its tensors of `OPERAND` elements, and `result` that of the one of
    `SINK` elements after them. A repetition is so many `operations` of each thread.
    """

    of: str
    kernel: Kernel
    operands: tuple[str, ...]
    result: str
    operations: int


def arithmetic(spec: DeviceSpec) -> list[Arithmetic]:
    """Return the benchmarks of a device: f32 and f64, and less precise types where it has them."""
    elements = ["f32", "f64", *(["f16"] if spec.instruction("fma", "f16") else [])]
    found = [fma(spec, element) for element in elements]
    for element, operands in _DOTS.items():
        instructions = [spec.instruction("dot", lhs, rhs) for lhs, rhs in operands]
        best = next((i for i in instructions if i is not None), None)
        if best is not None:
            found.append(dot(spec, element, best))
    return found


def fma_chains(spec: DeviceSpec) -> int:
    """Return the accumulators of `fma`: the registers but those of two operands and two spare."""
    return max(4, min(24, spec.vector_registers - 4))


def fma(spec: DeviceSpec, element: str) -> Arithmetic:
    """As many independent chains of multiply-adds as fit in registers."""
    chains = fma_chains(spec)
    vector = vector_of(spec, element)
    lines = []
    for i in range(chains):
        if spec.instruction("fma", element) is not None:
            lines.append(f"%next{i} = math.fma %acc{i}, %a, %b : {vector}")
        else:
            lines.append(f"%product{i} = arith.mulf %acc{i}, %a : {vector}")
            lines.append(f"%next{i} = arith.addf %product{i}, %b : {vector}")
    carried = {f"%acc{i}": "%a" for i in range(chains)}
    body = [
        f"%a = vector.load %x[%c0] : memref<{OPERAND}x{element}>, {vector}",
        f"%b = vector.load %x[%c0] : memref<{OPERAND}x{element}>, {vector}",
        *loop("%r", REPEATS, lines, carried, names("%next", chains), vector, "%made"),
        *store_sum("%made", chains, vector, element),
    ]
    arguments = [f"%x: memref<{OPERAND}x{element}>", sink_of(element)]
    kernel = kernel_of(f"fma_{element}", body, arguments)
    return Arithmetic(element, kernel, (element,), element, 2 * chains * lanes(spec, element))


def dot(spec: DeviceSpec, element: str, instruction: Instruction) -> Arithmetic:
    """As many independent chains of sums of products, by the instruction, as fit in registers."""
    chains, accumulators = fma_chains(spec), _accumulators(spec, instruction)
    depth = instruction.depth
    # MLIR has no unsigned integers in vectors; the instruction knows what it reads.
    lhs, rhs = (t.replace("ui", "i") for t in (instruction.lhs, instruction.rhs))
    of = f"{accumulators * depth}x"
    vector = f"vector<{accumulators}x{instruction.accumulator}>"
    lines = [
        f'%next{i} = llvm.call_intrinsic "{instruction.intrinsic}"(%acc{i}, %a, %b)'
        f" : ({vector}, vector<{of}{lhs}>, vector<{of}{rhs}>) -> {vector}"
        for i in range(chains)
    ]
    carried = {f"%acc{i}": f"%start{i}" for i in range(chains)}
    body = [
        f"%a = vector.load %x[%c0] : memref<{OPERAND}x{lhs}>, vector<{of}{lhs}>",
        f"%b = vector.load %y[%c0] : memref<{OPERAND}x{rhs}>, vector<{of}{rhs}>",
        *_starts(chains, instruction.accumulator, vector),
        *loop("%r", REPEATS, lines, carried, names("%next", chains), vector, "%made"),
        *store_sum("%made", chains, vector, instruction.accumulator),
    ]
    arguments = [f"%x: memref<{OPERAND}x{lhs}>", f"%y: memref<{OPERAND}x{rhs}>"]
    kernel = kernel_of(f"dot_{element}", body, [*arguments, sink_of(instruction.accumulator)])
    operands = (instruction.lhs, instruction.rhs)
    operations = 2 * chains * accumulators * depth
    return Arithmetic(element, kernel, operands, instruction.accumulator, operations)


def _accumulators(spec: DeviceSpec, instruction: Instruction) -> int:
    """Return how many a vector of the instruction holds; some names end in its bits."""
    width = instruction.intrinsic.rpartition(".")[2]
    vector_bits = int(width) if width.isdigit() else register_bits(spec)
    return vector_bits // bits(instruction.accumulator)


def clock() -> Kernel:
    """A chain of `CHAIN` additions and exclusive-ors in turn: each takes a cycle."""
    lines = []
    for i in range(0, CHAIN, 2):
        lines.append(f"%x{i + 1} = arith.addi %x{i}, %a : i64")
        lines.append(f"%x{i + 2} = arith.xori %x{i + 1}, %b : i64")
    body = [
        "%a = memref.load %x[%c0] : memref<2xi64>",
        "%b = memref.load %x[%c1] : memref<2xi64>",
        *loop("%r", REPEATS, lines, {"%x0": "%a"}, [f"%x{CHAIN}"], "i64", "%end"),
        f"memref.store %end, %sink[%c0] : memref<{SINK}xi64>",
    ]
    return kernel_of("clock", body, ["%x: memref<2xi64>", sink_of("i64")])


def _starts(count: int, element: str, vector: str) -> list[str]:
    """Define %start0, %start1, ...: different vectors, so that no two chains are the same."""
    values = [f"{i}.0" if "f" in element else str(i) for i in range(count)]
    return [
        f"%start{i} = arith.constant dense<{value}> : {vector}" for i, value in enumerate(values)
    ]
