"""Scalar expressions over an index space: what a tensor holds at `(d0, d1, ...)`.

A pointwise op adds a node, a view rewrites the affine maps of the leaves, and nothing is stored
until `kernel.Kernel` evaluates an expression in the body of a `linalg.generic`. Nodes are compared
by identity: a node used twice is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from metadef import ir
from metadef.symbolic import Dim

AffineExprs = tuple[ir.AffineExpr, ...]


@dataclass(frozen=True, eq=False)
class Expr:
    """A scalar; `element` is its metadef type (`ui8` and `i1` included), or `index`."""

    element: ir.Type


@dataclass(frozen=True, eq=False)
class Load(Expr):
    """`tensor[map(d0, d1, ...)]`; `tensor` has `dims` and the storage type of `element`."""

    tensor: ir.Value
    dims: tuple[Dim, ...]
    map: AffineExprs


@dataclass(frozen=True, eq=False)
class Constant(Expr):
    """The same number everywhere."""

    value: int | float | bool


@dataclass(frozen=True, eq=False)
class Index(Expr):
    """An affine function of the position, of type `index`."""

    position: ir.AffineExpr


@dataclass(frozen=True, eq=False)
class Size(Expr):
    """The value of a dim expression, of type `index`."""

    dim: Dim


@dataclass(frozen=True, eq=False)
class Apply(Expr):
    """A pointwise fn of operands over the same index space."""

    fn: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Extract(Expr):
    """`tensor[indices]` with computed indices (of type `index`, inside the bounds)."""

    tensor: ir.Value
    indices: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Tiled(Expr):
    """Tiles of `sides[0]` x `sides[1]` elements side by side along dims 1, 2 of [n, h, w, c].

    `parts` are a tile's elements, row by row, as expressions over [n, tile row, tile column, c];
    `map` is where the elements are read, as of a `Load`. Only `tiles.compute_tiles` evaluates it.
    """

    sides: tuple[int, int]
    parts: tuple[Expr, ...]
    map: AffineExprs


@dataclass(frozen=True)
class Value:
    """A tensor value of the kernel: its dims and what it holds."""

    dims: tuple[Dim, ...]
    expr: Expr

    @property
    def element(self) -> ir.Type:
        return self.expr.element


#: fns that cost as much as a memory access or more: never computed twice
EXPENSIVE = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh"
    " tanh asinh acosh atanh erf erfc erfinv sigmoid silu gelu gelu_tanh mish softplus lgamma"
    " digamma div floordiv truncdiv fmod remainder pow atan2 hypot nextafter".split()
)


def dim_exprs(rank: int) -> AffineExprs:
    """Return `d0, ..., d(rank-1)`."""
    return tuple(ir.AffineExpr.get_dim(i) for i in range(rank))


def constant_expr(value: int) -> ir.AffineExpr:
    return ir.AffineExpr.get_constant(value)


def compose(expr: ir.AffineExpr, positions: Sequence[ir.AffineExpr], rank: int) -> ir.AffineExpr:
    """Return `expr` with its dims replaced by `positions`, themselves over `rank` dims."""
    return expr.compose(ir.AffineMap.get(rank, 0, list(positions))).maybe_downcast()


def rebuild(exprs: Sequence[Expr], leaf: Callable[[Expr], Expr]) -> list[Expr]:
    """Return `exprs` with every leaf replaced by `leaf(leaf)`; shared nodes stay shared."""
    new: dict[Expr, Expr] = {}
    for node in nodes(*exprs):
        if isinstance(node, Apply):
            new[node] = replace(node, args=tuple(new[a] for a in node.args))
        elif isinstance(node, Extract):
            new[node] = replace(node, indices=tuple(new[a] for a in node.indices))
        else:
            new[node] = leaf(node)
    return [new[e] for e in exprs]


def substitute_all(
    exprs: Sequence[Expr], positions: Sequence[ir.AffineExpr], rank: int
) -> list[Expr]:
    """Return `exprs` read at `positions`, affine expressions over `rank` dims."""

    def leaf(node: Expr) -> Expr:
        if isinstance(node, Load | Tiled):
            moved = tuple(compose(e, positions, rank) for e in node.map)
            return node if moved == node.map else replace(node, map=moved)
        if isinstance(node, Index):
            return replace(node, position=compose(node.position, positions, rank))
        return node

    return rebuild(exprs, leaf)


def substitute(expr: Expr, positions: Sequence[ir.AffineExpr], rank: int) -> Expr:
    """Return `expr` read at `positions`, affine expressions over `rank` dims."""
    return substitute_all([expr], positions, rank)[0]


def operands(node: Expr) -> tuple[Expr, ...]:
    """Return the nodes that `node` is computed from."""
    if isinstance(node, Apply):
        return node.args
    return node.indices if isinstance(node, Extract) else ()


def nodes(*exprs: Expr) -> list[Expr]:
    """Return the distinct nodes of expressions, operands before their users."""
    found: dict[Expr, None] = {}
    for root in exprs:
        stack = [root]
        while stack:
            missing = [a for a in operands(stack[-1]) if a not in found]
            if missing:
                stack += missing[::-1]
            else:
                found[stack.pop()] = None
    return list(found)


def is_identity(expr: Expr, rank: int) -> bool:
    """Answer whether `expr` is a tensor of `rank` dims read where it stands."""
    return isinstance(expr, Load) and expr.map == dim_exprs(rank)


def index(rank_position: ir.AffineExpr) -> Index:
    return Index(ir.IndexType.get(), rank_position)


def size(dim: Dim) -> Expr:
    """Return a dim's value as an expression of type `index`."""
    if dim.is_static:
        return Constant(ir.IndexType.get(), dim.value)
    return Size(ir.IndexType.get(), dim)


def apply(fn: str, *args: Expr, element: ir.Type | None = None) -> Apply:
    """Return `fn(args)`; the element type is the last operand's unless given."""
    return Apply(element if element is not None else args[-1].element, fn, args)


def cast(expr: Expr, element: ir.Type) -> Expr:
    """Return `expr` converted to `element`."""
    if expr.element == element:
        return expr
    if isinstance(expr, Constant) and not isinstance(element, ir.IntegerType):
        return Constant(element, expr.value)
    return Apply(element, "cast", (expr,))


def narrow(expr: Expr, element: ir.Type) -> Expr:
    """Return an f32 expression as one of a half type without rounding: it is computed in f32."""
    return expr if expr.element == element else Apply(element, "narrow", (expr,))


def boolean() -> ir.Type:
    return ir.IntegerType.get_signless(1)


def wrapped_index(value: Expr, extent: Dim) -> Expr:
    """Return an integer index as `index`: negative counts from the end, then clamped into bounds.

    Eager mode raises on an index outside the bounds; here it reads the nearest element, so that
    memory stays safe.
    """
    zero = Constant(ir.IndexType.get(), 0)
    raw, length = cast(value, ir.IndexType.get()), size(extent)
    wrapped = apply(
        "select", apply("lt", raw, zero, element=boolean()), apply("add", raw, length), raw
    )
    last = apply("sub", length, Constant(ir.IndexType.get(), 1))
    return apply("maximum", apply("minimum", wrapped, last), zero)
