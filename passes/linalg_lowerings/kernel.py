"""The kernel under construction: its values, where they go, and generics from expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from metadef import ir
from metadef.dialects.metadef.types import dims_of, element_of
from metadef.symbolic import Dim, same

from . import scalar, views
from .expression import (
    AffineExprs,
    Apply,
    Constant,
    Expr,
    Extract,
    Index,
    Load,
    Size,
    Tiled,
    Value,
    compose,
    constant_expr,
    dim_exprs,
    is_identity,
    nodes,
    substitute,
    substitute_all,
)
from .tensors import Dims, Tensors
from .tiles import compute_tiles

#: builds a body: input scalars and accumulators (in compute types) to what is yielded
Body = Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]]


def compute_type(element: ir.Type) -> ir.Type:
    """Return the type that arithmetic on a metadef element uses: halves are computed in f32."""
    if isinstance(element, (ir.F16Type, ir.BF16Type)):
        return ir.F32Type.get()
    if isinstance(element, ir.IntegerType):
        return ir.IntegerType.get_signless(element.width)
    return element


def accumulator_type(element: ir.Type) -> ir.Type:
    """Return the metadef element type in which sums of `element` are accumulated."""
    return ir.F32Type.get() if isinstance(element, (ir.F16Type, ir.BF16Type)) else element


@dataclass(frozen=True)
class Place:
    """Where to write a value: a tensor, its map from the index, and the old values it holds."""

    tensor: ir.Value
    map: AffineExprs
    claims: tuple[ir.Value, ...]


@dataclass
class Kernel(Tensors):
    """The state of one kernel's lowering; new ops go to the current insertion point."""

    #: what each metadef value of the old function became
    env: dict[ir.Value, Value] = field(default_factory=dict)
    #: destination of each result of the kernel, by the old value it returns
    outputs: dict[ir.Value, ir.Value] = field(default_factory=dict)
    #: old values whose new tensor is an output's memory, or a view of it
    claimed: set[ir.Value] = field(default_factory=set)
    #: tensors that hold a contraction's sums: whoever reads them takes their loop order
    accumulated: set[ir.Value] = field(default_factory=set)

    # Values.

    def value(self, old: ir.Value) -> Value:
        """Return what a metadef value of the old function became."""
        return self.env[old]

    def destination(
        self, old: ir.Value | None, dims: Dims, element: ir.Type
    ) -> tuple[ir.Value, AffineExprs]:
        """Return a tensor to write a value of `dims` to, and its map from the value's index.

        It is the output that `old` is returned as, at once or through transposes or reshapes
        (as a view of it), or a new temporary.
        """
        place = self._output_place(old, dims, element) if old is not None else None
        if place is None:
            return self.empty(dims, element), dim_exprs(len(dims))
        self.claimed.update(place.claims)
        return place.tensor, place.map

    def plain_destination(self, old: ir.Value | None, dims: Dims, element: ir.Type) -> ir.Value:
        """Return a tensor of exactly `dims` to write a value to: an output, or a temporary."""
        if old is None or old not in self.outputs or old in self.claimed:
            return self.empty(dims, element)
        if dims_of(old.type) == tuple(dims):
            self.claimed.add(old)
            return self.outputs[old]
        return self.empty(dims, element)

    def _output_place(self, old: ir.Value, dims: Dims, element: ir.Type) -> Place | None:
        if element != element_of(old.type) or old in self.claimed:
            return None
        old_dims = dims_of(old.type)
        if old in self.outputs:
            place: Place | None = Place(self.outputs[old], dim_exprs(len(old_dims)), ())
        else:
            place = self._place_through_view(old, element)
        if place is None:
            return None
        if old_dims != tuple(dims):
            if place.map != dim_exprs(len(old_dims)):
                return None
            view = views.reshape_tensor(self, place.tensor, old_dims, dims)
            place = Place(view, dim_exprs(len(dims)), place.claims)
        return replace(place, claims=(*place.claims, old))

    def _place_through_view(self, old: ir.Value, element: ir.Type) -> Place | None:
        dims = dims_of(old.type)
        for use in old.uses:
            user = use.owner.operation
            if user.name not in ("metadef.reshape", "metadef.transpose"):
                continue
            result = user.results[0]
            if user.name == "metadef.reshape":
                place = self._output_place(result, dims, element)
                if place is not None:
                    return place
                continue
            place = self._output_place(result, dims_of(result.type), element)
            if place is not None:
                positions = dim_exprs(len(dims))
                inner = [positions[p] for p in ir.DenseI64ArrayAttr(user.attributes["perm"])]
                moved = tuple(compose(e, inner, len(dims)) for e in place.map)
                return replace(place, map=moved)
        return None

    def whole(self, tensor: ir.Value, rank: int) -> tuple[ir.Value, AffineExprs]:
        """Return a tensor as the place of a value written by identity."""
        return tensor, dim_exprs(rank)

    def stored(self, old: ir.Value) -> tuple[ir.Value, Value]:
        """Return a value as a tensor in memory read where it stands, storing it if need be."""
        value = self.env[old]
        if not is_identity(value.expr, len(value.dims)):
            value = self.env[old] = self.store(value, old)
        if not is_identity(value.expr, len(value.dims)):
            value = self.env[old] = self.store(value)
        assert isinstance(value.expr, Load)
        return value.expr.tensor, value

    def loaded(self, old: ir.Value) -> Value:
        """Return a value whose expression is one load of any map, storing it if need be."""
        value = self.env[old]
        if not isinstance(value.expr, Load):
            value = self.env[old] = self.store(value, old)
        return value

    def store(self, value: Value, old: ir.Value | None = None) -> Value:
        """Compute `value` into memory (the output it is returned as, if `old` is) and return it."""
        target, map_ = self.destination(old, value.dims, value.element)
        (result,) = self.compute([value], [(target, map_)])
        dims = permuted(value.dims, map_)
        return Value(value.dims, Load(value.element, result, dims, map_))

    def compute(
        self, values: list[Value], targets: list[tuple[ir.Value, AffineExprs]]
    ) -> list[ir.Value]:
        """Write values that share one space to `targets` by one generic; return the new tensors."""
        dims, rank = values[0].dims, len(values[0].dims)
        exprs, maps = [v.expr for v in values], [m for _, m in targets]
        tiled = next((n for n in nodes(*exprs) if isinstance(n, Tiled)), None)
        if tiled is not None:
            return compute_tiles(self, tiled, values, targets)
        order = self._loop_order(exprs, rank)
        if order is not None:
            # Loop j walks dim order[j]: dim d is read at loop order^-1(d).
            positions = [ir.AffineExpr.get_dim(order.index(d)) for d in range(rank)]
            exprs = substitute_all(exprs, positions, rank)
            maps = [tuple(compose(e, positions, rank) for e in m) for m in maps]
            dims = tuple(dims[d] for d in order)
        outs = [(t, m, v.element) for (t, _), m, v in zip(targets, maps, values, strict=True)]
        kinds = ["parallel"] * rank
        return self.generic(dims, kinds, exprs, outs)

    def _loop_order(self, exprs: list[Expr], rank: int) -> list[int] | None:
        """Return the loop order that reads a contraction's result where it stands, if not 0, 1.."""
        for node in nodes(*exprs):
            if isinstance(node, Load) and node.tensor in self.accumulated:
                order = [e.position for e in node.map if isinstance(e, ir.AffineDimExpr)]
                if len(order) == len(node.map) and sorted(order) == list(range(rank)):
                    return order if order != sorted(order) else None
        return None

    # Generic ops.

    def generic(
        self,
        loops: Dims,
        iterators: Sequence[str],
        exprs: Sequence[Expr],
        outs: Sequence[tuple[ir.Value, AffineExprs, ir.Type]],
        body: Body | None = None,
    ) -> list[ir.Value]:
        """Emit one `linalg.generic` over `loops`.

        `exprs` are read in the body, where `body` gets their scalars and those of `outs` (tensor,
        map, metadef element), and returns the scalars to write there, all in compute types.
        Without a `body` the scalars of `exprs` are written, and `outs` are not read.
        """
        loads = _distinct_loads(exprs)
        maps = [key[1] for key in loads] + [map_ for _, map_, _ in outs]
        inputs = [key[0] for key in loads]
        uncovered = _uncovered(len(loops), maps)
        if uncovered:
            # A loop that no operand measures gets a tensor that only says its length.
            i1 = ir.IntegerType.get_signless(1)
            inputs.append(self.empty([loops[i] for i in uncovered], i1))
            maps.insert(len(loads), tuple(ir.AffineExpr.get_dim(i) for i in uncovered))
        tensors = [t for t, _, _ in outs]
        affine_maps = [ir.AffineMap.get(len(loops), 0, list(m)) for m in maps]
        generic = ir.Operation.create(
            "linalg.generic",
            results=[t.type for t in tensors],
            operands=[*inputs, *tensors],
            attributes={
                "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in affine_maps]),
                "iterator_types": ir.ArrayAttr.get([_iterator(kind) for kind in iterators]),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(tensors)]),
            },
            regions=1,
        )
        types = [ir.RankedTensorType(t.type).element_type for t in [*inputs, *tensors]]
        location = generic.location
        block = generic.regions[0].blocks.append(*types, arg_locs=[location] * len(types))
        with ir.InsertionPoint(block):
            arguments = list(block.arguments)
            scalars = self.evaluate(exprs, dict(zip(loads, arguments, strict=False)))
            if body is not None:
                accumulators = [
                    scalar.from_storage(self.scalars(), argument, element)
                    for argument, (_, _, element) in zip(
                        arguments[len(inputs) :], outs, strict=True
                    )
                ]
                scalars = body(scalars, accumulators)
            yielded = [
                scalar.to_storage(self.scalars(), value, element)
                for value, (_, _, element) in zip(scalars, outs, strict=True)
            ]
            ir.Operation.create("linalg.yield", operands=yielded)
        return list(generic.results)

    def evaluate(
        self,
        exprs: Sequence[Expr],
        loaded: dict[tuple[ir.Value, AffineExprs], ir.Value],
        position: Sequence[ir.Value] | None = None,
    ) -> list[ir.Value]:
        """Emit the scalars of `exprs`; `position` holds the loop indices outside a generic."""
        s = self.scalars()
        at = scalar.Position(s, position)
        done: dict[Expr, ir.Value] = {}
        for node in nodes(*exprs):
            match node:
                case Load():
                    key = (node.tensor, node.map)
                    element = loaded.get(key)
                    if element is None:
                        element = _extract(node.tensor, [at.affine(e) for e in node.map])
                    done[node] = scalar.from_storage(s, element, node.element)
                case Constant():
                    done[node] = self.constant(compute_type(node.element), node.value)
                case Index():
                    done[node] = at.affine(node.position)
                case Size():
                    done[node] = self.size(node.dim)
                case Extract():
                    element = _extract(node.tensor, [done[i] for i in node.indices])
                    done[node] = scalar.from_storage(s, element, node.element)
                case Apply():
                    source = node.args[-1].element
                    args = [done[a] for a in node.args]
                    done[node] = scalar.apply(s, node.fn, args, source, node.element)
        return [done[e] for e in exprs]


