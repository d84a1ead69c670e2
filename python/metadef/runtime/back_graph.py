"""The back graph as plain data: which kernels run, on which buffers, and what comes out.

A buffer is what a value names in memory; reshapes name the same buffer under other dims.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from metadef.symbolic import Dim, product

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Tensor:
    """Dims and dtype of a dense row-major tensor."""

    dims: tuple[Dim, ...]
    dtype: torch.dtype

    @property
    def bytes(self) -> Dim:
        return product(self.dims) * self.dtype.itemsize


@dataclass(frozen=True)
class Input:
    """The buffer of argument `number`."""

    number: int


@dataclass(frozen=True)
class Weight:
    """The buffer of the weight store's tensor `name`."""

    name: str


@dataclass(frozen=True)
class Arena:
    """`size` bytes at `offset` of the arena; `number` tells buffers apart."""

    number: int
    offset: Dim
    size: Dim


@dataclass(frozen=True)
class Output:
    """The buffer of output tensor `number`, which the caller owns."""

    number: int


Buffer = Input | Weight | Arena | Output


@dataclass(frozen=True)
class Step:
    """A run of `kernel`: it reads `reads` and writes `writes`, its arguments in this order.

    `sizes` has the values of the symbols that are the kernel's own.
    """

    kernel: str
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    location: str
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BackGraph:
    """A function of the back graph.

    `outputs` are the tensors to allocate for Output buffers; each of `results` is a buffer with the
    tensor that the caller sees in it.
    """

    inputs: tuple[Tensor, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Tensor, ...]
    results: tuple[tuple[Buffer, Tensor], ...]
    weights: dict[str, Tensor]
    arena: Dim
    arena_before: Dim

    def arena_ranges(self) -> Iterator[Arena]:
        """Yield every buffer in the arena."""
        for step in self.steps:
            for buffer in step.writes:
                if isinstance(buffer, Arena):
                    yield buffer


@dataclass(frozen=True)
class Plan:
    """All that a program runs: `main` for each call; `init` once, it makes the weights `made`."""

    main: BackGraph
    init: BackGraph | None = None
    made: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of both."""
        return (*(self.init.steps if self.init is not None else ()), *self.main.steps)
