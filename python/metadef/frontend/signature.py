"""The call of a compiled model: from any pytree of arguments to checked tensors, and back.

Everything is checked before native code runs; what differs is an `InputError` that names the
argument, what was expected and what came. The checks of a call are a short loop over precomputed
tuples: a small model runs in about 100 us, so every microsecond here counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch.utils import _pytree as pytree

from metadef.diagnostics import InputError, near_names
from metadef.symbolic import Dim

from .symbols import SymbolBinder, SymbolRange, Symbols

if TYPE_CHECKING:
    from .strided_views import Layout
    from .untraced_sizes import UntracedSizes


@dataclass(frozen=True)
class Leaf:
    """One leaf of the flattened call: a tensor of `dtype` and `dims`, a size, or a constant."""

    name: str
    dtype: torch.dtype | None = None
    dims: tuple[Dim, ...] = ()
    #: the dims as a plain shape when all are static
    shape: torch.Size | None = None
    #: how it has to lie in memory, where that counts
    layout: Layout | None = None
    size: Dim | None = None
    constant: Any = None

    @property
    def is_tensor(self) -> bool:
        return self.dtype is not None


class Signature:
    """What a compiled model is called with; `bind` checks a call and gives its flat leaves."""

    def __init__(
        self,
        in_spec: pytree.TreeSpec,
        examples: Sequence[Any],
        symbols: Symbols,
        parameters: inspect.Signature | None = None,
        layouts: Mapping[int, Layout] | None = None,
        untraced: UntracedSizes | None = None,
        *,
        dense: bool = True,
    ) -> None:
        """`dense` says that `bind` gives tensors row-major, as native code reads them."""
        self._untraced = untraced
        self._dense = dense
        self._in_spec = in_spec
        self._parameters = parameters
        self.leaves = _leaves(in_spec, examples, symbols, layouts or {})
        self._ranges = symbols.ranges()
        self._kwargs = tuple(in_spec.child(1).context)
        args_spec = in_spec.child(0)
        #: every argument is positional and a leaf: the flat list is the arguments themselves
        self._flat_count = (
            args_spec.num_children
            if not self._kwargs
            and all(args_spec.child(i).is_leaf() for i in range(args_spec.num_children))
            else None
        )
        tensors = [(i, leaf) for i, leaf in enumerate(self.leaves) if leaf.is_tensor]
        self._checks = [(i, leaf, leaf.dtype, leaf.shape) for i, leaf in tensors]
        self._layouts = [(i, leaf) for i, leaf in tensors if leaf.layout is not None]
        self._others = [(i, leaf) for i, leaf in enumerate(self.leaves) if not leaf.is_tensor]
        sizes = [leaf.dims for _, leaf in tensors]
        sizes += [(leaf.size,) for _, leaf in self._others if leaf.size is not None]
        self._binder = SymbolBinder(sizes)
        self._dynamic = bool(self._binder.steps)
        #: static sizes of tensors that also have dynamic ones: (number of the tensor, axis, size)
        self._fixed = [
            (number, axis, dim.value)
            for number, (_, leaf) in enumerate(tensors)
            if leaf.shape is None
            for axis, dim in enumerate(leaf.dims)
            if dim.is_static
        ]

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], list[Any], dict[str, int]]:
        """Return the leaves as given, the leaves as checked tensors, and the symbols.

        Raises:
            InputError: an argument differs from what the model was compiled for.
        """
        if self._flat_count == len(args) and not kwargs:
            given = list(args)
        else:
            given = self._flatten(args, kwargs)
        leaves = given.copy()
        for index, leaf, dtype, shape in self._checks:
            value = leaves[index]
            if (
                type(value) is not torch.Tensor
                or value.dtype is not dtype
                or value.is_nested  # it has no shape, and asking for it raises
                or (value.shape != shape if shape is not None else value.dim() != len(leaf.dims))
                or not value.is_cpu
                or value.layout is not torch.strided
            ):
                value = _checked(value, leaf)
            if value.requires_grad:
                value = value.detach()
            if self._dense and (not value.is_contiguous() or value.is_neg() or value.is_conj()):
                value = value.resolve_neg().resolve_conj().contiguous()
            leaves[index] = value
        for index, leaf in self._others:
            _check_constant(leaves[index], leaf)
        values = self._bind_symbols(given) if self._dynamic else {}
        for index, leaf in self._layouts:
            _check_layout(given[index], leaf, values)
        return given, leaves, values

    def _flatten(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        args, kwargs = self._as_compiled(args, kwargs)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._in_spec:
            self._report_structure(args, kwargs)
        return leaves

    def _as_compiled(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Pass each argument the way the example did: by position or by keyword."""
        count = self._in_spec.child(0).num_children
        if len(args) == count and tuple(kwargs) == self._kwargs:
            return args, dict(kwargs)
        given = dict(kwargs)
        names = self._positional_names(count)
        for i, value in enumerate(args):
            name = names[i] if i < len(names) else f"args[{i}]"
            if name in given:
                raise InputError(f"argument '{name}': expected it once, got it twice")
            given[name] = value
        wanted = (*names[:count], *self._kwargs)
        for name in given:
            if name not in wanted and not self._is_default(name, given[name]):
                raise InputError(
                    f"argument '{name}': not among the example arguments that the model was "
                    f"compiled with ({', '.join(wanted)}){near_names(name, wanted)}"
                )
        missing = [name for name in wanted if name not in given]
        if missing:
            raise InputError(
                f"argument '{missing[0]}': missing; the model was compiled with "
                f"({', '.join(wanted)})"
            )
        return tuple(given[n] for n in names[:count]), {n: given[n] for n in self._kwargs}

    def _positional_names(self, count: int) -> list[str]:
        names: list[str] = []
        if self._parameters is not None:
            kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            names = [p.name for p in self._parameters.parameters.values() if p.kind in kinds]
        return names + [f"args[{i}]" for i in range(len(names), count)]

    def _is_default(self, name: str, value: Any) -> bool:
        if self._parameters is None or name not in self._parameters.parameters:
            return False
        default = self._parameters.parameters[name].default
        return (
            type(value) is type(default)
            and not isinstance(value, torch.Tensor)
            and value == default
        )

    def _report_structure(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NoReturn:
        pairs, _ = pytree.tree_flatten_with_path((args, kwargs))
        got = [_path_name(path) for path, _ in pairs]
        wanted = [leaf.name for leaf in self.leaves]
        for name in wanted:
            if name not in got:
                raise InputError(f"argument {name}: missing; expected {', '.join(wanted)}")
        for name in got:
            if name not in wanted:
                raise InputError(f"argument {name}: unexpected; expected {', '.join(wanted)}")
        raise InputError(
            f"arguments: expected the structure {self._in_spec}, "
            f"got {pytree.tree_structure((args, kwargs))}"
        )

    def _bind_symbols(self, leaves: Sequence[Any]) -> dict[str, int]:
        shapes: list[Sequence[int]] = [leaves[i].shape for i, *_ in self._checks]
        shapes += [(leaves[i],) for i, leaf in self._others if leaf.size is not None]
        values = self._binder.bind(shapes)
        traced = True
        for symbol, value in values.items():
            allowed = self._ranges[symbol]
            traced = traced and value >= allowed.traced_min
            if not allowed.min <= value <= allowed.max or value % allowed.divisor:
                self._report_range(symbol, value, allowed, shapes)
        for index, axis, dim in self._binder.checks:
            if shapes[index][axis] != dim.evaluate(values):
                self._report_size(index, axis, dim, values, shapes)
        for step in self._binder.steps:
            if not step.plain and shapes[step.index][step.axis] != step.expr.evaluate(values):
                self._report_size(step.index, step.axis, step.expr, values, shapes)
        for index, axis, size in self._fixed:
            if shapes[index][axis] != size:
                self._report_size(index, axis, Dim.of(size), values, shapes)
        if not traced and self._untraced is not None:
            problem = self._untraced.why_not(values)
            if problem is not None:
                self._report_untraced(*problem, shapes)
        return values

    def _place(self, index: int, axis: int) -> str:
        if index < len(self._checks):
            return f"argument {self._checks[index][1].name}: dim {axis}"
        sizes = [leaf for _, leaf in self._others if leaf.size is not None]
        return f"argument {sizes[index - len(self._checks)].name}: the integer"

    def _report_range(
        self, symbol: str, value: int, allowed: SymbolRange, shapes: Sequence[Sequence[int]]
    ) -> NoReturn:
        step = next(s for s in self._binder.steps if s.symbol == symbol)
        divisor = f", divisible by {allowed.divisor}" if allowed.divisor > 1 else ""
        high = "" if allowed.max >= 2**62 else f" and at most {allowed.max}"
        raise InputError(
            f"{self._place(step.index, step.axis)}: expected {step.expr} with {symbol} at least "
            f"{allowed.min}{high}{divisor}, got {shapes[step.index][step.axis]}"
        )

    def _report_untraced(
        self, symbol: str, reason: str, shapes: Sequence[Sequence[int]]
    ) -> NoReturn:
        step = next(s for s in self._binder.steps if s.symbol == symbol)
        raise InputError(
            f"{self._place(step.index, step.axis)}: got {shapes[step.index][step.axis]}; the model "
            f"was traced for larger ones, and for this one {reason}; compile for it alone"
        )

    def _report_size(
        self,
        index: int,
        axis: int,
        dim: Dim,
        values: Mapping[str, int],
        shapes: Sequence[Sequence[int]],
    ) -> NoReturn:
        known = ", ".join(f"{s} = {values[s]}" for s in sorted(dim.symbols))
        where = f" with {known}" if known else ""
        expected = dim if dim.is_static else f"{dim} = {dim.evaluate(values)}"
        raise InputError(
            f"{self._place(index, axis)}: expected {expected}{where}, got {shapes[index][axis]}"
        )


def _leaves(
    in_spec: pytree.TreeSpec,
    examples: Sequence[Any],
    symbols: Symbols,
    layouts: Mapping[int, Layout],
) -> tuple[Leaf, ...]:
    tree = pytree.tree_unflatten(list(range(len(examples))), in_spec)
    pairs, _ = pytree.tree_flatten_with_path(tree)
    leaves = []
    for path, index in pairs:
        name, example = _path_name(path), examples[index]
        if isinstance(example, torch.Tensor):
            dims = tuple(symbols.dim(size) for size in example.shape)
            static = all(d.is_static for d in dims)
            shape = torch.Size(d.value for d in dims) if static else None
            leaves.append(Leaf(name, example.dtype, dims, shape, layouts.get(index)))
        elif isinstance(example, torch.SymInt):
            leaves.append(Leaf(name, size=symbols.dim(example)))
        else:
            leaves.append(Leaf(name, constant=example))
    return tuple(leaves)


def _path_name(path: Sequence[Any]) -> str:
    """Return `args[0]['mask']` for the path of a leaf of `(args, kwargs)`."""
    first, *rest = path
    return ("args" if first.idx == 0 else "kwargs") + pytree.keystr(tuple(rest))


def _checked(value: Any, leaf: Leaf) -> torch.Tensor:
    """Return the tensor of an unusual but legal value; report every other.

    Raises:
        InputError: not a dense CPU tensor of the leaf's dtype and shape.
    """
    expected = _describe(leaf)
    if not isinstance(value, torch.Tensor):
        raise InputError(f"argument {leaf.name}: expected {expected}, got {type(value).__name__}")
    if type(value) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        if hasattr(type(value), "__torch_dispatch__") and (
            type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
        ):
            raise InputError(
                f"argument {leaf.name}: expected {expected} in memory, got {type(value).__name__}"
            )
        value = value.as_subclass(torch.Tensor)
    assert leaf.dtype is not None
    if value.is_nested:
        raise InputError(f"argument {leaf.name}: expected {expected}, got a nested tensor")
    if value.layout is not torch.strided:
        raise InputError(
            f"argument {leaf.name}: expected {expected}, got a tensor of layout {value.layout}; "
            "make it dense with .to_dense()"
        )
    if not value.is_cpu:
        raise InputError(f"argument {leaf.name}: expected {expected} on cpu, got {value.device}")
    if value.dtype is not leaf.dtype:
        raise InputError(
            f"argument {leaf.name}: expected {expected}, got dtype {_dtype_name(value.dtype)}"
        )
    if value.dim() != len(leaf.dims):
        raise InputError(
            f"argument {leaf.name}: expected {expected}, got rank {value.dim()}, "
            f"shape {list(value.shape)}"
        )
    if leaf.shape is not None and value.shape != leaf.shape:
        axis = next(i for i, n in enumerate(leaf.shape) if value.shape[i] != n)
        raise InputError(
            f"argument {leaf.name}: dim {axis}: expected {leaf.shape[axis]} in {expected}, got "
            f"{value.shape[axis]}; name the dim in dynamic_shapes to let it vary"
        )
    return value


def _check_layout(value: torch.Tensor, leaf: Leaf, symbols: Mapping[str, int]) -> None:
    assert leaf.layout is not None
    got, offset = value.stride(), leaf.layout.offset
    expected = tuple(
        dim.evaluate(symbols) if dim.symbols <= symbols.keys() else stride
        for dim, stride in zip(leaf.layout.strides, got, strict=True)
    )
    if value.numel() == 0:
        return
    if any(size > 1 and g != e for size, g, e in zip(value.shape, got, expected, strict=True)):
        difference = f"strides {list(expected)}, got {list(got)}"
    elif offset is not None and value.storage_offset() != offset:
        difference = f"storage offset {offset}, got {value.storage_offset()}"
    else:
        return
    raise InputError(
        f"argument {leaf.name}: expected {difference}: the model reads memory by as_strided, and "
        "was compiled for that of the example argument; pass a copy that has the same layout, or "
        "compile again with an example like this one"
    )


def _check_constant(value: Any, leaf: Leaf) -> None:
    if leaf.size is not None:
        if type(value) is not int:
            raise InputError(f"argument {leaf.name}: expected an int, got {type(value).__name__}")
    elif type(value) is not type(leaf.constant) or not _equal(value, leaf.constant):
        raise InputError(
            f"argument {leaf.name}: expected the constant {leaf.constant!r} that the model was "
            f"compiled for, got {_short(value)}; compile again for another value"
        )


def _equal(a: Any, b: Any) -> bool:
    return a is b or bool(a == b) or (a != a and b != b)


def _short(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)}"
    return (
        repr(value) if isinstance(value, int | float | str | bool | None) else type(value).__name__
    )


def _describe(leaf: Leaf) -> str:
    dims = ", ".join(str(d) for d in leaf.dims)
    return f"{_dtype_name(leaf.dtype)}[{dims}]"


def _dtype_name(dtype: torch.dtype | None) -> str:
    return str(dtype).removeprefix("torch.")