def tensor_value(tensor: ir.Value, dims: Dims, element: ir.Type) -> Value:
    """Return the value that `tensor` holds."""
    return Value(tuple(dims), Load(element, tensor, tuple(dims), dim_exprs(len(dims))))


def permuted(dims: Dims, map_: AffineExprs) -> tuple[Dim, ...]:
    """Return the dims of a tensor that is written by `map_`, a permutation of `dims`."""
    return tuple(dims[e.position] for e in map_)


def result_type(op: Any, position: int = 0) -> tuple[tuple[Dim, ...], ir.Type]:
    """Return dims and metadef element type of a result."""
    type_ = op.operation.results[position].type
    return dims_of(type_), element_of(type_)


def broadcast(value: Value, dims: Dims) -> Value:
    """Return `value` broadcast to `dims` as numpy does (missing leading dims, literal 1 dims)."""
    offset = len(dims) - len(value.dims)
    positions = [
        constant_expr(0)
        if same(d, 1) and not same(dims[i + offset], 1)
        else ir.AffineExpr.get_dim(i + offset)
        for i, d in enumerate(value.dims)
    ]
    return Value(tuple(dims), substitute(value.expr, positions, len(dims)))


def _extract(tensor: ir.Value, indices: list[ir.Value]) -> ir.Value:
    element = ir.RankedTensorType(tensor.type).element_type
    return ir.Operation.create(
        "tensor.extract", results=[element], operands=[tensor, *indices]
    ).result


def _distinct_loads(exprs: Sequence[Expr]) -> list[tuple[ir.Value, AffineExprs]]:
    keys = [(n.tensor, n.map) for n in nodes(*exprs) if isinstance(n, Load)]
    return list(dict.fromkeys(keys))


def _uncovered(rank: int, maps: Sequence[AffineExprs]) -> list[int]:
    covered = {
        ir.AffineDimExpr(e).position for m in maps for e in m if isinstance(e, ir.AffineDimExpr)
    }
    return [i for i in range(rank) if i not in covered]


def _iterator(kind: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#linalg.iterator_type<{kind}>")
