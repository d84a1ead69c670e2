"""The cases: each op of torch's operator database with a dtype, and a few of its samples."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

DTYPES = {"float32": torch.float32, "int64": torch.int64}
#: samples with more elements than this are for machines with time
MODERATE = 20_000
#: ops that are in the database but not in a torch for CPUs
_CUDA_ONLY = "jiterator_"


@dataclass(frozen=True, order=True)
class Case:
    """An op of the database, as it names it, and a dtype of its samples."""

    op: str
    variant: str
    dtype: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.op, self.variant, self.dtype) if part)


@dataclass(frozen=True)
class Sample:
    """A call of an op: a module of its tensors alone, the same in double precision, the tensors."""

    module: nn.Module
    in_double: nn.Module
    tensors: tuple[Tensor, ...]


class Call(nn.Module):
    """Calls a function with the tensors it is given in the places of those it was made with."""

    def __init__(self, function: Callable[..., Any], leaves: list[Any], spec: Any) -> None:
        super().__init__()
        self._function = function
        self._constants = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self._places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self._spec = spec

    def forward(self, *tensors: Tensor) -> Any:
        leaves = list(self._constants)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return self._function(*args, **kwargs)


@functools.cache
def _database() -> dict[tuple[str, str], Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return {(op.name, op.variant_test_name): op for op in op_db}


def all_cases() -> list[Case]:
    """Return every op and variant with each dtype that it has samples of, sorted."""
    return sorted(
        Case(name, variant, dtype)
        for (name, variant), op in _database().items()
        for dtype, torch_dtype in DTYPES.items()
        if torch_dtype in op.dtypes and not name.startswith(_CUDA_ONLY)
    )


def samples(case: Case, limit: int) -> list[Sample]:
    """Return at most `limit` samples of moderate size, spread over all that the database has."""
    op = _database()[case.op, case.variant]
    for seed in (torch.manual_seed, random.seed, np.random.seed):
        seed(0)
    inputs = op.sample_inputs("cpu", DTYPES[case.dtype], requires_grad=False)
    moderate = [s for s in inputs if _size((s.input, s.args, s.kwargs)) <= MODERATE]
    return [_sample(op.op, moderate[i]) for i in _spread(len(moderate), limit)]


def _spread(count: int, limit: int) -> Iterable[int]:
    """Return at most `limit` of the indices below `count`: the first, the last, even steps."""
    if count <= limit:
        return range(count)
    return sorted({i * (count - 1) // (limit - 1) for i in range(limit)} if limit > 1 else {0})


def _size(values: Any) -> int:
    return sum(leaf.numel() for leaf in pytree.tree_leaves(values) if isinstance(leaf, Tensor))


def _sample(function: Callable[..., Any], sample: Any) -> Sample:
    values = ((sample.input, *sample.args), dict(sample.kwargs))
    leaves, spec = pytree.tree_flatten(values)
    tensors = tuple(leaf.detach() for leaf in leaves if isinstance(leaf, Tensor))
    in_double = [
        _DOUBLE.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf for leaf in leaves
    ]
    return Sample(Call(function, leaves, spec), Call(function, in_double, spec), tensors)


_DOUBLE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def double(tensor: Tensor) -> Tensor:
    """Return the tensor in double precision, when it has single precision."""
    return tensor.to(_DOUBLE[tensor.dtype]) if tensor.dtype in _DOUBLE else tensor.clone()
