"""What a case of a calibration is, and the models that cases are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn

#: a model and the arguments of one call, those by name last where there are any
Made = tuple[Any, tuple[Any, ...]] | tuple[Any, tuple[Any, ...], dict[str, Any]]
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64}
ACTS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": nn.functional.gelu,
    "silu": nn.functional.silu,
}


@dataclass(frozen=True)
class Case:
    """A small model of one kind; `choices` others than the default are measured of its kernels.

    `values` are those of its symbol B, if it has one; arguments then have it as their first dim.
    Where `kinds` names some, kernels of other kinds are there for their sake: they are left out.
    """

    kind: str
    name: str
    make: Callable[[], Made]
    choices: int = 1
    values: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()


class Apply(nn.Module):
    """A function as a model, with modules that it calls."""

    def __init__(self, function: Callable[..., Tensor], *modules: nn.Module) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)

    def forward(self, *args: Tensor) -> Tensor:
        """Apply the function to the modules and the arguments."""
        return self.function(*self.parts, *args)


def applied(
    kind: str, name: str, function: Callable[..., Tensor], *shapes: tuple[int, ...],
    dtype: str = "f32", values: tuple[int, ...] = (), choices: int = 1,
) -> Case:  # fmt: skip
    """Return a case of a function of random tensors."""

    def make() -> Made:
        return Apply(function), tuple(random(*s, dtype=TYPES[dtype]) for s in shapes)

    return Case(kind, name, make, choices, values)


def same(x: Tensor) -> Tensor:
    """Return what is given."""
    return x


def random(*dims: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a tensor of numbers from 0 to 1."""
    return torch.rand(dims, dtype=dtype)


def near(value: float, unit: int) -> int:
    """Return the multiple of `unit`, at least one, that is nearest."""
    return max(unit, round(value / unit) * unit)


def denser(sizes: Sequence[int]) -> list[int]:
    """Return working sets with the geometric means of those beyond the nearest cache between them:
    there they are far apart."""
    return sorted([*sizes, *(isqrt(a * b) for a, b in pairwise(sizes[1:]))])
