"""Lower a vectorised kernel to the LLVM dialect with the ABI that the runtime calls.

The kernel's function takes memrefs (inputs, then outputs), one index for each symbol, and the
thread's number and the number of threads; the exported one is
`void k(void **args, int64_t *syms, void *scratch, int64_t tid, int64_t nthreads,
        int64_t *tickets)`.
"""

from __future__ import annotations

from dataclasses import dataclass

from metadef import ir
from metadef.forms import LOOPS
from metadef.pipeline import Pass
from metadef.upstream import run_upstream

from . import _kernel_abi as abi

_HALF = ("f16", "bf16")
_ALLOCATIONS = ("memref.alloc", "memref.alloca")
_MOVES = (
    "llvm.insertelement",
    "llvm.extractelement",
    "llvm.intr.masked.load",
    "llvm.intr.masked.store",
)
_CONVERSIONS = ("arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui")

_TO_LOOPS = (
    "func.func(convert-linalg-to-loops,scf-forall-to-for,lower-vector-multi-reduction,"
    "lower-vector-mask),convert-vector-to-scf{full-unroll=true target-rank=1},"
    "expand-strided-metadata,lower-affine,canonicalize,cse,convert-scf-to-cf"
)
_TO_LLVM = (
    "arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32},"
    "arith-expand{include-bf16=true},"
    "convert-vector-to-llvm{reassociate-fp-reductions=true force-32bit-vector-indices=true "
    "vector-contract-lowering=outerproduct},"
    "convert-math-to-llvm,convert-math-to-libm,convert-complex-to-llvm,"
    "finalize-memref-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,convert-ub-to-llvm,"
    "convert-cf-to-llvm,convert-func-to-llvm,reconcile-unrealized-casts,canonicalize,cse,"
    "symbol-dce"
)


@dataclass(frozen=True)
class LowerToLlvm(Pass):
    """Lower kernels on memrefs, vectors and loops to the LLVM dialect.

    Before:
        func.func @k(%x: memref<?xf32> {metadef.dims = ["B"]}, %y: memref<?xf32> {...},
                     %B: index {metadef.symbol = "B"}, %tid: index, %nthreads: index)
    After:
        llvm.func @k(%args: !llvm.ptr, %syms: !llvm.ptr, %scratch: !llvm.ptr, %tid: i64, %n: i64,
                     %tickets: !llvm.ptr)

    A memref is dense and row-major; its sizes come from `metadef.dims` and the symbols. A memref
    argument marked `metadef.scratch` is the kernel's shared scratch memory, one marked
    `metadef.thread_scratch` the calling thread's own part of it; neither is in `args`. One
    marked `metadef.tickets` has the counters from which threads take their work.
    A call of `@metadef_barrier` waits for the other threads, when there are any.
    """

    accepts = LOOPS | {"linalg"}
    requires = "kernels of func, scf, cf, arith, math, vector, memref, linalg ops on memrefs"
    leaves = "llvm dialect; a kernel is exported under its own name, whatever else is internal"

    def run(self, module: ir.Operation) -> None:
        # One walk for all that is to be prepared: each takes as long as a pass of MLIR's.
        found = ir.named(module, *_ALLOCATIONS, "memref.copy", *_CONVERSIONS)
        _prepare_allocations([op for name in _ALLOCATIONS for op in found[name]])
        _replace_strided_copies(found["memref.copy"])
        _convert_halves_through_f32([op for name in _CONVERSIONS for op in found[name]])
        run_upstream(module, _TO_LOOPS)
        has_barriers = _lower_barriers(module)
        for function in _kernels(module):
            abi.export(function, has_barriers)
        run_upstream(module, _TO_LLVM)
        _move_halves_as_integers(module)
        _align_stack(module)


def _kernels(module: ir.Operation) -> list[ir.OpView]:
    """Return the functions that have a body."""
    return [
        op
        for op in ir.entry_block(module).operations
        if op.operation.name == "func.func" and op.operation.regions[0].blocks
    ]


def _align_stack(module: ir.Operation) -> None:
    """Have LLVM align the frame of each function to the vectors that it spills.

    By the ABI a frame is aligned to 16 bytes: whether a wider vector lies across two cache lines,
    or two pages, which takes several times as long, would be up to the caller's frame.
    """
    for op in ir.entry_block(module).operations:
        if op.operation.name == "llvm.func" and op.operation.regions[0].blocks:
            op.attributes["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get("stackrealign")])


def _prepare_allocations(allocations: list[ir.OpView]) -> None:
    """Align them; free at the end of its block what nobody frees or passes on."""
    i64 = ir.IntegerType.get_signless(64)
    for op in allocations:
        op.attributes["alignment"] = ir.IntegerAttr.get(i64, abi.ALIGNMENT)
        if op.operation.name != "memref.alloc":
            continue
        block = op.operation.block
        end = block.operations[len(block.operations) - 1]
        users = [use.owner.operation for use in op.operation.result.uses]
        if end.operation not in users and all(u.name != "memref.dealloc" for u in users):
            with ir.InsertionPoint(end), op.location:
                ir.memref.dealloc(op.operation.result)


def _replace_strided_copies(copies: list[ir.OpView]) -> None:
    """Turn copies of strided memrefs into loops: upstream calls a function that nobody provides."""
    for op in copies:
        source, target = op.operation.operands
        if all(ir.MemRefType(v.type).layout == _identity(v.type) for v in (source, target)):
            continue
        with ir.InsertionPoint(op), op.location:
            ir.linalg.copy(source, outs=[target])
        op.operation.erase()


def _identity(type_: ir.Type) -> ir.Attribute:
    rank = ir.MemRefType(type_).rank
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))


