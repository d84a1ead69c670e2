"""The ABI of a kernel: how its memrefs and symbols come out of four pointers.

`export` splits a kernel `@k` in two: `@k`, which loads the pointers and the symbols, and the
internal `@k_body`, whose arguments are those pointers. The split is what lets an output say
`noalias`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from metadef import ir
from metadef.diagnostics import MetadefError
from metadef.symbolic import Dim

SYMBOL = "metadef.symbol"
DIMS = "metadef.dims"
SCRATCH = "metadef.scratch"
THREAD_SCRATCH = "metadef.thread_scratch"
TICKETS = "metadef.tickets"
SERIAL = "metadef.serial"
SCALAR_LOOPS = "metadef.scalar_loops"
PRODUCTS = "metadef.products"
SYMBOLS = "metadef.symbols"
NOALIAS = "metadef.noalias"
WRITABLE = "bufferization.writable"
BARRIER = "metadef_barrier"
#: bytes; every part of the scratch memory starts at a multiple of it
ALIGNMENT = 64

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_POISON_POSITION = -(2**31)  # llvm.getelementptr: the index is an operand


@dataclass(frozen=True)
class Parameter:
    """An argument of a kernel.

    `role`: memref, scratch, thread_scratch, tickets, symbol, tid, nthreads.
    """

    role: str
    value: ir.Value
    attributes: ir.DictAttr


def parameters(function: ir.OpView) -> list[Parameter]:
    """Return the arguments of a kernel with their roles.

    Raises:
        MetadefError: an argument has no role in the ABI.
    """
    arguments = list(ir.entry_block(function).arguments)
    attributes = _argument_attributes(function, len(arguments))
    plain = [
        i
        for i, (value, attrs) in enumerate(zip(arguments, attributes, strict=True))
        if isinstance(value.type, ir.IndexType) and SYMBOL not in attrs
    ]
    if len(plain) not in (0, 2):
        wanted = f"the indices %tid and %nthreads, or neither, besides those with {SYMBOL}"
        raise unfit(function, f"expected {wanted}, got {len(plain)}")
    found = []
    for i, (value, attrs) in enumerate(zip(arguments, attributes, strict=True)):
        if SYMBOL in attrs:
            role = "symbol"
        elif i in plain:
            role = "tid" if i == plain[0] else "nthreads"
        elif SCRATCH in attrs:
            role = "scratch"
        elif THREAD_SCRATCH in attrs:
            role = "thread_scratch"
        elif TICKETS in attrs:
            role = "tickets"
        else:
            role = "memref"
        if role not in ("symbol", "tid", "nthreads"):
            if not isinstance(value.type, ir.MemRefType):
                raise unfit(function, f"argument {i}: expected a memref, got {value.type}")
            if role == "memref" and not value.type.has_static_shape and DIMS not in attrs:
                raise unfit(function, f"argument {i}: expected {DIMS} with {value.type}")
        found.append(Parameter(role, value, attrs))
    return found


def unfit(function: ir.OpView, problem: str) -> MetadefError:
    name = ir.StringAttr(function.attributes["sym_name"]).value
    return MetadefError(f"'func.func' op: kernel '{name}': {problem}; from {function.location}")


def scratch_bytes(function: ir.OpView) -> Dim:
    """Return the bytes of scratch memory that all threads of the kernel share."""
    if SCRATCH not in function.attributes:
        return Dim.of(0)
    attribute = function.attributes[SCRATCH]
    if isinstance(attribute, ir.StringAttr):
        return Dim.of(attribute.value)
    return Dim.of(ir.IntegerAttr(attribute).value)


def aligned(size: Dim) -> Dim:
    """Return `size` rounded up to a multiple of ALIGNMENT."""
    return (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT


def index_value(dim: Dim, symbols: Mapping[str, ir.Value]) -> ir.Value:
    """Build `dim` as an index value, in `arith`, at the insertion point."""
    total: ir.Value | None = None
    for monomial, coefficient in dim.terms:
        product: ir.Value | None = None
        for atom in monomial:
            value = symbols[atom] if isinstance(atom, str) else _call(*atom, symbols)
            product = value if product is None else _binary("muli", product, value)
        if product is None:
            product = _constant(coefficient)
        elif coefficient != 1:
            product = _binary("muli", product, _constant(coefficient))
        total = product if total is None else _binary("addi", total, product)
    return _constant(0) if total is None else total


def export(function: ir.OpView, has_barriers: bool) -> None:
    """Give the kernel its exported function; its own body becomes internal.

    Outputs of a kernel marked `metadef.noalias` say so to LLVM, except beside a barrier: LLVM would
    take it that other threads do not write them meanwhile.
    """
    roles = parameters(function)
    name = ir.StringAttr(function.attributes["sym_name"]).value
    with function.location:
        _build_entry(function, name, roles)
        function.attributes["sym_name"] = ir.StringAttr.get(f"{name}_body")
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        _build_body(function, roles, NOALIAS in function.attributes and not has_barriers)


def _build_entry(function: ir.OpView, name: str, roles: list[Parameter]) -> None:
    """Build the exported function.

    It is `void name(void **args, int64_t *syms, void *scratch, int64_t tid, int64_t n,
    int64_t *tickets)`.
    """
    pointer, i64 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64)
    with ir.InsertionPoint(function):
        entry = ir.func.FuncOp(name, ([pointer, pointer, pointer, i64, i64, pointer], []))
    for key in (SCRATCH, THREAD_SCRATCH, TICKETS, SERIAL, SCALAR_LOOPS, PRODUCTS):
        if key in function.attributes:
            entry.attributes[key] = function.attributes[key]
    names = [role.attributes[SYMBOL] for role in roles if role.role == "symbol"]
    entry.attributes[SYMBOLS] = ir.ArrayAttr.get(names)
    block = entry.add_entry_block()
    args, syms, scratch, tid, nthreads, tickets = block.arguments
    with ir.InsertionPoint(block):
        operands, arrays, symbols = [], 0, dict[str, ir.Value]()
        for role in roles:
            if role.role == "memref":
                operands.append(_load(args, arrays, pointer))
                arrays += 1
            elif role.role == "symbol":
                value = _load(syms, len(symbols), i64)
                operands.append(_binary_cast("arith.index_cast", value, ir.IndexType.get()))
                symbols[ir.StringAttr(role.attributes[SYMBOL]).value] = operands[-1]
            elif role.role in ("tid", "nthreads"):
                value = tid if role.role == "tid" else nthreads
                operands.append(_binary_cast("arith.index_cast", value, ir.IndexType.get()))
            else:
                operands.append(tickets if role.role == "tickets" else scratch)
        for i, role in enumerate(roles):
            if role.role == "thread_scratch":
                operands[i] = _thread_part(function, scratch, tid, symbols)
        ir.func.CallOp([], f"{name}_body", operands)
        ir.func.ReturnOp([])


def _thread_part(
    function: ir.OpView, scratch: ir.Value, tid: ir.Value, symbols: Mapping[str, ir.Value]
) -> ir.Value:
    """Return the calling thread's own scratch memory, which follows the shared part."""
    own = ir.IntegerAttr(function.attributes[THREAD_SCRATCH]).value
    i64 = ir.IntegerType.get_signless(64)
    shared = index_value(aligned(scratch_bytes(function)), symbols)
    stride = _binary_cast("arith.index_cast", index_value(aligned(Dim.of(own)), symbols), i64)
    offset = _binary(
        "addi", _binary_cast("arith.index_cast", shared, i64), _binary("muli", tid, stride)
    )
    return _element(scratch, offset)


