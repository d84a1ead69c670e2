"""Dims as index values, constants, and tensors with their views, made at the insertion point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from metadef import ir
from metadef.symbolic import Dim

from . import scalar

Dims = Sequence[Dim]


def storage_type(element: ir.Type) -> ir.Type:
    """Return the type that a metadef element has in memory: a bool is a byte, `ui8` is `i8`."""
    if isinstance(element, ir.IntegerType) and (element.width == 1 or element.is_unsigned):
        return ir.IntegerType.get_signless(max(element.width, 8))
    return element


@dataclass
class Tensors:
    """What a kernel's ops are built from; dims and constants are made once, at the head."""

    #: index arguments that hold the symbols' values
    symbols: dict[str, ir.Value]
    #: every dim value and constant is emitted before this op, and so dominates all uses
    head: ir.Operation
    _sizes: dict[Dim, ir.Value] = field(default_factory=dict)
    _constants: dict[str, ir.Value] = field(default_factory=dict)
    _views: dict[tuple[ir.Value, str, tuple[Dim, ...]], ir.Value] = field(default_factory=dict)

    # Dims and constants.

    def size(self, dim: Dim | int) -> ir.Value:
        """Return the value of a dim as an `index`, computed once at the head."""
        dim = Dim.of(dim)
        if dim not in self._sizes:
            with ir.InsertionPoint(self.head), ir.Location.unknown():
                self._sizes[dim] = self._build_size(dim)
        return self._sizes[dim]

    def _build_size(self, dim: Dim) -> ir.Value:
        total: ir.Value | None = None
        for monomial, coefficient in dim.terms:
            product: ir.Value | None = None
            if coefficient != 1 or not monomial:
                product = self.constant(ir.IndexType.get(), coefficient)
            for atom in monomial:
                value = self._build_atom(atom)
                product = value if product is None else ir.arith.muli(product, value)
            assert product is not None
            total = product if total is None else ir.arith.addi(total, product)
        return total if total is not None else self.constant(ir.IndexType.get(), 0)

    def _build_atom(self, atom: Any) -> ir.Value:
        if isinstance(atom, str):
            return self.symbols[atom]
        name, lhs, rhs = atom
        a, b = self.size(lhs), self.size(rhs)
        with ir.InsertionPoint(self.head):
            if name in ("max", "min"):
                return {"max": ir.arith.maxsi, "min": ir.arith.minsi}[name](a, b)
            quotient = ir.arith.floordivsi(a, b)
            if name == "floordiv":
                return quotient
            return ir.arith.subi(a, ir.arith.muli(quotient, b))

    def constant(self, type_: ir.Type, value: int | float | bool) -> ir.Value:
        """Return a constant scalar, made once at the head."""
        attribute = scalar.attribute(type_, value)
        key = str(attribute)
        if key not in self._constants:
            with ir.InsertionPoint(self.head), ir.Location.unknown():
                self._constants[key] = ir.arith.constant(type_, attribute)
        return self._constants[key]

    def scalars(self) -> scalar.Scalars:
        return scalar.Scalars(self.constant)

    # Tensors.

    def tensor_type(self, dims: Dims, element: ir.Type) -> ir.RankedTensorType:
        """Return the plain tensor type in storage: `?` for a symbolic dim, no encoding."""
        dynamic = ir.ShapedType.get_dynamic_size()
        shape = [d.value if d.is_static else dynamic for d in dims]
        return ir.RankedTensorType.get(shape, storage_type(element))

    def dynamic_sizes(self, dims: Dims) -> list[ir.Value]:
        return [self.size(d) for d in dims if not d.is_static]

    def empty(self, dims: Dims, element: ir.Type) -> ir.Value:
        """Return a new temporary."""
        type_ = self.tensor_type(dims, element)
        sizes = self.dynamic_sizes(dims)
        return ir.Operation.create("tensor.empty", results=[type_], operands=sizes).result

    def fill(self, tensor: ir.Value, element: ir.Type, value: int | float | bool) -> ir.Value:
        """Return `tensor` with every element set to a number."""
        stored = storage_type(element)
        scalar_value = self.constant(stored, int(value) if stored != element else value)
        return ir.linalg.fill(scalar_value, outs=[tensor])

    def regroup(self, tensor: ir.Value, groups: list[list[int]], to_dims: Dims) -> ir.Value:
        """Return a view of `tensor` that merges (fewer `to_dims`) or splits dims by `groups`."""
        key = (tensor, str(groups), tuple(to_dims))
        if key not in self._views:
            self._views[key] = self._build_regroup(tensor, groups, to_dims)
        return self._views[key]

    def _build_regroup(self, tensor: ir.Value, groups: list[list[int]], to_dims: Dims) -> ir.Value:
        source = ir.RankedTensorType(tensor.type)
        target = self.tensor_type(to_dims, source.element_type)
        if source.rank == target.rank:
            return tensor
        i64 = ir.IntegerType.get_signless(64)
        reassociation = ir.ArrayAttr.get(
            [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, i) for i in g]) for g in groups]
        )
        if source.rank > target.rank:
            return ir.Operation.create(
                "tensor.collapse_shape",
                results=[target],
                operands=[tensor],
                attributes={"reassociation": reassociation},
            ).result
        return ir.Operation.create(
            "tensor.expand_shape",
            results=[target],
            operands=[tensor, *self.dynamic_sizes(to_dims)],
            attributes={
                "reassociation": reassociation,
                "static_output_shape": ir.DenseI64ArrayAttr.get(list(target.shape)),
            },
        ).result

    def extract_slice(
        self, tensor: ir.Value, starts: Dims, sizes: Dims, steps: Sequence[int]
    ) -> ir.Value:
        """Return the part of `tensor` at `starts + steps * i` for i below `sizes`, as a view."""
        element = ir.RankedTensorType(tensor.type).element_type
        operands, attributes = self._slice_parts(starts, sizes, steps)
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, *operands[1]])
        return ir.Operation.create(
            "tensor.extract_slice",
            results=[self.tensor_type(sizes, element)],
            operands=[tensor, *operands[0]],
            attributes=attributes,
        ).result

    def insert_slice(
        self, part: ir.Value, tensor: ir.Value, starts: Dims, sizes: Dims, steps: Sequence[int]
    ) -> ir.Value:
        """Return `tensor` with `part` written where `extract_slice` would read it."""
        operands, attributes = self._slice_parts(starts, sizes, steps)
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, *operands[1]])
        return ir.Operation.create(
            "tensor.insert_slice",
            results=[tensor.type],
            operands=[part, tensor, *operands[0]],
            attributes=attributes,
        ).result

    def _slice_parts(
        self, starts: Dims, sizes: Dims, steps: Sequence[int]
    ) -> tuple[tuple[list[ir.Value], list[int]], dict[str, ir.Attribute]]:
        dynamic = ir.ShapedType.get_dynamic_size()
        offsets, extents = self.dynamic_sizes(starts), self.dynamic_sizes(sizes)

        def static(dims: Dims) -> ir.Attribute:
            return ir.DenseI64ArrayAttr.get([d.value if d.is_static else dynamic for d in dims])

        attributes = {
            "static_offsets": static(starts),
            "static_sizes": static(sizes),
            "static_strides": ir.DenseI64ArrayAttr.get(list(steps)),
        }
        return (offsets + extents, [len(offsets), len(extents), 0]), attributes