def _lower_barriers(module: ir.Operation) -> bool:
    """Turn calls of `@metadef_barrier` into `if (nthreads > 1) GOMP_barrier()`; say if any.

    Runs on branches, before the ABI: a call splits its block through `scf.if`, lowered at once.
    """
    calls = [
        op
        for op in ir.named(module, "func.call")["func.call"]
        if ir.FlatSymbolRefAttr(op.attributes["callee"]).value == abi.BARRIER
    ]
    threads: dict[ir.Operation, ir.Value] = {}
    for op in calls:
        function = _enclosing_function(op)
        if function.operation not in threads:
            threads[function.operation] = next(
                p.value for p in abi.parameters(function) if p.role == "nthreads"
            )
        with ir.InsertionPoint(op), op.location:
            one = ir.arith.ConstantOp(ir.IndexType.get(), 1).result
            several = ir.arith.CmpIOp(
                ir.arith.CmpIPredicate.ugt, threads[function.operation], one
            ).result
            branch = ir.scf.IfOp(several)
            with ir.InsertionPoint(branch.then_block):
                ir.func.CallOp([], "GOMP_barrier", [])
                ir.scf.YieldOp([])
        op.operation.erase()
    for op in list(ir.entry_block(module).operations):
        if op.operation.name == "func.func" and _symbol(op) == abi.BARRIER:
            op.attributes["sym_name"] = ir.StringAttr.get("GOMP_barrier")
    if calls:
        run_upstream(module, "convert-scf-to-cf")
    return bool(calls)


def _enclosing_function(op: ir.OpView) -> ir.OpView:
    parent: ir.Operation = op.operation.parent
    while parent.name != "func.func":
        parent = parent.parent
    return parent.opview


def _symbol(op: ir.OpView) -> str:
    name: str = ir.StringAttr(op.attributes["sym_name"]).value
    return name


def _convert_halves_through_f32(conversions: list[ir.OpView]) -> None:
    """Convert f64 and integers to and from f16 and bf16 through f32, as torch does.

    The direct conversions are calls into a compiler's support library.
    """
    for op in conversions:
        name = op.operation.name
        source, result = op.operation.operands[0], op.operation.result
        narrow = source.type if name.startswith("arith.fpto") else result.type
        if str(_element_type(narrow)) not in _HALF:
            continue
        if name == "arith.truncf" and _element_type(source.type) == ir.F32Type.get():
            continue
        middle = _with_element(narrow, ir.F32Type.get())
        with ir.InsertionPoint(op), op.location:
            if name.startswith("arith.fpto"):
                wide = _convert("arith.extf", source, middle)
                new = _convert(name, wide, result.type)
            else:
                wide = _convert(name, source, middle)
                new = _convert("arith.truncf", wide, result.type)
        result.replace_all_uses_with(new)
        op.operation.erase()


def _move_halves_as_integers(module: ir.Operation) -> None:
    """Have elements of f16 and bf16 vectors go in and out as 16-bit integers.

    Where a target has no registers for such an element LLVM makes it an f32 on the way, and calls a
    compiler's support library to round it back.
    """
    i16 = ir.IntegerType.get_signless(16)

    def bits(type_: ir.Type) -> ir.Type:
        return _with_element(type_, i16) if str(_element_type(type_)) in _HALF else type_

    for op in [op for ops in ir.named(module, *_MOVES).values() for op in ops]:
        old = op.operation
        if all(bits(v.type) == v.type for v in (*old.operands, *old.results)):
            continue
        with ir.InsertionPoint(op), op.location:
            new = ir.Operation.create(
                old.name,
                results=[bits(v.type) for v in old.results],
                operands=[
                    v if bits(v.type) == v.type else _convert("llvm.bitcast", v, bits(v.type))
                    for v in old.operands
                ],
                attributes={name: old.attributes[name] for name in old.attributes},
            )
            for was, now in zip(old.results, new.results, strict=True):
                same = was.type == now.type
                was.replace_all_uses_with(now if same else _convert("llvm.bitcast", now, was.type))
        old.erase()


def _convert(name: str, value: ir.Value, type_: ir.Type) -> ir.Value:
    return ir.Operation.create(name, results=[type_], operands=[value]).result


def _element_type(type_: ir.Type) -> ir.Type:
    return ir.VectorType(type_).element_type if isinstance(type_, ir.VectorType) else type_


def _with_element(type_: ir.Type, element: ir.Type) -> ir.Type:
    if not isinstance(type_, ir.VectorType):
        return element
    return ir.VectorType.get(ir.VectorType(type_).shape, element)