def _build_body(function: ir.OpView, roles: list[Parameter], claim_noalias: bool) -> None:
    """Replace the memref arguments by pointers and build the memrefs from them."""
    block = ir.entry_block(function)
    pointer = ir.Type.parse("!llvm.ptr")
    types, attributes, fresh = [], [], []
    for role in roles:
        is_memref = isinstance(role.value.type, ir.MemRefType)
        types.append(pointer if is_memref else role.value.type)
        fresh.append(block.add_argument(types[-1], function.location))
        claims = claim_noalias and is_memref and WRITABLE in role.attributes
        attributes.append({"llvm.noalias": ir.UnitAttr.get()} if claims else {})
    symbols = {
        ir.StringAttr(role.attributes[SYMBOL]).value: value
        for role, value in zip(roles, fresh, strict=True)
        if role.role == "symbol"
    }
    with ir.InsertionPoint.at_block_begin(block):
        for role, value in zip(roles, fresh, strict=True):
            if isinstance(role.value.type, ir.MemRefType):
                value = _memref(value, role, symbols)
            role.value.replace_all_uses_with(value)
    for _ in roles:
        block.erase_argument(0)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [ir.DictAttr.get(attrs) for attrs in attributes]
    )


def _memref(pointer: ir.Value, role: Parameter, symbols: Mapping[str, ir.Value]) -> ir.Value:
    """Return a dense row-major memref at `pointer`."""
    type_ = ir.MemRefType(role.value.type)
    sizes = [Dim.of(size) if size != _DYNAMIC else None for size in type_.shape]
    if None in sizes and role.role == "memref":
        sizes = [Dim.of(d.value) for d in ir.ArrayAttr(role.attributes[DIMS])]
    if None in sizes:  # scratch and tickets: addressed from the start; the size is of no use
        sizes = [Dim.of(0)]
    dims = [size for size in sizes if size is not None]
    rank = len(dims)
    tail = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
    struct = ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64{tail})>")
    i64 = ir.IntegerType.get_signless(64)
    value = ir.Operation.create("llvm.mlir.poison", results=[struct]).result
    zero = _binary_cast("arith.index_cast", _constant(0), i64)
    for position, field in (([0], pointer), ([1], pointer), ([2], zero)):
        value = _insert(value, field, position)
    stride = Dim.of(1)
    for axis in reversed(range(rank)):
        for array, dim in ((3, dims[axis]), (4, stride)):
            field = _binary_cast("arith.index_cast", index_value(dim, symbols), i64)
            value = _insert(value, field, [array, axis])
        stride = stride * dims[axis]
    cast = ir.Operation.create(
        "builtin.unrealized_conversion_cast", results=[type_], operands=[value]
    )
    return cast.result


