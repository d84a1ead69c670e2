"""What a call of a compiled model is: the leaves that go in and come out, and their pytrees."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch.utils import _pytree as pytree

from metadef.diagnostics import MetadefError

from .bindings import Mutation, Output
from .symbols import Symbols
from .weights import WeightStore

if TYPE_CHECKING:
    from .strided_views import Layout
    from .untraced_sizes import UntracedSizes


@dataclass(frozen=True)
class Interface:
    """A model as its caller sees it: `in_spec` is the pytree of `(args, kwargs)`."""

    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    parameters: inspect.Signature | None
    #: for each leaf of the call: a value of its shape and dtype, or the constant it must equal
    examples: tuple[Any, ...]
    outputs: Sequence[Output]
    mutations: Sequence[Mutation]
    weights: WeightStore
    symbols: Symbols
    layouts: Mapping[int, Layout] = field(default_factory=dict)
    #: None where no size may vary
    untraced: UntracedSizes | None = None


def as_call(args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments as a tuple and a dict.

    Raises:
        MetadefError: `kwargs` is no mapping.
    """
    if not isinstance(args, tuple):
        args = tuple(args) if isinstance(args, list) else (args,)
    if not isinstance(kwargs, Mapping | None):
        raise MetadefError(f"kwargs: expected a dict, got {type(kwargs).__name__}")
    return args, dict(kwargs or {})
