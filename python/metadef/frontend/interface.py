"""What a call of a compiled model is: the leaves that go in and come out, and their pytrees."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.utils import _pytree as pytree

from .capture import Mutation, Output
from .strided_views import Layout
from .symbols import Symbols
from .untraced_sizes import UntracedSizes
from .weights import WeightStore


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