def _argument_attributes(function: ir.OpView, count: int) -> list[ir.DictAttr]:
    if "arg_attrs" not in function.attributes:
        return [ir.DictAttr.get({})] * count
    return [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]


def _call(name: str, lhs: Dim, rhs: Dim, symbols: Mapping[str, ir.Value]) -> ir.Value:
    a, b = index_value(lhs, symbols), index_value(rhs, symbols)
    if name == "mod":  # of the sign of the divisor, as in Python
        return _binary("subi", a, _binary("muli", _binary("floordivsi", a, b), b))
    return _binary({"floordiv": "floordivsi", "max": "maxsi", "min": "minsi"}[name], a, b)


def _constant(value: int) -> ir.Value:
    index = ir.IndexType.get()
    return ir.arith.ConstantOp(index, ir.IntegerAttr.get(index, value)).result


def _binary(name: str, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    return ir.Operation.create(f"arith.{name}", results=[lhs.type], operands=[lhs, rhs]).result


def _binary_cast(name: str, value: ir.Value, type_: ir.Type) -> ir.Value:
    return ir.Operation.create(name, results=[type_], operands=[value]).result


def _insert(struct: ir.Value, field: ir.Value, position: list[int]) -> ir.Value:
    return ir.Operation.create(
        "llvm.insertvalue",
        results=[struct.type],
        operands=[struct, field],
        attributes={"position": ir.DenseI64ArrayAttr.get(position)},
    ).result


def _load(array: ir.Value, number: int, type_: ir.Type) -> ir.Value:
    """Load element `number` of an array of pointers or of 64-bit integers."""
    address = ir.Operation.create(
        "llvm.getelementptr",
        results=[array.type],
        operands=[array],
        attributes={
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([number]),
            "elem_type": ir.TypeAttr.get(type_),
        },
    ).result
    return ir.Operation.create("llvm.load", results=[type_], operands=[address]).result


def _element(pointer: ir.Value, offset: ir.Value) -> ir.Value:
    """Return `pointer` moved by `offset` bytes."""
    return ir.Operation.create(
        "llvm.getelementptr",
        results=[pointer.type],
        operands=[pointer, offset],
        attributes={
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([_POISON_POSITION]),
            "elem_type": ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
        },
    ).result


def most_values(module: ir.Operation, most: int = 1 << 20) -> dict[str, int]:
    """Return the largest value of each of the module's symbols, `most` where it is larger."""
    if SYMBOLS not in module.attributes:
        return {}
    return {
        named.name: min(most, ir.IntegerAttr(ir.DictAttr(named.attr)["max"]).value)
        for named in ir.DictAttr(module.attributes[SYMBOLS])
    }


def least_values(module: ir.Operation) -> dict[str, int]:
    """Return the least value of each of the module's symbols, but 1 for 0."""
    if SYMBOLS not in module.attributes:
        return {}
    return {
        named.name: max(1, ir.IntegerAttr(ir.DictAttr(named.attr)["min"]).value)
        for named in ir.DictAttr(module.attributes[SYMBOLS])
    }
